"""One JSON object an event: what ``trace --jsonl``, ``watch --json`` and ``build --json`` print.

``docs/event-log.md`` documents it. A new field is no new version; a changed or missing one is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.errors import EventUnreadable
from domain.ports.store import Event

VERSION = 1
TEXTS = ("build", "kind", "task", "first_run", "run")
NUMBERS = ("at", "attempt", "sequence")


def as_line(event: Event) -> dict[str, Any]:
    """Its fields, with the schema's version as ``v``."""
    names = ("build", "kind", "at", "task", "attempt", "data", "first_run", "run", "sequence")
    return {"v": VERSION, **{name: getattr(event, name) for name in names}, "data": dict(event.data)}


def from_line(raw: Any) -> Event:
    """The inverse of ``as_line``; foreign fields are left out. Raises EventUnreadable."""
    if not isinstance(raw, Mapping) or raw.get("v", VERSION) != VERSION:
        raise EventUnreadable(f"not an event of schema {VERSION}: {str(raw)[:80]!r}")
    data = raw.get("data", {})
    whole = all(type(raw.get(name)) is str for name in TEXTS) and all(type(raw.get(name)) is int for name in NUMBERS)
    if not whole or not isinstance(data, Mapping) or raw["sequence"] < 1:
        raise EventUnreadable(f"an event lacks a field of schema {VERSION}: {str(raw)[:80]!r}")
    return Event(**{name: raw[name] for name in (*TEXTS, *NUMBERS)}, data=dict(data))
