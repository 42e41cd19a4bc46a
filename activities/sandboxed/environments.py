"""Setting up a project's dependencies, once for each state of what decides them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass

from temporalio import activity

from activities.documents import canonical
from activities.intake import Engine
from activities.sandboxed.bench import Bench, OnBench
from activities.sandboxed.installing import Installer, SetupFailure
from activities.sandboxed.manifests import Manifests
from domain.environment.project import Setup
from domain.errors import InvalidInput, SetupFailed
from domain.ports.blobs import Blobs
from domain.ports.kept.environments import KeptEnvironments
from domain.ports.workspace import Workspaces


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareInput:
    """``commit`` is to be tested. ``base`` is the commit whose manifests are trusted ("" trusts those of ``commit``),
    ``allowed`` are names of packages that a person has allowed since."""

    label: str
    project: str
    commit: str
    base: str = ""
    allowed: tuple[str, ...] = ()
    allow_missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """``key`` names the environment for later runs; "" with ``unknown`` names, which a person has to allow first.
    ``built``: it was not there yet; ``seconds`` of wall time and ``bytes`` on disk, ``log`` is a digest."""

    key: str
    unknown: tuple[str, ...] = ()
    built: bool = False
    seconds: float = 0.0
    bytes: int = 0
    log: str = ""


TOLD_SECONDS = 60.0
"""How long the versions of the tools are taken for what they were."""


class Environments(OnBench):
    """Runs where model-written code runs."""

    def __init__(
        self, *, engine: Engine, workspaces: Workspaces, blobs: Blobs, bench: Bench, manifests: Manifests
    ) -> None:
        super().__init__(engine=engine, workspaces=workspaces, blobs=blobs, bench=bench)
        self._manifests = manifests
        self._told: dict[str, tuple[float, str]] = {}

    @activity.defn
    async def prepare_environment(self, request: PrepareInput) -> Prepared:
        """The environment of a commit, set up unless it is there.

        Its key is the digest of all that decides what it is: the commit's manifests and lock files, the set-up, the
        system and the tools. Raises SetupFailed, TooLarge, IsolationMissing, ResourceShort, InvalidInput.
        """
        project = self._engine.project(request.project)
        if project.setup is None or self._bench.environments is None:
            raise InvalidInput(f"the project {project.name} has no set-up: give it a [setup] section with a command")
        started = time.monotonic()
        files = await self._manifests.of(project.name, project.setup, request.commit)
        if request.base not in ("", request.commit):
            before = await self._manifests.of(project.name, project.setup, request.base)
            if names := self._manifests.unknown(files, before=before, setup=project.setup, allowed=request.allowed):
                return Prepared(key="", unknown=names)
        installer = Installer(
            bench=self._bench,
            project=project,
            setup=project.setup,
            label=request.label,
            allow_missing=request.allow_missing,
        )
        key = environment_key(project.setup, files, tools=await self._tools(installer))
        log, bytes_ = "", await self._there(self._bench.environments, key)
        built = bytes_ is None
        if bytes_ is None:
            log = await self._build(installer, self._bench.environments, request.commit, key)
            bytes_ = await self._there(self._bench.environments, key) or 0
        seconds = round(time.monotonic() - started, 3)
        return Prepared(key=key, built=built, seconds=seconds, bytes=bytes_, log=log)

    async def _tools(self, installer: Installer) -> str:
        """What the sandbox says of its tools, asked again now and then: a machine is upgraded under its workers."""
        asked, told = self._told.get(installer.project.name, (0.0, ""))
        if not told or time.monotonic() > asked + TOLD_SECONDS:
            asked, told = time.monotonic(), await installer.tools()
            self._told[installer.project.name] = asked, told
        return told

    async def _there(self, environments: KeptEnvironments, key: str) -> int | None:
        async with environments.using(key) as used:
            return used.kept.bytes if used else None

    async def _build(self, installer: Installer, environments: KeptEnvironments, commit: str, key: str) -> str:
        """Set it up, keep it, and return the digest of what was printed."""
        name = installer.project.name
        async with (
            self._workspaces.checkout(name, commit, label=f"{installer.label}/setup") as folder,
            installer.installed(folder) as left,
        ):
            log = await self._blobs.put(left.output)
            if isinstance(left, SetupFailure):
                raise SetupFailed(f"{left.sentence}\n(all that it printed: blob {log})")
            async with environments.making(key, project=name) as tree:
                await installer.unpack(left.tar, tree)
        return log


def environment_key(setup: Setup, files: Mapping[str, bytes], *, tools: str) -> str:
    """64 hex digits; ``tools`` is what the sandbox says of its system and its programs."""
    decides = {
        "files": {path: hashlib.sha256(content).hexdigest() for path, content in files.items()},
        "command": setup.command,
        "folder": setup.folder,
        "registries": sorted(setup.registries),
        "tools": tools,
    }
    return hashlib.sha256(canonical(decides)).hexdigest()
