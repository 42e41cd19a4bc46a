"""Canonical JSON: what makes two rows the same content, whatever the database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from domain.errors import Busy, InvalidInput, KeyConflict
from domain.money.reserving import WAIT_SECONDS
from domain.ports.store import Event


def canonical(owner: str, data: object) -> str:
    """ASCII JSON with sorted keys, so that any database keeps it. Raises InvalidInput naming ``owner``."""
    try:
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{owner}: its data is not JSON: {error}") from error


def event_digest(event: Event, data: str) -> str:
    """The SHA-256 of everything but the position; ``data`` is the canonical JSON."""
    content = [*event_key(event), event.build, event.task, event.attempt, event.kind, event.at, data]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def event_key(event: Event) -> tuple[str, str, int]:
    """The event's key as the columns hold it."""
    return (event.first_run, event.run, event.sequence)


def plain(owner: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """``data`` as a reader of the store gets it back: JSON's own types, nothing shared with the caller."""
    value: Mapping[str, Any] = json.loads(canonical(owner, data))
    return value


def check_outcome(key: str, *, before: str | None, after: str) -> bool:
    """Whether closing an undo record changes it; ``before`` is None without a record and "" while it is open.

    Raises InvalidInput, KeyConflict.
    """
    if after not in ("final", "undone") and not after.startswith("failed: "):
        raise InvalidInput(f"undo record {key}: unknown outcome {after[:80]!r}; known: final, undone, 'failed: …'")
    if before is None:
        raise KeyConflict(f"there is no undo record {key}")
    if before in ("final", "undone") and before != after:
        raise KeyConflict(f"undo record {key} is {before} already")
    return before != after


def no_place(project: str, limit: int) -> Busy:
    """That a project's places are taken, in the same words whatever keeps them."""
    return Busy(f"all {limit} places for tasks of project {project} are taken", retry_after=WAIT_SECONDS)
