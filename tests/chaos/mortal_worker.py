"""A worker of the product that can be told to die: ``python -m tests.chaos.mortal_worker saga|workspace|model|sandbox``.

The file ``kill`` in the state folder names an activity and a moment, as in ``apply_change after``: the worker that comes to
it first takes the file away and kills itself with SIGKILL, before the activity's effect, in its middle, or when the effect
is done and nobody knows it yet.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

import worker

MIDDLE_SECONDS = 0.3


def arm(state: Path, activity_type: str, moment: str) -> None:
    """Order one death; ``moment`` is "before", "during" or "after"."""
    draft = state / "kill.draft"
    draft.write_text(f"{activity_type} {moment}")
    draft.replace(state / "kill")


def armed(state: Path) -> bool:
    """Whether the death is still to come."""
    return (state / "kill").exists()


class Mortal(Interceptor):
    """Looks for an order at every activity."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Called by the worker for each activity."""
        return _Mortal(next, self._state)


class _Mortal(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, state: Path) -> None:
        super().__init__(next)
        self._state = state

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self._die_if("before")
        effect = asyncio.ensure_future(super().execute_activity(input))
        if self._ordered("during"):
            await asyncio.wait([effect], timeout=MIDDLE_SECONDS)
            self._die_if("during")
        result = await effect
        self._die_if("after")
        return result

    def _ordered(self, moment: str) -> bool:
        try:
            return (self._state / "kill").read_text() == f"{activity.info().activity_type} {moment}"
        except FileNotFoundError:
            return False

    def _die_if(self, moment: str) -> None:
        if self._ordered(moment):
            (self._state / "kill").rename(self._state / f"killed-{os.getpid()}")
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    worker.main([Mortal(Path(os.environ["MENDWORK_CONFIG"]).parent / ".mendwork")])
