"""What a log tells, without what differs from run to run: names of commits and blobs, times, sums of tokens.

Sagas write their rows independently of each other, so each is told by itself, and so is each task within the build's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from domain.ports.store import Event

Story = Mapping[str, list[str]]

MEASURED = (
    *("usage", "seconds", "deadline", "opened", "spent", "calls", "cost_micros"),
    *("log", "report", "diff", "findings", "pinned"),
)
BY_CHANCE = ("task.waits", "environment.built")
"""Whether a task comes to a file's lock while another one has it is a matter of milliseconds. Who comes second to a
set-up finds it there: a sibling, or the next try of the one that died when it was whole."""
BESIDE = ("snapshot.taken", "snapshot.skipped")
SNAPSHOTS = "snapshots"
"""Told by themselves, in no order: other tasks are merged, and make theirs, while one is made."""
NAMES = re.compile(r"[0-9a-f]{8,64}")


def story_of(events: Iterable[Event]) -> Story:
    """By who tells it and about which task: the facts, in order."""
    told: dict[str, list[str]] = {}
    sagas: dict[str, str] = {}
    for event in in_order(events):
        if event.kind in BY_CHANCE:
            continue
        saga = _saga(event, sagas)
        strand = SNAPSHOTS if event.kind in BESIDE else event.task
        told.setdefault(f"{saga} {strand}".strip(), []).append(_fact(event))
    return {strand: sorted(facts) if strand.endswith(SNAPSHOTS) else facts for strand, facts in told.items()}


def in_order(events: Iterable[Event]) -> list[Event]:
    """Runs as they come, each by its own count: what two handlers note at once is written in either order."""
    told = list(events)
    runs = list(dict.fromkeys(event.run for event in told))
    return sorted(told, key=lambda event: (runs.index(event.run), event.sequence))


def _saga(event: Event, sagas: dict[str, str]) -> str:
    """The first row of a run tells whose it is; a task's sagas are told one after the other."""
    first = {"build.started": "build", "task.started": "task"}.get(event.kind)
    return sagas.setdefault(event.first_run, first or "sweeper")


def _fact(event: Event) -> str:
    attempt = f" {event.attempt}" if event.attempt else ""
    return f"{event.kind}{attempt} {_plain(_exact(event.data))}"


def _exact(value: Any) -> Any:
    """Without what is measured, however deep."""
    if isinstance(value, Mapping):
        return {name: _exact(each) for name, each in value.items() if name not in MEASURED}
    return [_exact(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(data: Any) -> str:
    return NAMES.sub("#", json.dumps(data, sort_keys=True, default=str))
