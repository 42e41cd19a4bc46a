"""Snapshots of a build between two phases: what it carries, pinned, and how another build goes on from there."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from activities.intake import Engine
from domain.errors import AlreadyRunning, BlobMissing, InvalidInput, TooLarge, UnknownName
from domain.ports.blobs import Blobs
from domain.ports.sagas import RUNNING, Sagas
from domain.ports.store import Store
from domain.ports.workspace import SnapshotPins
from domain.replay.snapshots import for_another_build, named, read_token, taken_in, with_models

MAX_STATE_BYTES = 256_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PinSnapshotInput:
    """``state`` is what the build carries, as JSON; ``commits`` are those that it needs."""

    project: str
    build: str
    number: int
    state: Mapping[str, Any]
    commits: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSnapshotInput:
    """``token`` is ``<build>@<number>``; ``fork``: the build may still run."""

    token: str
    fork: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSnapshot:
    """``phase`` is the next to run, ``state`` the digest of what is carried, ``spent`` what the build had used by then
    in micro-dollars, with what it had carried over itself; ``calls`` likewise."""

    token: str
    build: str
    number: int
    project: str
    phase: str
    state: str
    base: str
    head: str
    spent: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSnapshotInput:
    """Make the commits of a snapshot those of ``build``, a new one. ``models`` as in BuildRequest."""

    project: str
    build: str
    state: str
    base: str
    head: str
    models: tuple[str, ...] = ()


class Snapshots:
    """Runs where the mirrors are. ``models`` are the names that the configuration has."""

    def __init__(self, *, engine: Engine, pins: SnapshotPins, blobs: Blobs, models: Collection[str]) -> None:
        self._engine = engine
        self._pins = pins
        self._blobs = blobs
        self._models = models

    @activity.defn
    async def pin_snapshot(self, request: PinSnapshotInput) -> str:
        """Keep the state and its commits; return the state's digest. Raises TooLarge, RepositoryRefused."""
        # ASCII: a path that is not UTF-8 is carried as lone surrogates.
        content = json.dumps(request.state, sort_keys=True, separators=(",", ":")).encode()
        if len(content) > MAX_STATE_BYTES:
            raise TooLarge(f"the state has {len(content)} bytes, and a snapshot at most {MAX_STATE_BYTES}")
        project = self._engine.project(request.project).name
        await self._pins.pin_snapshot(project, build=request.build, number=request.number, commits=request.commits)
        return await self._blobs.put(content)

    @activity.defn
    async def restore_snapshot(self, request: RestoreSnapshotInput) -> Mapping[str, Any]:
        """The state for the new build, its commits pinned. Limits and prices are the snapshot's.

        Raises InvalidInput for a snapshot that is not kept any more, UnknownName for a model or role,
        RepositoryRefused, BranchTaken.
        """
        project = self._engine.project(request.project)
        try:
            carried = for_another_build(json.loads(await self._blobs.get(request.state)))
            for digest in (carried["admitted"].get("spec"), carried.get("plan")):
                await self._blobs.get(digest or request.state)
        except BlobMissing as error:
            raise InvalidInput(
                f"what this snapshot holds is gone ({error}): project {project.name} keeps snapshots for "
                f"{project.retention.snapshots:g} days"
            ) from error
        carried["admitted"] = with_models(carried["admitted"], request.models, known=self._models)
        await self._pins.restore(project, build=request.build, base=request.base, head=request.head)
        return carried


class SnapshotBook:
    """Runs where the store is, in a process that may ask Temporal about other workflows."""

    def __init__(self, *, store: Store, sagas: Sagas) -> None:
        self._store = store
        self._sagas = sagas

    @activity.defn
    async def find_snapshot(self, request: FindSnapshotInput) -> FoundSnapshot:
        """What the token stands for. Raises InvalidInput, UnknownName for one that stands for nothing, with what there
        is; AlreadyRunning while its build is open and ``fork`` is not wanted; ServerUnavailable, StoreUnavailable."""
        build, number = read_token(request.token)
        row = await self._store.builds.get(build)
        if row is None:
            raise UnknownName.among("build", build, [each.build for each in await self._store.builds.list(limit=10)])
        found = named(build, number, taken_in(event for _, event in await self._store.events.read(build)))
        if not request.fork and (await self._sagas.standings([build]))[build].state == RUNNING:
            raise AlreadyRunning(
                f"{build} is still open: go on from {found.token} beside it with --fork, or end it first"
            )
        return FoundSnapshot(
            token=found.token,
            build=build,
            number=number,
            project=row.project,
            phase=found.phase,
            state=found.state,
            base=found.base,
            head=found.head,
            spent=found.spent,
            calls=found.calls,
        )
