"""What a lane knows: who holds it, who waits, whether it is frozen, what production runs. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

DELIVER, ROLLBACK = "deliver", "rollback"
PROMOTED, ROLLED_BACK, UNTOUCHED, UNCLEAR = "promoted", "rolled back", "untouched", "unclear"
OUTCOMES = (PROMOTED, ROLLED_BACK, UNTOUCHED, UNCLEAR)

MOST_HISTORY = 10
"""Older releases are in the store."""
MOST_FACTS = 20
MOST_LEFT = 100
MOST_WAITING = 200
MOST_LOOKS = 3
"""So often a holder may be unknown to the server before it counts as lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A saga that joined. ``release`` is its number, ``kind`` "deliver" or "rollback", ``run`` the run of the saga that
    joined ("" when it did not say), ``at`` when, in ms since 1970."""

    saga: str
    release: int
    kind: str = DELIVER
    commit: str = ""
    by: str = ""
    run: str = ""
    at: int = 0

    @property
    def key(self) -> str:
        """This joining, and no other one of the same saga."""
        return f"{self.saga}/{self.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """``since`` is when it was granted, ``looked`` when its lease was last looked at (ms since 1970). ``heard`` is
    whether it was told; ``unknown`` counts the looks in a row at which the server did not know it."""

    place: Place
    since: int
    looked: int
    heard: bool = False
    unknown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """A release that production saw; ``outcome`` as it left the lane, ``at`` when (ms since 1970)."""

    number: int
    commit: str = ""
    artifact: str = ""
    config: str = ""
    outcome: str = PROMOTED
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """Why no delivery is let through. ``release`` is the one that was rolled back or left unclear."""

    release: int
    saga: str
    outcome: str
    sentence: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """Who ended the last freeze, and why."""

    release: int
    by: str
    reason: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a saga is told. ``position`` counts from 1 in the queue (0: it does not wait), ``current`` is the release of
    production (0: none is known)."""

    saga: str
    granted: bool = False
    refused: bool = False
    reason: str = ""
    position: int = 0
    current: int = 0

    def wire(self) -> dict[str, Any]:
        """As the signal ``lane`` carries it."""
        told = asdict(self)
        del told["saga"]
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that happened and needs no answer, for people who look."""

    at: int
    saga: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneState:
    """Everything that a lane carries into its next run: references, numbers, short sentences.

    ``lease`` and ``heartbeat`` are seconds, ``history_events`` bounds one run's history. ``ready`` is whether the
    record of releases was read: nobody is let in before. ``outbox`` is what sagas are still to be told, one word each;
    ``left`` are the joinings that are over, so that a late repeat of one does not queue again.
    """

    project: str = ""
    environment: str = ""
    lease: float = 30.0
    heartbeat: float = 5.0
    history_events: int = 2_000
    ready: bool = False
    holder: Holder | None = None
    queue: tuple[Place, ...] = ()
    frozen: Freeze | None = None
    acknowledged: Acknowledged | None = None
    current: Shipped | None = None
    history: tuple[Shipped, ...] = ()
    outbox: tuple[Word, ...] = ()
    left: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()

    @property
    def live(self) -> int:
        """The release of production, 0 when none is known."""
        return self.current.number if self.current else 0


def view(state: LaneState) -> Mapping[str, Any]:
    """The state as the query shows it: plain JSON."""
    return {
        "project": state.project,
        "environment": state.environment,
        "lease": state.lease,
        "ready": state.ready,
        "holder": asdict(state.holder) if state.holder else None,
        "queue": [asdict(place) for place in state.queue],
        "frozen": asdict(state.frozen) if state.frozen else None,
        "acknowledged": asdict(state.acknowledged) if state.acknowledged else None,
        "current": asdict(state.current) if state.current else None,
        "history": [asdict(shipped) for shipped in state.history],
        "facts": [asdict(fact) for fact in state.facts],
    }


def details(state: LaneState) -> str:
    """A few lines of Markdown for Temporal's own pages."""
    lines = [f"production runs release **{state.live or 'unknown or none'}**"]
    if state.holder is not None:
        place = state.holder.place
        lines.append(f"held by `{place.saga}` ({place.kind} of release {place.release})")
    else:
        lines.append("free")
    waiting = [f"{n}. `{place.saga}` ({place.kind}, release {place.release})" for n, place in enumerate(state.queue, 1)]
    lines.extend(waiting[:10])
    if len(waiting) > 10:
        lines.append(f"and {len(waiting) - 10} more")
    if state.frozen is not None:
        lines.append(f"**frozen**: {frozen_sentence(state)}")
    return "\n\n".join(lines)


def frozen_sentence(state: LaneState) -> str:
    """Why deliveries wait, and what ends it; "" when they do not."""
    frozen = state.frozen
    if frozen is None:
        return ""
    how = "was rolled back" if frozen.outcome == ROLLED_BACK else "left production in an unclear state"
    why = f": {frozen.sentence}" if frozen.sentence else ""
    return (
        f"the lane is frozen since release {frozen.release} {how}{why}; deliveries go on after "
        f"`mendwork lane {state.project} --acknowledge --reason '…'`"
    )
