"""Undo, registered before the step acts and run newest first."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.faults import last_fault
from workflows.policies import STORE, WORKSPACE, Effects

with workflow.unsafe.imports_passed_through():
    from activities.landing import CompensateInput, Landings
    from activities.records import CloseUndoInput, Records, RegisterUndoInput

ACTIONS = {"forget_build": Landings.forget_build, "retract_result": Landings.retract_result}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """One registered compensation; ``key`` is saga/step/attempt."""

    key: str
    action: str
    request: CompensateInput


class Compensations:
    """The undo of the steps that this saga has begun."""

    def __init__(self, *, effects: Effects, build: str) -> None:
        self._effects = effects
        self._build = build
        self._open: list[Undo] = []

    async def register(self, step: str, action: str, request: CompensateInput) -> None:
        """Record how to undo ``step``, in the workflow and in the store, before it acts."""
        undo = Undo(key=f"{workflow.info().workflow_id}/{step}/1", action=action, request=request)
        record = RegisterUndoInput(key=undo.key, build=self._build, action=action, data=asdict(request))
        self._open.append(
            undo
        )  # before the record: a cancellation in between must not lose it, and undoing is idempotent
        await self._effects.run(STORE, Records.register_undo, record)

    async def undo_all(self) -> tuple[str, ...]:
        """Compensate, newest first; return a sentence for each step that could not be undone."""
        failed: list[str] = []
        while self._open:
            undo = self._open.pop()
            failed += await self._undo(undo)
        return tuple(failed)

    async def close_all(self) -> None:
        """The build succeeded: what it did is final."""
        while self._open:
            await self._close(self._open.pop(), "final")

    async def _undo(self, undo: Undo) -> list[str]:
        try:
            gone = await self._effects.run(WORKSPACE, ACTIONS[undo.action], undo.request, summary="compensation")
        except ActivityError as error:
            sentence = f"{undo.action}: {last_fault(error).sentence}"
            await self._close(undo, f"failed: {sentence}")
            return [sentence]
        await self._close(undo, "undone" if gone else "failed: it is somebody else's now")
        return [] if gone else [f"{undo.action}: it is somebody else's now"]

    async def _close(self, undo: Undo, outcome: str) -> None:
        await self._effects.run(STORE, Records.close_undo, CloseUndoInput(key=undo.key, outcome=outcome))
