"""What the log keeps of one phase of a build: the snapshot before it, its rows, and the inputs of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from domain.build.names import task_saga_id
from domain.errors import InvalidInput, UnknownName
from domain.ports.store import Event
from domain.trace.order import in_order, key_of, undone

STARTED, ENDED = "build.started", "build.ended"
TAKEN, RESTORED = "snapshot.taken", "build.restored"
INTAKE, TASKS, DELIVER = "intake", "tasks", "deliver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One phase as it was recorded. ``entry`` is the row of the snapshot before it, None for intake; ``rows`` are the
    phase's own, in time order. ``title``, ``user``, ``spec`` (a digest) and ``base`` are what the build began with."""

    build: str
    project: str
    phase: str
    entry: Event | None
    rows: tuple[Event, ...]
    title: str = ""
    user: str = ""
    spec: str = ""
    base: str = ""

    @property
    def sagas(self) -> tuple[tuple[Event, ...], ...]:
        """The rows of each task's saga of this phase, in the order in which they began."""
        begun = [row for row in self.rows if row.kind == "task.started"]
        return tuple(tuple(row for row in self.rows if row.first_run == first.first_run) for first in begun)

    @property
    def side_by_side(self) -> bool:
        """Whether tasks ran at the same time: the order of their merges was chance then."""
        spans = [(rows[0].at, rows[-1].at) for rows in self.sagas]
        return any(later[0] <= earlier[1] for earlier, later in pairwise(spans))

    def commits(self) -> tuple[str, ...]:
        """What the mirror has to hold before the phase begins."""
        entry = self.entry.data if self.entry else {}
        bases = [str(rows[0].data.get("base", "")) for rows in self.sagas]
        return tuple(dict.fromkeys(filter(None, (str(entry.get("base", "")), str(entry.get("head", "")), *bases))))

    def target(self) -> str:
        """Where the project's branch was: what the result was brought on top of, else the base."""
        onto = [str(row.data["onto"]) for row in self.rows if row.kind == "merge.tried" and not row.task]
        known = str(self.entry.data.get("base", "")) if self.entry else ""
        return (onto[0] if onto and self.phase == "land" else "") or known or self.base


def part_of(build: str, events: Sequence[Event], *, phase: str, round: int = 1, earlier: Sequence[Event] = ()) -> Part:
    """The ``round``-th time (from 1) that ``build`` came to ``phase``. ``earlier`` are the rows of the build that it
    goes on from, if it does. Raises UnknownName for a phase without a snapshot before it, InvalidInput."""
    ordered = in_order(events)
    lost = undone(ordered)
    standing = [event for event in ordered if key_of(event) not in lost]
    began = next((event for event in standing if event.kind == STARTED), None)
    if began is None:
        raise InvalidInput(f"the log of {build} does not have its beginning: nothing can be replayed")
    own = [event for event in standing if event.first_run == began.first_run]
    entry, start = _entry(build, own, phase=phase, round=round, earlier=earlier)
    end = _end(build, own, phase=phase, start=start)
    begin, over = own[max(start - 1, 0)].at, own[min(end, len(own) - 1)].at
    theirs = [e for e in standing if e.first_run != began.first_run and e.task and begin < e.at <= over]
    admitted = _first(own, "build.admitted")
    return Part(
        build=build,
        project=str(admitted.get("project", "") or began.data.get("project", "")),
        phase=phase,
        entry=entry,
        rows=tuple(in_order([*own[start:end], *theirs, *_ending(own, end)])),
        title=str(began.data.get("title", "")),
        user=str(began.data.get("user", "")),
        spec=str(admitted.get("spec", "")),
        base=str(_first(own, "build.base").get("commit", "")),
    )


def parent_of(events: Iterable[Event]) -> str:
    """The build that this one goes on from, "" for none."""
    return next((str(event.data.get("parent", "")) for event in events if event.kind == RESTORED), "")


