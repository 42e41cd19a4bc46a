"""The relational store: event log, model calls, undo records, build numbers; ledger, places and releases have files of
their own. All methods are safe across processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from domain.money.budget import Budget, Payer
from domain.money.charge import Charge
from domain.money.usage import Bill, Quote, Usage
from domain.ports.kept.arrivals import Arrivals
from domain.ports.kept.keeping import References
from domain.ports.language_model import CallKey
from domain.ports.ledger import Ledger, Places
from domain.ports.releases import Releases
from domain.trace.rebuilding import Rebuilt


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

    async def rebuild(self, build: str, events: Sequence[Event], *, dry_run: bool = False) -> Rebuilt:
        """Make the build's rows what ``events`` say, in one transaction, and fold its row anew without its mark.

        Whole rows that no event explains stay: see Rebuilt. With ``dry_run`` nothing changes. Raises InvalidInput when
        an event is of another build, EventConflict when two tell different things under one key, or when its key is a
        whole row of another build; StoreUnavailable, ResourceShort.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunCall:
    """A try that is about to be made. ``request`` is the digest of what is asked, ``at`` its start in ms since 1970.

    ``bound`` is the most that it can cost in micro-dollars: it is held on the payer's accounts, within ``budget``. It
    is None, like ``quote``, where no price is known: nothing can be held then.
    """

    request: str
    model: str
    payer: Payer
    at: int
    budget: Budget
    bound: int | None = None
    quote: Quote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A model call that ended. ``answer`` is the digest of the raw text, ``value`` of its canonical JSON ("" when it
    does not decode; then ``problems`` says why). ``pinned`` is what was pinned of the model's sampling.

    The last two are the store's own: the ``bound`` that was held, and ``warnings``, sentences about limits in sight.
    """

    request: str
    model: str
    answer: str
    value: str
    problems: tuple[str, ...]
    usage: Usage
    pinned: Mapping[str, Any] = field(default_factory=dict)
    bound: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def bill(self) -> Bill:
        """An answer is always billed."""
        return Bill(usage=self.usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCall:
    """A try without an answer. ``fault`` is the error's class name, ``bill`` what it cost; None when nobody knows."""

    fault: str
    bill: Bill | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTry:
    """One try of a call, for people and sums. ``state`` is "running", "answered", "failed" or "unknown" (its worker
    died, or the answer was lost in flight: the provider may have billed it). ``fault`` is the error's class name.

    ``charge`` is what it counts for on its payer's accounts, ``price`` the version of its model's price (0: none).
    """

    key: str
    build: str
    number: int
    model: str
    state: str
    fault: str
    usage: Usage | None
    payer: Payer
    attempt: int
    at: int
    charge: Charge
    price: int = 0
    pinned: Mapping[str, Any] = field(default_factory=dict)


class Calls(Protocol):
    """What was asked of models, by logical attempt. A call's row and the accounts that it is counted on change
    together, in one transaction."""

    async def find(self, key: CallKey, *, request: str) -> RecordedCall | None:
        """The recorded answer of this logical attempt. Raises KeyConflict when it answered another request digest."""
        ...

    async def begin(self, key: CallKey, call: BegunCall) -> int:
        """Record that a try starts, hold its bound, and return its number from 1. Earlier tries that never ended become
        "unknown", and what they held with them.

        Raises Overtaken when the key was answered meanwhile: ``find`` has the answer. Raises BudgetExhausted when a
        limit does not leave room for the bound, Busy when only running calls are in the way; nothing is held then.
        """
        ...

    async def end(self, key: CallKey, number: int, *, outcome: RecordedCall | FailedCall) -> tuple[str, ...]:
        """Record a try's end and settle what it cost. Repeating the same end changes nothing. Returns the warnings: a
        sentence for each account that has come to 80 % of its limit, once for each account and limit.

        An answer whose cost the provider did not tell stays counted as unknown, and so does a failed call without a
        bill. A try that became "unknown" may still end. Raises Overtaken when another try answered first (this one's
        usage is kept, its answer is not), KeyConflict when there is no such try, it ended otherwise, or began another
        request.
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
        """Repeating the same record keeps it open; one that was closed opens again: a build that was reset acts again.

        Raises KeyConflict when the key is there with another content.
        """
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
    """One database behind the nine ports. Close it, or its threads keep the process alive."""

    @property
    def events(self) -> EventLog: ...

    @property
    def calls(self) -> Calls: ...

    @property
    def undo(self) -> UndoLog: ...

    @property
    def builds(self) -> Builds: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def places(self) -> Places: ...

    @property
    def releases(self) -> Releases: ...

    @property
    def references(self) -> References: ...

    @property
    def arrivals(self) -> Arrivals: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def close(self) -> None:
        """Release every connection. May be repeated; leaving the context does it too."""
        ...
