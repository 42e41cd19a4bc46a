"""The store in one process's memory: the reference of what the ports mean, and for tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from adapters.store.arrivals.bell import Bell
from adapters.store.arrivals.memory import MemoryArrivals
from adapters.store.content import canonical, check_outcome, event_digest, event_key, plain
from adapters.store.delivery.memory import MemoryReleases
from adapters.store.money.memory import MemoryCalls
from adapters.store.money.memory_ledger import MemoryLedger, MemoryPlaces
from adapters.store.references.memory import MemoryReferences
from domain.build.view import fold_row
from domain.errors import EventConflict, InvalidInput, KeyConflict
from domain.ports.store import BuildRow, Event, UndoRecord
from domain.trace.rebuilding import Rebuilt, compare


class MemoryEventLog:
    """``domain.ports.store.EventLog``."""

    def __init__(self, rows: dict[str, BuildRow]) -> None:
        self.bell = Bell()
        self._log: dict[tuple[str, str, int], Event] = {}
        self._rows = rows

    async def append(self, events: Sequence[Event]) -> int:
        log, rows = dict(self._log), {}
        for event in events:
            kept = log.setdefault(event_key(event), replace(event, data=plain(f"event {event.key}", event.data)))
            if _content(kept) != _content(event):
                raise EventConflict(f"event {event.key} is in the log with another content")
        for build in {event.build for event in events}:
            row = fold_row(event for event in log.values() if event.build == build and not event.task)
            if row is not None:
                rows[build] = row
        new = len(log) - len(self._log)
        self._log = log
        self._rows.update(rows)
        for build in {event.build for event in events} if new else ():
            self.bell.ring(build)
        return new

    async def read(self, build: str, *, after: int = 0) -> Sequence[tuple[int, Event]]:
        return [(at, e) for at, e in enumerate(self._log.values(), 1) if e.build == build and at > after]

    async def has(self, build: str, after: int) -> bool:
        """Whether the build has an event after that position."""
        return bool(await self.read(build, after=after))

    def everything(self) -> list[Event]:
        """Of all builds, in the order of arrival."""
        return list(self._log.values())

    async def rebuild(self, build: str, events: Sequence[Event], *, dry_run: bool = False) -> Rebuilt:
        given: dict[tuple[str, str, int], Event] = {}
        for event in events:
            if event.build != build:
                raise InvalidInput(f"event {event.key} is of build {event.build}, not of {build}")
            if _content(given.setdefault(event_key(event), event)) != _content(event):
                raise EventConflict(f"event {event.key} is told with two contents")
        for key in given.keys() & self._log.keys():
            if self._log[key].build != build:
                raise EventConflict(f"event {given[key].key} is in the log as one of build {self._log[key].build}")
        stored = {key: _content(event) for key, event in self._log.items() if event.build == build}
        found = compare({key: _content(event) for key, event in given.items()}, stored)
        if not dry_run:
            for key in found.mended:
                del self._log[key]
            await self.append([given[key] for key in (*found.mended, *found.added)])
            row = fold_row(event for event in self._log.values() if event.build == build and not event.task)
            self._rows.pop(build, None)
            if row is not None:
                self._rows[build] = row
        return found


class MemoryUndoLog:
    """``domain.ports.store.UndoLog``."""

    def __init__(self) -> None:
        self._records: dict[str, UndoRecord] = {}
        self._outcomes: dict[str, str] = {}

    async def register(self, record: UndoRecord) -> None:
        record = replace(record, data=plain(f"undo record {record.key}", record.data))
        if self._records.setdefault(record.key, record) != record:
            raise KeyConflict(f"undo record {record.key} is there with another content")
        self._outcomes[record.key] = ""

    async def close(self, key: str, *, outcome: str) -> None:
        if check_outcome(key, before=self._outcomes.get(key), after=outcome):
            self._outcomes[key] = outcome

    async def open(self) -> Sequence[UndoRecord]:
        return [record for key, record in self._records.items() if not self._outcomes[key]]

    def every(self) -> list[UndoRecord]:
        """Open and closed ones."""
        return list(self._records.values())


class MemoryBuilds:
    """``domain.ports.store.Builds``."""

    def __init__(self, rows: dict[str, BuildRow]) -> None:
        self._rows = rows
        self._numbers: Counter[str] = Counter()

    async def reserve_number(self, project: str) -> int:
        self._numbers[project] += 1
        return self._numbers[project]

    async def list(self, *, project: str | None = None, limit: int = 50) -> Sequence[BuildRow]:
        rows = [row for row in self._rows.values() if project in (None, row.project)]
        return sorted(rows, key=lambda row: (row.started, row.build), reverse=True)[:limit]

    async def get(self, build: str) -> BuildRow | None:
        return self._rows.get(build)


class MemoryStore:
    """The nine ports on dictionaries."""

    def __init__(self) -> None:
        rows: dict[str, BuildRow] = {}
        self.events = MemoryEventLog(rows)
        self.calls = MemoryCalls()
        self.undo = MemoryUndoLog()
        self.builds = MemoryBuilds(rows)
        self.ledger = MemoryLedger(self.calls)
        self.places = MemoryPlaces()
        self.releases = MemoryReleases()
        self.references = MemoryReferences(self)
        self._bell = self.events.bell
        self.arrivals = MemoryArrivals(self._bell, self.events.has)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Nothing to release; who waits for news waits no longer."""
        self._bell.close()


async def open_memory(url: str) -> MemoryStore:
    """A new, empty store, whatever follows ``memory:``."""
    return MemoryStore()


def _content(event: Event) -> str:
    return event_digest(event, canonical(f"event {event.key}", dict(event.data)))
