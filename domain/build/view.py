"""The read model as a fold of events: the same for any order of arrival and any number of repeats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from domain.errors import EventUnreadable
from domain.ports.store import BuildRow, Event

STARTED = "build.started"  # data: project, title
ADMITTED = "build.admitted"  # data: project, now that its name is known
PHASE = "build.phase"  # data: phase
ENDED = "build.ended"  # data: status, sentence
ROW_KINDS = (STARTED, ADMITTED, PHASE, ENDED)


def fold_row(events: Iterable[Event]) -> BuildRow | None:
    """The row of one build from its build-level events (``task == ""``); None before it started.

    A phase after the end makes the build run again: a reset goes on in a new run. Raises EventUnreadable.
    """
    row: BuildRow | None = None
    for event in _in_order(events):
        if event.kind == STARTED:
            row = _started(event)
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
