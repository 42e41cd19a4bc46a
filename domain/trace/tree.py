"""A build as a tree: phases, the tasks in them side by side, their attempts, and the steps of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from domain.ports.store import Event
from domain.trace.delivery.branch import branch
from domain.trace.delivery.told import OVER, is_delivery, runs_alone
from domain.trace.node import Node
from domain.trace.order import in_order, key_of, undone
from domain.trace.spending import total
from domain.trace.steps import Steps

STATUS = {
    "task.started": "running",
    "task.merged": "merged",
    "task.sent_back": "sent back",
    "task.stuck": "stuck",
    "task.skipped": "skipped",
    "task.blocked": "blocked",
}
GOES_ON = ("running", "written", "stuck")


@dataclass(slots=True, kw_only=True)
class _Section:
    """The events of one phase. ``undone`` when a reset went back behind its begin; ``end`` None while it goes on."""

    phase: str
    start: int
    undone: bool
    end: int | None = None
    events: list[Event] = field(default_factory=list)


def fold_trace(build: str, events: Iterable[Event], *, phase: str = "", task: str = "") -> Node:
    """The tree, or what is of one phase or one task of it. The same for any order of arrival and any repeats."""
    ordered = in_order(events)
    steps, over = Steps(ordered), _end(ordered)
    sections = [section for section in _sections(ordered, over) if phase in ("", section.phase)]
    nodes = [_phase(section, steps, only=task) for section in sections]
    shown = [node for node in nodes if node.children or not task]
    return Node(
        kind="build",
        name=build,
        status=str(over.data["status"]) if over else "running",
        start=ordered[0].at if ordered else 0,
        end=over.at if over else None,
        text=str(over.data.get("sentence", "")) if over else "",
        spent=total(node.spent for node in shown),
        children=tuple(shown),
    )


def phases_of(events: Iterable[Event]) -> Iterator[tuple[str, Event]]:
    """Every event once, in time order, each with the phase in which it happened."""
    ordered = in_order(events)
    for section in _sections(ordered, _end(ordered)):
        yield from ((section.phase, event) for event in section.events)


def _end(ordered: Sequence[Event]) -> Event | None:
    """The last end, unless a reset undid it or a phase came after it."""
    lost = undone(ordered)
    ends = ("build.ended", OVER) if runs_alone(ordered) else ("build.ended",)
    frame = [e for e in ordered if e.kind in ("build.phase", *ends) and key_of(e) not in lost]
    return frame[-1] if frame and frame[-1].kind in ends else None


def _sections(ordered: Sequence[Event], over: Event | None) -> list[_Section]:
    """The phases in time order; what comes before the first is of intake, or of a delivery that runs alone."""
    lost = undone(ordered)
    sections: list[_Section] = []
    standing, runs = "deliver" if runs_alone(ordered) else "intake", dict[str, str]()
    for event in ordered:
        fresh = event.kind == "build.phase"
        name = str(event.data["phase"]) if fresh else standing if not sections else sections[-1].phase
        if runs.setdefault(event.first_run, event.run) != event.run and not fresh:
            runs[event.first_run] = event.run
            name = standing  # a reset goes on in the phase that it went back to
        same = bool(sections) and sections[-1].phase == name and (len(sections) == 1 or not fresh)
        if not same or (name == standing and sections[-1].undone and key_of(event) not in lost):
            sections.append(_Section(phase=name, start=event.at, undone=key_of(event) in lost))
        if fresh and key_of(event) not in lost:
            standing = name
        sections[-1].events.append(event)
    for section, following in zip_longest(sections, sections[1:]):
        section.end = following.start if following else over.at if over else None
    return sections


def _phase(section: _Section, steps: Steps, *, only: str) -> Node:
    own = [event for event in section.events if not event.task and not _is_of_delivery(section, event)]
    tasks: dict[str, list[Event]] = {}
    for event in section.events:
        if event.task and only in ("", event.task):
            tasks.setdefault(event.task, []).append(event)
    children = [_task(name, rows, section, steps) for name, rows in tasks.items()]
    children += [*steps.of(own, since=section.start), *_delivery(section, steps)] if not only else ()
    children.sort(key=lambda node: node.start)
    return Node(
        kind="phase",
        name=section.phase,
        status="reset" if section.undone else "running" if section.end is None else "done",
        start=section.start,
        end=section.end,
        spent=total(node.spent for node in children),
        children=tuple(children),
    )


def _is_of_delivery(section: _Section, event: Event) -> bool:
    """A build that delivers asks only through its delivery."""
    return is_delivery(event) or (section.phase == "deliver" and event.kind.startswith("ask."))


def _delivery(section: _Section, steps: Steps) -> list[Node]:
    """The delivery of a phase, if it has one."""
    rows = [event for event in section.events if _is_of_delivery(section, event)]
    if not any(map(is_delivery, rows)):
        return []
    asks = steps.of((event for event in rows if event.kind.startswith("ask.")), since=section.start)
    return [branch(rows, asks=asks, end=section.end)]


def _task(name: str, rows: Sequence[Event], section: _Section, steps: Steps) -> Node:
    attempts: dict[int, list[Event]] = {}
    for event in rows:
        attempts.setdefault(event.attempt, []).append(event)
    status = _status(rows)
    goes_on = section.end is None and status in GOES_ON
    last = max(attempts)
    children = [
        _attempt(number, of_it, steps, goes_on=goes_on and status == "running" and number == last)
        for number, of_it in attempts.items()
        if number
    ]
    children += steps.of(_beside(rows), since=rows[0].at)
    children.sort(key=lambda node: node.start)
    return Node(
        kind="task",
        name=name,
        status=status,
        start=rows[0].at,
        end=None if goes_on else rows[-1].at,
        spent=total(node.spent for node in children),
        children=tuple(children),
    )


def _beside(rows: Sequence[Event]) -> list[Event]:
    """What is of the task and of no attempt, and the ends of its sagas, from which merges are waited for."""
    return [event for event in rows if not event.attempt or event.kind == "task.ended"]


def _status(rows: Sequence[Event]) -> str:
    status = "running"
    for event in rows:
        if event.kind == "task.ended":
            status = "written" if event.data["status"] == "green" else str(event.data["status"])
        status = STATUS.get(event.kind, status)
    return status


def _attempt(number: int, rows: Sequence[Event], steps: Steps, *, goes_on: bool) -> Node:
    children = steps.of(rows, since=rows[0].at)
    judged = [node.status for node in children if node.kind in ("gates", "apply") and node.status != "applied"]
    return Node(
        kind="attempt",
        name=f"#{number}",
        status="running" if goes_on else judged[-1] if judged else "ended",
        start=rows[0].at,
        end=None if goes_on else rows[-1].at,
        spent=total(node.spent for node in children),
        children=children,
    )
