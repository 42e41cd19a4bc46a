"""The store in one process's memory: the reference of what the ports mean, and for tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from adapters.store.content import canonical, check_outcome, event_digest, event_key, plain
from domain.build.view import fold_row
from domain.errors import EventConflict, KeyConflict, Overtaken
from domain.ports.language_model import CallKey
from domain.ports.store import BuildRow, CallTry, Event, RecordedCall, UndoRecord


class MemoryEventLog:
    """``domain.ports.store.EventLog``."""

    def __init__(self, rows: dict[str, BuildRow]) -> None:
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
        return new

    async def read(self, build: str, *, after: int = 0) -> Sequence[tuple[int, Event]]:
        return [(at, e) for at, e in enumerate(self._log.values(), 1) if e.build == build and at > after]


class MemoryCalls:
    """``domain.ports.store.Calls``."""

    def __init__(self) -> None:
        self._tries: dict[tuple[str, int], CallTry] = {}
        self._requests: dict[tuple[str, int], str] = {}
        self._answers: dict[str, tuple[int, RecordedCall]] = {}

    async def find(self, key: CallKey, *, request: str) -> RecordedCall | None:
        if str(key) not in self._answers:
            return None
        _, answer = self._answers[str(key)]
        if answer.request != request:
            raise KeyConflict(f"call {key} has answered another request")
        return answer

    async def begin(self, key: CallKey, *, build: str, request: str, model: str) -> int:
        if str(key) in self._answers:
            raise Overtaken(f"call {key} was answered meanwhile")
        earlier = [(place, call) for place, call in self._tries.items() if call.key == str(key)]
        for place, call in earlier:
            if call.state == "running":
                self._tries[place] = replace(call, state="unknown")
        number = len(earlier) + 1
        begun = CallTry(key=str(key), build=build, number=number, model=model, state="running", fault="", usage=None)
        self._tries[str(key), number] = begun
        self._requests[str(key), number] = request
        return number

    async def end(self, key: CallKey, number: int, *, outcome: RecordedCall | str) -> None:
        place = (str(key), number)
        if place not in self._tries:
            raise KeyConflict(f"call {key} has no try {number}")
        if isinstance(outcome, RecordedCall) and outcome.request != self._requests[place]:
            raise KeyConflict(f"call {key}, try {number}, answers another request than it began")
        before, after = self._tries[place], self._ended(place, outcome)
        answer = self._answers.get(str(key), (0, outcome))
        changed = before != after or (after.state == "answered" and answer[1] != outcome)
        if before.state not in ("running", "unknown") and changed:
            raise KeyConflict(f"call {key}, try {number}, has ended otherwise")
        self._tries[place] = after
        if after.state == "answered" and isinstance(outcome, RecordedCall):
            self._answers[str(key)] = (number, outcome)
        if after.fault == Overtaken.__name__:
            raise Overtaken(f"call {key} was answered by another try before try {number}")

    async def tries(self, build: str) -> Sequence[CallTry]:
        return [call for call in self._tries.values() if call.build == build]

    def _ended(self, place: tuple[str, int], outcome: RecordedCall | str) -> CallTry:
        call = self._tries[place]
        if isinstance(outcome, str):
            return replace(call, state="failed", fault=outcome)
        ended = replace(call, model=outcome.model, usage=outcome.usage)
        if self._answers.get(call.key, place[1:])[0] != call.number:
            return replace(ended, state="failed", fault=Overtaken.__name__)
        return replace(ended, state="answered", fault="")


class MemoryUndoLog:
    """``domain.ports.store.UndoLog``."""

    def __init__(self) -> None:
        self._records: dict[str, UndoRecord] = {}
        self._outcomes: dict[str, str] = {}

    async def register(self, record: UndoRecord) -> None:
        record = replace(record, data=plain(f"undo record {record.key}", record.data))
        if self._records.setdefault(record.key, record) != record:
            raise KeyConflict(f"undo record {record.key} is there with another content")
        self._outcomes.setdefault(record.key, "")

    async def close(self, key: str, *, outcome: str) -> None:
        if check_outcome(key, before=self._outcomes.get(key), after=outcome):
            self._outcomes[key] = outcome

    async def open(self) -> Sequence[UndoRecord]:
        return [record for key, record in self._records.items() if not self._outcomes[key]]


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
    """The four ports on dictionaries."""

    def __init__(self) -> None:
        rows: dict[str, BuildRow] = {}
        self.events = MemoryEventLog(rows)
        self.calls = MemoryCalls()
        self.undo = MemoryUndoLog()
        self.builds = MemoryBuilds(rows)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Nothing to release."""


async def open_memory(url: str) -> MemoryStore:
    """A new, empty store, whatever follows ``memory:``."""
    return MemoryStore()


def _content(event: Event) -> str:
    return event_digest(event, canonical(f"event {event.key}", dict(event.data)))
