"""The shape of the configuration. Unknown keys are errors; every default works."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from domain.build.names import check_project_name
from domain.build.project import Consent, Limits, Project
from domain.errors import InvalidInput, UnknownName
from domain.money.budget import Budget
from domain.money.usage import Price


class BadKey(ValueError):
    """What is wrong with one key of a section that is checked as a whole."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


def _argv(value: Any) -> Any:
    return tuple(shlex.split(value)) if isinstance(value, str) else value


def _names(value: Any) -> Any:
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


def _limit(value: Any) -> Any:
    return None if value == "none" else value


def _known_limits(value: Any) -> Any:
    known = [each.name for each in fields(Limits)]
    for key in value if isinstance(value, Mapping) else ():
        if key not in known:
            raise BadKey(key, _unknown(key, known))
    return value


def _positive_limits(limits: Limits) -> Limits:
    for each in fields(Limits):
        value = getattr(limits, each.name)
        if not 0 < value < math.inf:
            raise BadKey(each.name, f"{each.name} must be a number above 0")
    return limits


def unknown_key(section: type[BaseModel], key: str) -> str:
    """The sentence for a key that ``section`` does not have, with those it has."""
    return _unknown(key, [name for name in section.model_fields if name != "root"])


def _unknown(key: str, known: Iterable[str]) -> str:
    return f"unknown key {key!r}; known: {', '.join(sorted(known))}"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _known_only(cls, value: Any) -> Any:
        for key in value if isinstance(value, Mapping) else ():
            if key not in cls.model_fields:
                raise BadKey(key, unknown_key(cls, key))
        return value


class TemporalSettings(_Section):
    """``address`` names a server that is there; empty means the embedded one on ``port``, where 0 picks a free one."""

    address: str = ""
    namespace: str = "default"
    task_queue: str = "mendwork"
    port: int = Field(default=7233, ge=0, le=65535)
    ui_port: int = Field(default=8233, ge=0, le=65535)
    server: Path | None = None


class Timeouts(_Section):
    """Seconds: after ``heartbeat`` and ``sticky`` a silent worker's work goes to another one; every ``sweep`` seconds
    terminated builds are looked for, to undo them."""

    heartbeat: float = Field(default=5.0, ge=1.0, allow_inf_nan=False)
    sticky: float = Field(default=5.0, ge=1.0, allow_inf_nan=False)
    sweep: float = Field(default=60.0, ge=1.0, allow_inf_nan=False)


