"""Undo, registered before the step acts and run newest first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.faults import last_fault
from workflows.policies import DEPLOY, RESTORE, STORE, WORKSPACE, Effects, Policy
from workflows.state import Undo

with workflow.unsafe.imports_passed_through():
    from activities.accounts.money import Money
    from activities.delivery.deploys import Deploys
    from activities.records import CloseUndoInput, Records, RegisterUndoInput
    from activities.repository.landing import CompensateInput, Landings

ACTIONS: Mapping[str, tuple[Policy, Callable[[Any, CompensateInput], Awaitable[bool]]]] = {
    "forget_build": (WORKSPACE, Landings.forget_build),
    "retract_result": (WORKSPACE, Landings.retract_result),
    "rewind_target": (WORKSPACE, Landings.rewind_target),
    "release_build": (STORE, Money.release_build),
    "restore_traffic": (RESTORE, Deploys.restore_traffic),
    "retire_unit": (DEPLOY, Deploys.retire_unit),
    "undo_step": (DEPLOY, Deploys.undo_step),
}
"""What each compensation runs, and where."""


class Compensations:
    """The undo of the steps that this saga has begun; ``undo`` is carried from run to run."""

    def __init__(self, *, effects: Effects, build: str, undo: list[Undo]) -> None:
        self._effects = effects
        self._build = build
        self._open = undo

    async def register(self, step: str, action: str, request: CompensateInput, *, number: int = 1) -> None:
        """Record how to undo ``step``, in the workflow and in the store, before it acts."""
        undo = Undo(key=f"{workflow.info().workflow_id}/{step}/{number}", action=action, request=request)
        record = RegisterUndoInput(key=undo.key, build=self._build, action=action, data=asdict(request))
        # Before the record: a cancellation in between must not lose it, and undoing is idempotent.
        self._open.append(undo)
        await self._effects.run(STORE, Records.register_undo, record)

    async def undo_all(self) -> tuple[str, ...]:
        """Compensate, newest first; return a sentence for each step that could not be undone."""
        failed: list[str] = []
        while self._open:
            failed += await compensate(self._effects, self._open[-1])
            self._open.pop()
        return tuple(failed)

    async def close_all(self) -> None:
        """The build succeeded: what it did is final. Places and reservations go all the same."""
        while self._open:
            undo = self._open.pop()
            if undo.action == "release_build":
                await compensate(self._effects, undo)
            else:
                await close(self._effects, undo, "final")


async def compensate(effects: Effects, undo: Undo) -> list[str]:
    """Run one compensation and close its record; return a sentence when it could not be undone."""
    policy, method = ACTIONS[undo.action]
    try:
        gone = await effects.run(policy, method, undo.request, summary="compensation")
    except ActivityError as error:
        sentence = f"{undo.action}: {last_fault(error).sentence}"
        await close(effects, undo, f"failed: {sentence}")
        return [sentence]
    await close(effects, undo, "undone" if gone else "failed: it is somebody else's now")
    return [] if gone else [f"{undo.action}: it is somebody else's now"]


async def close(effects: Effects, undo: Undo, outcome: str) -> None:
    """``outcome`` is "final", "undone" or "failed: …"."""
    await effects.run(STORE, Records.close_undo, CloseUndoInput(key=undo.key, outcome=outcome))
