"""Finding builds whose workflow was stopped from outside, and what they left undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from domain.build.names import task_saga_id
from domain.delivery.requests import delivery_saga_id
from domain.errors import EventUnreadable
from domain.ports.releases import OPEN, Release
from domain.ports.sagas import RUNNING, STOPPED, Sagas, Standing
from domain.ports.store import Event, Store, UndoRecord

MOST_BUILDS = 1000
"""How many of the newest builds are looked at; an open undo record is looked at whatever its build's age."""
MOST_RELEASES = 100
"""How many of a project's newest releases are looked at."""
AT_ONCE = 50
"""How many orphans one look returns; the next look finds the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindOrphansInput:
    """``most`` orphans are returned at once."""

    most: int = AT_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamineBuildInput:
    """Which build to look at."""

    build: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireHoldsInput:
    """Holds of lost calls from before ``before`` (ms since 1970) are written off."""

    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenUndo:
    """An undo record as it lies in the store; ``data`` is the compensation's input."""

    key: str
    action: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAsk:
    """An ask that nobody can answer any more."""

    id: str
    about: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTask:
    """A task that the log shows running, and its last attempt."""

    id: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """``how`` says what became of its workflow, as in "was terminated"; "" when it is no orphan (any more).

    ``undo`` is newest first. ``listed`` is whether the log shows the build as running. ``release`` is the open one that
    it owned, when it was a delivery.
    """

    build: str
    how: str = ""
    listed: bool = False
    undo: tuple[OpenUndo, ...] = ()
    tasks: tuple[OpenTask, ...] = ()
    asks: tuple[OpenAsk, ...] = ()
    release: Release | None = None


class Sweeping:
    """Runs beside the store, in a process that may ask Temporal about other workflows."""

    def __init__(self, *, store: Store, sagas: Sagas) -> None:
        self._store = store
        self._sagas = sagas

    @activity.defn
    async def find_orphans(self, request: FindOrphansInput) -> tuple[str, ...]:
        """Builds that were stopped, tasks and all, and left something open. Raises ServerUnavailable, StoreUnavailable.

        What this server does not know may run on another one, and is left alone; so is a build whose log is damaged:
        nobody can tell which tasks it has.
        """
        suspects = [record.build for record in await self._store.undo.open()]
        suspects += [row.build for row in await self._store.builds.list(limit=MOST_BUILDS) if not row.ended]
        stopped = [name for name, how in (await self._sagas.standings(suspects)).items() if how.state == STOPPED]
        orphans: list[str] = []
        for build in stopped:
            if len(orphans) < request.most and await self._is_still(build):
                orphans.append(build)
        return tuple(orphans)

    @activity.defn
    async def examine_build(self, request: ExamineBuildInput) -> Orphan:
        """What one build left open, as of now. Raises ServerUnavailable, StoreUnavailable, EventUnreadable."""
        build = request.build
        standing = (await self._sagas.standings([build]))[build]
        events = [event for _, event in await self._store.events.read(build)]
        if standing.state != STOPPED or not await self._tasks_are_over(build, events):
            return Orphan(build=build)
        return await self._orphan(build, standing, events)

    @activity.defn
    async def expire_holds(self, request: ExpireHoldsInput) -> int:
        """How many holds were written off; they go on counting against their limits. Raises StoreUnavailable."""
        return await self._store.ledger.expire(before=request.before)

    async def _orphan(self, build: str, standing: Standing, events: Sequence[Event]) -> Orphan:
        row = await self._store.builds.get(build)
        records = [record for record in await self._store.undo.open() if record.build == build]
        return Orphan(
            build=build,
            how=standing.how,
            listed=row is not None and not row.ended,
            undo=tuple(OpenUndo(key=r.key, action=r.action, data=dict(r.data)) for r in reversed(records)),
            tasks=open_tasks(events),
            asks=open_asks(events),
            release=await self._release(build, records, events),
        )

    async def _release(self, saga: str, records: Sequence[UndoRecord], events: Sequence[Event]) -> Release | None:
        """A delivery's own: every undo record, and its first row, name its project."""
        began = [event.data["project"] for event in events if event.kind == "delivery.began"]
        projects = {str(name) for name in (*began, *(record.data.get("project", "") for record in records)) if name}
        for project in sorted(projects):
            for release in await self._store.releases.list(project, limit=MOST_RELEASES):
                if release.saga == saga and release.status == OPEN:
                    return release
        return None

    async def _is_still(self, build: str) -> bool:
        try:
            events = [event for _, event in await self._store.events.read(build)]
        except EventUnreadable as error:
            activity.logger.warning("%s is stopped and cannot be swept: %s", build, error)
            return False
        return await self._tasks_are_over(build, events)

    async def _tasks_are_over(self, build: str, events: Iterable[Event]) -> bool:
        sagas = [delivery_saga_id(build), *(task_saga_id(build, task) for task in known_tasks(events))]
        standings = await self._sagas.standings(sagas)
        return all(standing.state != RUNNING for standing in standings.values())


def known_tasks(events: Iterable[Event]) -> tuple[str, ...]:
    """Every task that a build has planned or begun: a saga that was just started has no row of its own yet."""
    tasks: dict[str, None] = {}
    for event in events:
        if event.kind == "build.planned":
            tasks |= dict.fromkeys(str(task["id"]) for task in event.data["tasks"])
        elif event.task:
            tasks[event.task] = None
    return tuple(tasks)


def open_tasks(events: Iterable[Event]) -> tuple[OpenTask, ...]:
    """Tasks that began and did not end, in the order in which they began."""
    running: dict[str, int] = {}
    for event in events:
        if event.task and event.kind == "task.started":
            running[event.task] = event.attempt
        elif event.kind == "task.ended":
            running.pop(event.task, None)
        elif event.task in running:
            running[event.task] = max(running[event.task], event.attempt)
    return tuple(OpenTask(id=task, attempt=attempt) for task, attempt in running.items())


def open_asks(events: Iterable[Event]) -> tuple[OpenAsk, ...]:
    """Asks that were opened and not closed, oldest first."""
    waiting: dict[str, OpenAsk] = {}
    for event in events:
        if event.kind == "ask.opened":
            name = str(event.data["id"])
            waiting[name] = OpenAsk(id=name, about=str(event.data.get("about", "")), task=event.task)
        elif event.kind == "ask.closed":
            waiting.pop(str(event.data["id"]), None)
    return tuple(waiting.values())
