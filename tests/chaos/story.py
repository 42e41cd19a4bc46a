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

MEASURED = ("usage", "seconds", "deadline", "opened", "spent", "log", "report", "diff", "findings", "pinned")
BY_CHANCE = ("task.waits",)
"""Whether a task comes to a file's lock while another one has it is a matter of milliseconds."""
NAMES = re.compile(r"[0-9a-f]{8,64}")


def story_of(events: Iterable[Event]) -> Story:
    """By who tells it and about which task: the facts, in order."""
    told: dict[str, list[str]] = {}
    sagas: dict[str, str] = {}
    for event in in_order(events):
        if event.kind in BY_CHANCE:
            continue
        saga = _saga(event, sagas)
        told.setdefault(f"{saga} {event.task}".strip(), []).append(_fact(event))
    return told


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
    data = {name: value for name, value in event.data.items() if name not in MEASURED}
    attempt = f" {event.attempt}" if event.attempt else ""
    return f"{event.kind}{attempt} {_plain(data)}"


def _plain(data: Mapping[str, Any]) -> str:
    return NAMES.sub("#", json.dumps(data, sort_keys=True, default=str))
