"""Two runs of the same thing beside each other: the first fact whose digests are not the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from domain.ports.store import Event
from domain.trace.order import in_order, key_of, undone

COMPARED: Mapping[str, tuple[str, ...]] = {
    "ask.closed": ("about", "choice"),
    "ask.opened": ("about",),
    "attempt.phase": ("phase",),
    "build.base": ("commit", "usable", "green", "ran", "failing", "baseline"),
    "build.ended": ("commit", "fault"),
    "build.phase": ("phase",),
    "build.planned": ("plan",),
    "build.taken": ("commit",),
    "call": ("step", "turn", "model", "prompt", "outcome", "answer", "value"),
    "change.applied": ("commit", "written", "diff", "touched"),
    "change.needs": ("paths",),
    "change.refused": (),
    "context.selected": ("manifest", "tokens", "shown"),
    "gates.ran": ("green", "ran", "baseline", "new", "lost", "fixed", "known"),
    "merge.tried": ("onto", "commit", "conflicts"),
    "packages.unknown": ("names",),
    "plan.refused": ("plan",),
    "review.ended": ("findings", "high", "medium", "low"),
    "target.forwarded": ("old", "new"),
    "task.blocked": ("by",),
    "task.ended": ("status", "commit", "fault"),
    "task.merged": ("commit", "ran"),
    "task.sent_back": ("why", "times"),
    "task.skipped": (),
    "task.started": ("base", "first", "spec", "plan", "baseline"),
    "task.stuck": ("fault",),
    "task.weighed": ("risk", "confidence", "action"),
}
"""The kinds of facts that are compared, and by which of their fields, in this order. What a fact says in words, how
long it took, what it cost, and the digests of logs and packets, which hold times and money, are not compared. A "call"
is what was asked of a model, whether it was answered or not."""

_CALLS = {"call.answered": "answered", "call.failed": "failed"}
_NOTHING = "(nothing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where two runs part. ``what`` is the field of the fact ``kind`` that differs, or "fact" where one run has another
    fact there, or none. ``task`` is "" for facts of the build itself, ``attempt`` 0 where there is none; ``step`` is
    that of a call, "" for others. ``recorded`` and ``now`` are the two sides as texts, digests in full; ``sentence`` is
    what the fact of now says of a fault, "" for none."""

    task: str
    attempt: int
    kind: str
    what: str
    recorded: str
    now: str
    step: str = ""
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """``facts`` counts what the record has to compare; ``difference`` is None when all of it is the same."""

    facts: int
    difference: Difference | None = None

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return self.difference is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    kind: str
    task: str
    attempt: int
    values: Mapping[str, str]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A fact and its place in the record."""

    place: int
    fact: _Fact


def compare(recorded: Iterable[Event], now: Iterable[Event]) -> Compared:
    """Compare the rows of two runs of the same phase, or of the same task.

    Each task is compared by itself, and so are its own saga and what the build says of it: how rows of tasks that run
    side by side lie between each other is chance. Of several differences the one that the record comes to first counts.
    """
    then, again = _strands(recorded), _strands(now)
    found = [
        (place, difference)
        for strand in sorted({*then, *again})
        for place, difference in _parting(then.get(strand, ()), again.get(strand, ()))
    ]
    first = min(found, key=lambda pair: pair[0], default=None)
    return Compared(facts=sum(map(len, then.values())), difference=first[1] if first else None)


def _strands(events: Iterable[Event]) -> dict[tuple[str, bool], list[_Placed]]:
    """Facts by task, and by whether it is the task's own saga that tells them; without what a reset undid."""
    ordered = in_order(events)
    lost = undone(ordered)
    owners = {event.first_run for event in ordered if event.kind == "task.started"}
    strands: dict[tuple[str, bool], list[_Placed]] = {}
    for place, event in enumerate(ordered):
        fact = None if key_of(event) in lost else _fact(event)
        if fact is not None:
            strands.setdefault((event.task, event.first_run in owners), []).append(_Placed(place=place, fact=fact))
    return strands


def _fact(event: Event) -> _Fact | None:
    kind = "call" if event.kind in _CALLS else event.kind
    if kind not in COMPARED:
        return None
    data: dict[str, Any] = {"fault": "", **event.data, "outcome": _CALLS.get(event.kind, "")}
    values = {name: _text(data[name]) for name in COMPARED[kind] if name in data}
    return _Fact(kind=kind, task=event.task, attempt=event.attempt, values=values, sentence=_sentence(data))


def _sentence(data: Mapping[str, Any]) -> str:
    """Of the fault that a fact tells of."""
    if data["outcome"] == "answered":
        return ""
    faults = data.get("faults")
    last = faults[-1] if isinstance(faults, list) and faults and isinstance(faults[-1], Mapping) else {}
    return str(last.get("sentence", "") or (data.get("sentence", "") if data["fault"] else ""))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _parting(then: Sequence[_Placed], again: Sequence[_Placed]) -> Iterable[tuple[int, Difference]]:
    """The first difference of one strand with its place in the record, or nothing."""
    for one, other in zip_longest(then, again):
        difference = _difference(one.fact if one else None, other.fact if other else None)
        if difference is not None:
            yield (one.place if one else then[-1].place + 1 if then else 0), difference
            return


def _difference(one: _Fact | None, other: _Fact | None) -> Difference | None:
    named = one or other
    if named is None:
        return None
    if one is None or other is None or (one.kind, one.attempt) != (other.kind, other.attempt):
        return _parted(named, other, "fact", (_named(one), _named(other)))
    for name in COMPARED[one.kind]:
        # A field that one side does not have is one that its version did not tell.
        if name in one.values and name in other.values and one.values[name] != other.values[name]:
            return _parted(one, other, name, (one.values[name], other.values[name]))
    return None


def _parted(fact: _Fact, again: _Fact | None, what: str, sides: tuple[str, str]) -> Difference:
    return Difference(
        task=fact.task,
        attempt=fact.attempt,
        kind=fact.kind,
        what=what,
        recorded=sides[0],
        now=sides[1],
        step=fact.values.get("step", "") if fact.kind == "call" else "",
        sentence=again.sentence if again else "",
    )


def _named(fact: _Fact | None) -> str:
    if fact is None:
        return _NOTHING
    return fact.kind + (f" of attempt {fact.attempt}" if fact.attempt else "")