class ModelSettings(_Section):
    """One model. ``model`` is litellm's ``provider/name``; ``base_url`` any OpenAI-compatible server.

    Keys come only from the environment: ``api_key_env`` names the variable (empty: the provider's usual one).
    ``structured`` is whether the server takes a JSON schema as ``response_format``, ``pin`` whether it takes the
    temperature and the seed that make answers repeatable. Prices are USD per million tokens.
    """

    model: str = Field(min_length=1)
    base_url: str = ""
    api_key_env: str = Field(default="", pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")
    structured: bool = True
    pin: bool = True
    input_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    def price(self) -> Price | None:
        """None where the configuration has no price; litellm's table is asked then."""
        if self.input_price is None or self.output_price is None:
            return None
        return Price(
            input_micros_per_million=round(self.input_price * 1_000_000),
            output_micros_per_million=round(self.output_price * 1_000_000),
        )


class Roles(_Section):
    """Chains of model names: the first is asked first, the next when it fails for good. Empty means every model."""

    reasoning: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    coding: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    validation: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()


class BudgetSettings(_Section):
    """Hard limits in USD, as ``domain.money.budget.Budget`` has them; "none" is no limit."""

    task: Annotated[float | None, BeforeValidator(_limit)] = Field(default=2.0, ge=0, allow_inf_nan=False)
    build: Annotated[float | None, BeforeValidator(_limit)] = Field(default=10.0, ge=0, allow_inf_nan=False)
    project: Annotated[float | None, BeforeValidator(_limit)] = Field(default=None, ge=0, allow_inf_nan=False)
    user: Annotated[float | None, BeforeValidator(_limit)] = Field(default=None, ge=0, allow_inf_nan=False)
    day: Annotated[float | None, BeforeValidator(_limit)] = Field(default=50.0, ge=0, allow_inf_nan=False)
    calls: int = Field(default=40, ge=1)

    def budget(self) -> Budget:
        """In micro-dollars, rounded down: a limit is never more than what was written."""
        names = ("task", "build", "project", "user", "day")
        micros = {name: None if (usd := getattr(self, name)) is None else int(usd * 1_000_000) for name in names}
        return Budget(calls=self.calls, **micros)


class ProjectSettings(_Section):
    """One project of the allowlist. ``repository`` is relative to the file that names it.

    ``approve`` to ``approval_seconds`` are ``domain.build.project.Consent``.
    """

    repository: Path
    branch: str = "main"
    test: Annotated[tuple[str, ...], BeforeValidator(_argv), Field(min_length=1)]
    toolchain: tuple[Path, ...] = ()
    limits: Annotated[Limits, BeforeValidator(_known_limits), AfterValidator(_positive_limits)] = Field(
        default_factory=Limits
    )
    budget: BudgetSettings = Field(default_factory=BudgetSettings)
    approve: Annotated[tuple[Literal["plan", "change"], ...], BeforeValidator(_names)] = ("change",)
    review: bool = True
    land: Literal["branch", "target"] = "branch"
    question_seconds: float = Field(default=86_400.0, gt=0, allow_inf_nan=False)
    approval_seconds: float = Field(default=259_200.0, gt=0, allow_inf_nan=False)

    def consent(self) -> Consent:
        """As the domain knows it."""
        return Consent(
            approve=self.approve,
            review=self.review,
            land=self.land,
            question_seconds=self.question_seconds,
            approval_seconds=self.approval_seconds,
        )


class Settings(_Section):
    """The whole configuration. ``root`` is the folder of ``mendwork.toml``; ``state`` what Mendwork keeps beside it."""

    root: Path
    temporal: TemporalSettings = Field(default_factory=TemporalSettings)
    timeouts: Timeouts = Field(default_factory=Timeouts)
    store: str = Field(default="", repr=False)  # its URL may hold a password
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    roles: Roles = Field(default_factory=Roles)
    projects: dict[str, ProjectSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_hold(self) -> Self:
        """A name that stands for nothing is told when the file is read, not by a worker that cannot start."""
        try:
            self.chain("reasoning")
            self.chain("coding")
            self.chain("validation")
            self.allowlist()
        except InvalidInput as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def state(self) -> Path:
        """The folder for everything that Mendwork writes."""
        return self.root / ".mendwork"

    @property
    def store_url(self) -> str:
        """SQLAlchemy's URL of the store."""
        return self.store or f"sqlite+aiosqlite:///{self.state / 'mendwork.db'}"

    def chain(self, role: str) -> tuple[str, ...]:
        """The model names of "reasoning", "coding" or "validation", in order. Raises UnknownName."""
        names: tuple[str, ...] = getattr(self.roles, role) or tuple(self.models)
        for name in names:
            if name not in self.models:
                raise UnknownName.among(f"model in roles.{role}", name, self.models)
        return names

    def allowlist(self) -> dict[str, Project]:
        """The projects as the domain knows them. Raises InvalidName."""
        return {
            name: Project(
                name=check_project_name(name),
                repository=str((self.root / p.repository).resolve()),
                branch=p.branch,
                test=p.test,
                toolchain=tuple(str((self.root / t).resolve()) for t in p.toolchain),
                limits=p.limits,
                consent=p.consent(),
                budget=p.budget.budget(),
            )
            for name, p in self.projects.items()
        }
