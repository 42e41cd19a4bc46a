"""The saga's share of the event log."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from workflows.policies import STORE, Effects

with workflow.unsafe.imports_passed_through():
    from activities.records import RecordEventsInput, Records
    from domain.ports.store import Event

BATCH = 50


class Recorder:
    """Collects facts and writes them in batches; ``sequence`` counts within the run."""

    def __init__(self, *, build: str, task: str = "") -> None:
        self._build = build
        self._task = task
        self._sequence = 0
        self._pending: list[Event] = []

    def note(self, kind: str, /, *, attempt: int = 0, task: str = "", **data: Any) -> None:
        """Add a fact: references, numbers and short texts only."""
        info = workflow.info()
        self._sequence += 1
        self._pending.append(
            Event(
                first_run=info.first_execution_run_id,
                run=info.run_id,
                sequence=self._sequence,
                build=self._build,
                kind=kind,
                at=int(workflow.now().timestamp() * 1000),
                task=task or self._task,
                attempt=attempt,
                data=data,
            )
        )

    async def flush(self, effects: Effects, *, heed: bool = True) -> None:
        """Write what was noted since the last flush: to its end also when the saga is cancelled meanwhile, as a row
        that is lost would be a gap. ``heed`` then raises CancelledError."""
        while self._pending:
            batch, self._pending = tuple(self._pending[:BATCH]), self._pending[BATCH:]
            await effects.last(STORE, Records.record_events, RecordEventsInput(events=batch), heed=heed)
