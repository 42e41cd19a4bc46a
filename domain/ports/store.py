"""The relational store: event log, model calls, undo records, build numbers. All methods are safe across processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from domain.money.usage import Usage
from domain.ports.language_model import CallKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One fact of one saga run. ``(first_run, run, sequence)`` is its key; ``sequence`` counts from 1 in each run.

    ``at`` is workflow time, milliseconds since 1970 in UTC. ``data`` holds references, numbers and short texts only.
    ``task`` is "" for facts of the build itself, ``attempt`` 0 where there is none.
    """

    first_run: str
    run: str
    sequence: int
    build: str
    kind: str
    at: int
    task: str = ""
    attempt: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key in one word, as errors name it."""
        return f"{self.first_run}/{self.run}/{self.sequence}"


class EventLog(Protocol):
    """Append-only. The read model (``Builds``) is brought up to date in the same transaction."""

    async def append(self, events: Sequence[Event]) -> int:
        """Append what is not there yet and return how many were new. All or nothing.

        Raises EventConflict when a key is there with another content, EventUnreadable when an event that the read
        model needs lacks its data, InvalidInput when data is not JSON, StoreUnavailable, ResourceShort (disk full).
        """
        ...

    async def read(self, build: str, *, after: int = 0) -> Sequence[tuple[int, Event]]:
        """The build's events after position ``after``, each with its position: ascending in the order of commit.

        Raises EventUnreadable with the key of an event that is damaged, and marks that build's row; others are served.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A model call that ended. ``answer`` is the digest of the raw text, ``value`` of its canonical JSON ("" when it
    does not decode; then ``problems`` says why)."""

    request: str
    model: str
    answer: str
    value: str
    problems: tuple[str, ...]
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTry:
    """One try of a call, for people and sums. ``state`` is "running", "answered", "failed" or "unknown" (its worker
    died: the provider may have billed it). ``fault`` is the error's class name, or ""."""

    key: str
    build: str
    number: int
    model: str
    state: str
    fault: str
    usage: Usage | None


class Calls(Protocol):
    """What was asked of models, by logical attempt; money is counted here."""

    async def find(self, key: CallKey, *, request: str) -> RecordedCall | None:
        """The recorded answer of this logical attempt. Raises KeyConflict when it answered another request digest."""
        ...

    async def begin(self, key: CallKey, *, build: str, request: str, model: str) -> int:
        """Record that a try starts and return its number from 1. Earlier tries that never ended become "unknown".

        Raises Overtaken when the key was answered meanwhile: ``find`` has the answer.
        """
        ...

    async def end(self, key: CallKey, number: int, *, outcome: RecordedCall | str) -> None:
        """Record a try's end: its answer, or the class name of its fault. Repeating the same end changes nothing.

        A try that became "unknown" may still end. Raises Overtaken when another try answered first (this one's usage is
        kept, its answer is not), KeyConflict when there is no such try, it ended otherwise, or began another request.
        """
        ...

    async def tries(self, build: str) -> Sequence[CallTry]:
        """Every try of a build, in order of their start."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRecord:
    """How to undo an outward step: ``key`` is saga/step/attempt, ``action`` a compensation, ``data`` its input."""

    key: str
    build: str
    action: str
    data: Mapping[str, Any]


class UndoLog(Protocol):
    """Written before an outward step acts, closed when it is final or undone."""

    async def register(self, record: UndoRecord) -> None:
        """Repeating the same record changes nothing. Raises KeyConflict when the key is there with another content."""
        ...

    async def close(self, key: str, *, outcome: str) -> None:
        """``outcome`` is "final", "undone" or "failed: …"; a failed one may be closed again when it succeeds later.

        Repeating the same outcome changes nothing. Raises KeyConflict when there is no such record, or it is final or
        undone already and ``outcome`` says otherwise; InvalidInput for any other outcome.
        """
        ...

    async def open(self) -> Sequence[UndoRecord]:
        """Records that are not closed, oldest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRow:
    """A build as ``mendwork status`` lists it, folded from its events. Times in milliseconds since 1970; 0 = not yet.

    ``damaged`` is the key of an event that could not be read ("" when all could): the row is then as of before.
    """

    build: str
    project: str
    title: str
    phase: str
    status: str
    started: int
    ended: int
    damaged: str = ""


class Builds(Protocol):
    """The read model of builds, and their numbers."""

    async def reserve_number(self, project: str) -> int:
        """The next build number of a project, from 1, never given twice, also under races."""
        ...

    async def list(self, *, project: str | None = None, limit: int = 50) -> Sequence[BuildRow]:
        """Newest first."""
        ...

    async def get(self, build: str) -> BuildRow | None:
        """One build, or None."""
        ...


class Store(Protocol):
    """One database behind the four ports. Close it, or its threads keep the process alive."""

    @property
    def events(self) -> EventLog: ...

    @property
    def calls(self) -> Calls: ...

    @property
    def undo(self) -> UndoLog: ...

    @property
    def builds(self) -> Builds: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def close(self) -> None:
        """Release every connection. May be repeated; leaving the context does it too."""
        ...
