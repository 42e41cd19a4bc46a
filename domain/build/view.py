"""The read model as a fold of events: the same for any order of arrival and any number of repeats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from domain.errors import EventUnreadable
from domain.ports.store import BuildRow, Event
from domain.trace.delivery import told

STARTED = "build.started"  # data: project, title
ADMITTED = "build.admitted"  # data: project, now that its name is known
PHASE = "build.phase"  # data: phase
ENDED = "build.ended"  # data: status, sentence
ROW_KINDS = (STARTED, ADMITTED, PHASE, ENDED, told.BEGAN, told.PHASE, told.OVER)


def fold_row(events: Iterable[Event]) -> BuildRow | None:
    """The row of one build from its build-level events (``task == ""``); None before it started.

    A phase after the end makes the build run again: a reset goes on in a new run. A delivery that runs alone has a row
    of its own, with its own phases; one that a build started changes nothing in the build's. Raises
    EventUnreadable.
    """
    row: BuildRow | None = None
    alone, phase = False, "deliver"
    for event in _in_order(events):
        if event.kind == STARTED:
            row, alone = _started(event), False
        elif told.is_alone(event):
            row, alone = _began(event, phase), True
        elif event.kind in (told.PHASE, told.OVER):
            phase = phase if event.kind == told.OVER else _text(event, "phase")
            row = _delivered(row, event) if row is not None and alone else row
        elif row is not None and event.kind == ADMITTED:
            row = replace(row, project=_text(event, "project"))
        elif row is not None and event.kind == PHASE:
            row = replace(row, phase=_text(event, "phase"), status="running", ended=0)
        elif row is not None and event.kind == ENDED:
            row = replace(row, status=_text(event, "status"), ended=event.at)
    return row


def _started(event: Event) -> BuildRow:
    return BuildRow(
        build=event.build,
        project=_text(event, "project"),
        title=_text(event, "title"),
        phase="intake",
        status="running",
        started=event.at,
        ended=0,
    )


def _began(event: Event, phase: str) -> BuildRow:
    return BuildRow(
        build=event.build,
        project=_text(event, "project"),
        title="".join(c if c.isprintable() else " " for c in told.title_of(event)),
        phase=phase,
        status="running",
        started=event.at,
        ended=0,
    )


def _delivered(row: BuildRow, event: Event) -> BuildRow:
    if event.kind == told.OVER:
        return replace(row, status=_text(event, "status"), ended=event.at)
    return replace(row, phase=_text(event, "phase"), status="running", ended=0)


def _text(event: Event, name: str) -> str:
    """One printable line: a title comes from the spec, and the row is shown on terminals."""
    value = event.data.get(name)
    if not isinstance(value, str):
        raise EventUnreadable(f"event {event.key} ({event.kind}) has no text {name!r}")
    return "".join(c if c.isprintable() else " " for c in value[:200])


def _in_order(events: Iterable[Event]) -> list[Event]:
    """By workflow time; within one millisecond the first run comes before those that continue it."""
    unique = {(e.first_run, e.run, e.sequence): e for e in events if e.kind in ROW_KINDS}
    return sorted(unique.values(), key=lambda e: (e.at, e.run != e.first_run, e.run, e.sequence))
