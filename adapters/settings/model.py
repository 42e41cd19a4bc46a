"""The shape of the configuration. Unknown keys are errors; every default works."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from adapters.settings.blobs import BlobSettings
from adapters.settings.encryption import CodecSettings, EncryptionSettings
from adapters.settings.project import ProjectSettings
from adapters.settings.secrets import with_password
from adapters.settings.section import Section, names
from adapters.settings.telemetry import TelemetrySettings
from adapters.settings.workers import WorkerSettings
from domain.build.project import Project
from domain.errors import InvalidInput, UnknownName
from domain.money.usage import Price


class TemporalSettings(Section):
    """``address`` names a server that is there; empty means the embedded one on ``port``, where 0 picks a free one.

    ``deployment`` makes the workers that are started by themselves versions of a worker deployment of that name: old
    ones may stay beside new ones. ``build_id`` is the name of this version, that of the release and commit by default.
    """

    address: str = ""
    namespace: str = "default"
    task_queue: str = "mendwork"
    deployment: str = Field(default="", pattern=r"^[A-Za-z0-9_-]{0,60}$")
    build_id: str = Field(default="", pattern=r"^[A-Za-z0-9._-]{0,120}$")
    port: int = Field(default=7233, ge=0, le=65535)
    ui_port: int = Field(default=8233, ge=0, le=65535)
    server: Path | None = None


class Timeouts(Section):
    """Seconds: after ``heartbeat`` and ``sticky`` a silent worker's work goes to another one; every ``sweep`` seconds
    terminated builds are looked for, to undo them; every ``housekeeping`` seconds what nothing needs is taken away."""

    heartbeat: float = Field(default=5.0, ge=1.0, allow_inf_nan=False)
    sticky: float = Field(default=5.0, ge=1.0, allow_inf_nan=False)
    sweep: float = Field(default=60.0, ge=1.0, allow_inf_nan=False)
    housekeeping: float = Field(default=86_400.0, ge=60.0, allow_inf_nan=False)


class ModelSettings(Section):
    """One model. ``model`` is litellm's ``provider/name``; ``base_url`` any OpenAI-compatible server.

    Keys come only from the environment: ``api_key_env`` names the variable (empty: the provider's usual one).
    ``structured`` is whether the server takes a JSON schema as ``response_format``, ``pin`` whether it takes the
    temperature and the seed that make answers repeatable. Prices are USD per million tokens. ``in_flight`` is how many
    of its calls one worker makes at once.
    """

    model: str = Field(min_length=1)
    base_url: str = ""
    api_key_env: str = Field(default="", pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")
    structured: bool = True
    pin: bool = True
    input_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    in_flight: int | None = Field(default=None, ge=1)

    @property
    def provider(self) -> str:
        """Where its calls go: what hangs there hangs for all models that are reached so."""
        return f"{self.model.partition('/')[0]} {self.base_url}".strip()

    def price(self) -> Price | None:
        """None where the configuration has no price; litellm's table is asked then."""
        if self.input_price is None or self.output_price is None:
            return None
        return Price(
            input_micros_per_million=round(self.input_price * 1_000_000),
            output_micros_per_million=round(self.output_price * 1_000_000),
        )


class Roles(Section):
    """Chains of model names: the first is asked first, the next when it fails for good. Empty means every model."""

    reasoning: Annotated[tuple[str, ...], BeforeValidator(names)] = ()
    coding: Annotated[tuple[str, ...], BeforeValidator(names)] = ()
    validation: Annotated[tuple[str, ...], BeforeValidator(names)] = ()


class SandboxSettings(Section):
    """``engine`` is what model-written code runs in: "bubblewrap", or "mount", which isolates far less and is never
    chosen by itself."""

    engine: Literal["bubblewrap", "mount"] = "bubblewrap"


class Settings(Section):
    """The whole configuration. ``root`` is the folder of ``mendwork.toml``; ``state`` what Mendwork keeps beside it.

    ``shared`` is a folder that all hosts mount, for what a build needs on each of them; None where there is one host.
    ``store_password`` is that of the ``store`` on PostgreSQL, for a URL that everybody may read.
    """

    root: Path
    temporal: TemporalSettings = Field(default_factory=TemporalSettings)
    timeouts: Timeouts = Field(default_factory=Timeouts)
    store: str = Field(default="", repr=False)  # its URL may hold a password
    store_password: str = Field(default="", repr=False)
    shared: Path | None = None
    blobs: BlobSettings = Field(default_factory=BlobSettings)
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    roles: Roles = Field(default_factory=Roles)
    projects: dict[str, ProjectSettings] = Field(default_factory=dict)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    workers: WorkerSettings = Field(default_factory=WorkerSettings)
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings)
    encryption: EncryptionSettings = Field(default_factory=EncryptionSettings)
    codec: CodecSettings = Field(default_factory=CodecSettings)

    @model_validator(mode="after")
    def _names_hold(self) -> Self:
        """A name that stands for nothing is told when the file is read, not by a worker that cannot start."""
        try:
            self.chain("reasoning")
            self.chain("coding")
            self.chain("validation")
            self.allowlist()
            self._check_ports()
            self._check_secrets()
            with_password(self.store, self.store_password)
        except InvalidInput as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def state(self) -> Path:
        """The folder for everything that Mendwork writes."""
        return self.root / ".mendwork"

    @property
    def store_url(self) -> str:
        """SQLAlchemy's URL of the store, with its password."""
        return with_password(self.store or f"sqlite+aiosqlite:///{self.state / 'mendwork.db'}", self.store_password)

    @property
    def common(self) -> Path:
        """The folder for mirrors and environments, which all workers of a build have to see."""
        return self.state if self.shared is None else self.root / self.shared

    @property
    def key_files(self) -> tuple[Path, ...]:
        """The files of the keys of payloads; the first encrypts."""
        return tuple(self.root / name for name in self.encryption.keys)

    def chain(self, role: str) -> tuple[str, ...]:
        """The model names of "reasoning", "coding" or "validation", in order. Raises UnknownName."""
        names: tuple[str, ...] = getattr(self.roles, role) or tuple(self.models)
        for name in names:
            if name not in self.models:
                raise UnknownName.among(f"model in roles.{role}", name, self.models)
        return names

    def allowlist(self) -> dict[str, Project]:
        """The projects as the domain knows them. Raises InvalidName."""
        return {name: settings.project(name, self.root) for name, settings in self.projects.items()}

    @property
    def provided(self) -> dict[str, str]:
        """litellm's names of the models, by ours."""
        return {name: model.model for name, model in self.models.items()}

    @property
    def deploy_secrets(self) -> frozenset[str]:
        """The variables that only a deploy worker may see."""
        return frozenset(name for p in self.projects.values() if p.delivery for name in p.delivery.secrets)

    def _check_ports(self) -> None:
        """Raises InvalidInput for a port that two would listen on."""
        taken: dict[int, str] = {}
        for where, port in self._ports():
            if port and taken.setdefault(port, where) != where:
                raise InvalidInput(f"port {port} is given twice: {taken[port]} and {where}")

    def _ports(self) -> Iterator[tuple[str, int]]:
        if not self.temporal.address:
            yield "temporal.port", self.temporal.port
            yield "temporal.ui_port", self.temporal.ui_port
        for name, project in self.projects.items():
            if project.delivery:
                yield f"projects.{name}.delivery.port", project.delivery.port
                yield f"projects.{name}.delivery.staging_port", project.delivery.staging_port

    def _check_secrets(self) -> None:
        """Raises InvalidInput for a provider's key that a release would get, a payload's that a sandbox sees."""
        for model in self.models.values():
            if model.api_key_env and model.api_key_env in self.deploy_secrets:
                raise InvalidInput(f"{model.api_key_env} is a provider's key: no release may have it as a secret")
        for name, project in self.allowlist().items():
            shown = [os.path.abspath(folder) for folder in project.toolchain]
            if any(Path(os.path.abspath(file)).is_relative_to(folder) for file in self.key_files for folder in shown):
                raise InvalidInput(f"encryption.keys: a key lies in the toolchain of {name}, which sandboxes see")
