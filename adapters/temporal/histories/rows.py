"""Rows of the event log in the input of one ``record_events``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from domain.errors import EventUnreadable
from domain.ports.store import Event
from domain.trace.lines import from_line

RECORDS = "record_events"


def rows_of(values: Sequence[Any]) -> list[Event]:
    """The events of one decoded ``RecordEventsInput``. Raises EventUnreadable."""
    rows = values[0].get("events") if len(values) == 1 and isinstance(values[0], dict) else None
    if not isinstance(rows, list):
        raise EventUnreadable(f"a {RECORDS} in a history has no list of events as its input")
    return [from_line(row) for row in rows]
