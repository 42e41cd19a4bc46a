"""The read model as a fold of events: the same for any order of arrival and any number of repeats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from domain.ports.store import BuildRow, Event

STARTED = "build.started"  # data: project, title
PHASE = "build.phase"  # data: phase
ENDED = "build.ended"  # data: status, sentence


def fold_row(events: Iterable[Event]) -> BuildRow | None:
    """The row of one build from its build-level events (``task == ""``); None before it started."""
    row: BuildRow | None = None
    for event in _in_order(events):
        if event.kind == STARTED and row is None:
            row = BuildRow(
                build=event.build,
                project=str(event.data["project"]),
                title=str(event.data["title"]),
                phase="intake",
                status="running",
                started=event.at,
                ended=0,
            )
        elif row is not None and event.kind == PHASE:
            row = replace(row, phase=str(event.data["phase"]))
        elif row is not None and event.kind == ENDED:
            row = replace(row, status=str(event.data["status"]), ended=event.at)
    return row


def _in_order(events: Iterable[Event]) -> list[Event]:
    unique = {(e.first_run, e.run, e.sequence): e for e in events}
    return sorted(unique.values(), key=lambda e: (e.at, e.run, e.sequence))