def _entry(
    build: str, own: Sequence[Event], *, phase: str, round: int, earlier: Sequence[Event]
) -> tuple[Event | None, int]:
    """The snapshot before the phase, and the index of the phase's first row."""
    restored = next((n for n, event in enumerate(own) if event.kind == RESTORED), None)
    if phase == INTAKE:
        if restored is not None:
            raise InvalidInput(f"{build} went on from {own[restored].data.get('token')}: it had no intake of its own")
        return None, 0
    found: list[tuple[Event, int]] = []
    for number, event in enumerate(own):
        if number == restored and event.data.get("phase") == phase:
            token = event.data.get("token")
            found += [(row, number + 1) for row in earlier if row.kind == TAKEN and row.data.get("token") == token]
        if event.kind == TAKEN and event.data.get("phase") == phase and event.data.get("after") != phase:
            found.append((event, number + 1))
    if not found:
        known = dict.fromkeys(str(e.data.get("phase")) for e in own if e.kind == TAKEN)
        begins = () if restored is not None else (INTAKE,)
        raise UnknownName.among(f"phase of {build} with a snapshot before it", phase, [*begins, *known])
    if round > len(found):
        raise InvalidInput(f"{build} came to {phase} {len(found)} times: there is no round {round}")
    return found[round - 1]


def _end(build: str, own: Sequence[Event], *, phase: str, start: int) -> int:
    """The index after the phase's last row."""
    for number, event in enumerate(own[start:], start):
        if event.kind == TAKEN and event.data.get("phase") != phase:
            return number
        if event.kind == ENDED:
            return number + 1
    raise InvalidInput(f"{phase} of {build} has not ended yet: it is compared when it has")


def _ending(own: Sequence[Event], end: int) -> list[Event]:
    """How a phase ended that did not end its build: as the build would tell it if it had ended there."""
    if own[end - 1].kind == ENDED:
        return []
    return [replace(own[end], kind=ENDED, data={"commit": own[end].data.get("head", "")})]


def _first(own: Iterable[Event], kind: str) -> Mapping[str, Any]:
    return next((event.data for event in own if event.kind == kind), {})


def task_input(part: Part, rows: Sequence[Event], state: Mapping[str, Any]) -> dict[str, Any]:
    """The start input of one recorded task's saga, from its first row and from what the build carried into the phase.

    Raises InvalidInput where an older version kept too little of either.
    """
    started, base = rows[0].data, str(rows[0].data.get("base", ""))
    try:
        admitted, limits = state["admitted"], state["admitted"]["limits"]
        return {
            **{name: started[name] for name in ("base", "first", "baseline", "spec", "plan", "at")},
            **{name: started.get(name, "") for name in ("reason", "report", "change")},
            **{name: limits[name] for name in ("attempts", "output_tokens", "model_seconds", "test_seconds")},
            **{name: limits[name] for name in ("needs_rounds", "setup_seconds")},
            "build": part.build,
            "project": admitted["project"],
            "task": rows[0].task,
            "base_ran": _ran_on(part, base, state),
            "chain": admitted["coding"],
            "heartbeat": admitted["heartbeat"],
            "user": part.user,
            "budget": admitted["budget"],
            "sets_up": admitted["sets_up"],
            "packages": state["packages"],
            "strategy": state["strategy"],
            "trusted": state["base"]["commit"],
        }
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            f"the record of {task_saga_id(part.build, rows[0].task)} is of a version that kept too little to run it "
            f"again: {error} is missing"
        ) from None


def _ran_on(part: Part, base: str, state: Mapping[str, Any]) -> int:
    """How many tests ran on the head that a task was written on; -1 where that is not known."""
    if base == state["head"]["commit"]:
        return int(state["head"]["ran"])
    merged = [row for row in part.rows if row.kind == "task.merged" and row.data.get("commit") == base]
    return int(merged[-1].data.get("ran", -1)) if merged else -1
