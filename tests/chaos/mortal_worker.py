"""A worker of the product that can be told to die: ``python -m tests.chaos.mortal_worker CLASS``.

A file in the folder ``kills`` orders one death: it is named by an activity and a moment, as in ``apply_change.after``.
The worker that comes to it first takes the file away and kills itself with SIGKILL: before the activity's effect, in
its middle, or when the effect is done and nobody knows it yet. The worker that takes the activity up again writes down
how long after its own start that was.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

import worker

MIDDLE_SECONDS = 0.25


def order_death(state: Path, activity_type: str, moment: str) -> None:
    """``moment`` is "before", "during" or "after"."""
    (state / "kills").mkdir(parents=True, exist_ok=True)
    (state / "kills" / f"{activity_type}.{moment}").touch()


def deaths(state: Path) -> dict[str, float | None]:
    """The ordered deaths that happened, and after how many seconds of the next worker its activity went on."""
    return {
        place.name.removesuffix(".died"): float(text) if (text := place.read_text()) else None
        for place in (state / "kills").glob("*.died")
    }


class Mortal(Interceptor):
    """Looks for an order at every activity."""

    def __init__(self, state: Path) -> None:
        self._kills = state / "kills"
        self._started = time.monotonic()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Called by the worker for each activity."""
        return _Mortal(next, self)

    def ordered(self, moment: str) -> bool:
        """Whether the running activity is to die at this moment."""
        return (self._kills / f"{activity.info().activity_type}.{moment}").exists()

    def die_if(self, moment: str) -> None:
        """Take the order, if there is one, and obey it."""
        order = self._kills / f"{activity.info().activity_type}.{moment}"
        with contextlib.suppress(FileNotFoundError):
            order.rename(order.with_suffix(f".{moment}.died"))
            os.kill(os.getpid(), signal.SIGKILL)

    def resumed(self) -> None:
        """Note that an activity whose worker died goes on here."""
        for place in self._kills.glob(f"{activity.info().activity_type}.*.died"):
            if not place.read_text():
                place.write_text(f"{time.monotonic() - self._started:.2f}")


class _Mortal(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, mortal: Mortal) -> None:
        super().__init__(next)
        self._mortal = mortal

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self._mortal.resumed()
        self._mortal.die_if("before")
        effect = asyncio.ensure_future(super().execute_activity(input))
        if self._mortal.ordered("during"):
            await asyncio.wait([effect], timeout=MIDDLE_SECONDS)
            self._mortal.die_if("during")
        result = await effect
        self._mortal.die_if("after")
        return result


if __name__ == "__main__":
    worker.main([Mortal(Path(os.environ["MENDWORK_CONFIG"]).parent / ".mendwork")])
