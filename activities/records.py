"""Writing to the store: events and undo records."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from activities.accounts.baselines import Baselines
from domain.errors import EventConflict
from domain.ports.store import Event, EventLog, UndoLog, UndoRecord
from domain.trace.usual.baseline import row_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEventsInput:
    """A batch; every row of the log was first such an input, so the log can be rebuilt from histories."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterUndoInput:
    """Written before the outward step acts. ``key`` is saga/step/attempt, ``action`` the compensation's name."""

    key: str
    build: str
    action: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseUndoInput:
    """``outcome`` is "final", "undone" or "failed: …"."""

    key: str
    outcome: str


class Records:
    """The projection's writer. Every method may be repeated. Without ``baselines`` no phase is compared."""

    def __init__(self, *, events: EventLog, undo: UndoLog, baselines: Baselines | None = None) -> None:
        self._events = events
        self._undo = undo
        self._baselines = baselines

    @activity.defn
    async def record_events(self, request: RecordEventsInput) -> int:
        """How many rows were new. Raises EventConflict, StoreUnavailable.

        What stands out of a phase that ends with them is written before them: whoever follows a build stops reading at
        its end.
        """
        for anomaly in await self._baselines.anomalies(request.events) if self._baselines else ():
            with contextlib.suppress(EventConflict):  # it was said once, of what was usual then
                await self._events.append([row_of(request.events[0].build, anomaly)])
        return await self._events.append(request.events)

    @activity.defn
    async def register_undo(self, request: RegisterUndoInput) -> None:
        """Raises StoreUnavailable."""
        record = UndoRecord(key=request.key, build=request.build, action=request.action, data=request.data)
        await self._undo.register(record)

    @activity.defn
    async def close_undo(self, request: CloseUndoInput) -> None:
        """Raises StoreUnavailable."""
        await self._undo.close(request.key, outcome=request.outcome)
