"""A worker of the product that can be told to die: `mendwork dev` with ``grafted("mortal")`` has them.

A file in the folder ``kills`` orders one death: it is named by an activity and a moment, as in ``apply_change.after``.
The worker that comes to it first takes the file away and kills itself with SIGKILL: before the activity's effect, in
its middle, or when the effect is done and nobody knows it yet. The worker that takes the activity up again writes down
how long after its own start that was. A file in the folder ``holds`` stops the activity at that moment instead, until
the file is gone or the activity is cancelled.

What dies is a fork: its parent has everything imported and forks the next one at once, so that a hundred deaths fit
into the minutes that a test may take. While a file ``kills/down`` is there, nobody takes the place of the dead.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import ctypes
import importlib
import inspect
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

import worker

MOMENTS = ("before", "during", "after")
MIDDLE_SECONDS = {
    **{"run_gates": 0.25, "measure_base": 0.25, "prepare_environment": 0.2, "run_integration": 0.15},
    **{"measure_window": 0.5, "start_unit": 0.1},
}
MIDDLE_OF_OTHERS = 0.01
PR_SET_PDEATHSIG = 1


def order_death(state: Path, order: str, *, spared: int = 0) -> None:
    """``order`` is an activity and one of MOMENTS, as in "apply_change.after"; ``spared`` of them live first."""
    _place(state / "kills" / order, str(spared or ""))


def parsed(order: str) -> tuple[str, int]:
    """An order as cases write it, "start_unit+1.after", without what it spares, and how many that are."""
    activity, _, moment = order.partition(".")
    name, _, spared = activity.partition("+")
    return f"{name}.{moment}", int(spared or 0)


def order_hold(state: Path, order: str) -> None:
    """Stop the next such activity at that moment; ``held`` tells when it is reached."""
    _place(state / "holds" / order)


def held(state: Path, order: str) -> bool:
    """Whether an activity stands still where ``order_hold`` said."""
    return (state / "holds" / f"{order}.held").exists()


def nobody_replaces(state: Path, *, down: bool) -> None:
    """Whether workers that die from now on stay dead."""
    if down:
        _place(state / "kills" / "down")
    else:
        (state / "kills" / "down").unlink()


def deaths(state: Path) -> dict[str, float | None]:
    """The ordered deaths that happened, and after how many seconds of the next worker its activity went on."""
    return {
        place.name.removesuffix(".died"): float(text) if (text := place.read_text()) else None
        for place in (state / "kills").glob("*.died")
    }


def forks(state: Path) -> dict[str, int]:
    """The pids of the workers that do the work now, by class."""
    return {place.suffix[1:]: int(place.read_text() or 0) for place in (state / "kills").glob("pid.*")}


def forget_deaths(state: Path) -> None:
    """Those that happened, so that the same can be ordered again."""
    for place in (state / "kills").glob("*.died"):
        place.unlink()


def _place(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(f".{path.name}").write_text(text)
    path.with_name(f".{path.name}").rename(path)


class Mortal(Interceptor):
    """Looks for an order at every activity."""

    def __init__(self, state: Path) -> None:
        self._kills, self._holds, self._bill = state / "kills", state / "holds", state.parent / "bill.jsonl"
        self._started = time.monotonic()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Called by the worker for each activity."""
        return _Mortal(next, self)

    def ordered(self) -> set[str]:
        """The moments at which the running activity is to die; those that spare this one are nearer by one."""
        moments = set()
        for moment in MOMENTS:
            order = self._order(moment)
            with contextlib.suppress(FileNotFoundError):
                if spared := int(order.read_text() or 0):
                    order.write_text(str(spared - 1 or ""))
                else:
                    moments.add(moment)
        return moments

    def die(self, moment: str) -> None:
        """Take the order and obey it, unless another worker has."""
        order = self._order(moment)
        with contextlib.suppress(FileNotFoundError):
            order.rename(order.with_suffix(f".{moment}.died"))
            os.kill(os.getpid(), signal.SIGKILL)

    def _order(self, moment: str) -> Path:
        return self._kills / f"{activity.info().activity_type}.{moment}"

    async def stand_still(self, moment: str) -> None:
        """Wait while this moment is held; a cancellation ends it as it would end any wait."""
        hold = self._holds / f"{activity.info().activity_type}.{moment}"
        while hold.exists():
            hold.with_suffix(f".{moment}.held").touch()
            await asyncio.sleep(0.05)

    async def middle_of(self, effect: asyncio.Future[Any]) -> None:
        """Wait until the effect has begun: a call until the provider has it, and holds its answer back."""
        name = activity.info().activity_type
        while name == "call_model" and not effect.done() and not (self._bill.exists() and self._bill.stat().st_size):
            await asyncio.wait([effect], timeout=0.02)
        if name != "call_model":
            await asyncio.wait([effect], timeout=MIDDLE_SECONDS.get(name, MIDDLE_OF_OTHERS))

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
        mortal = self._mortal
        mortal.resumed()
        ordered = mortal.ordered()
        if "before" in ordered:
            mortal.die("before")
        await mortal.stand_still("before")
        effect = asyncio.ensure_future(super().execute_activity(input))
        if "during" in ordered:
            await mortal.middle_of(effect)
            mortal.die("during")
        result = await effect
        if "after" in ordered:
            mortal.die("after")
        await mortal.stand_still("after")
        return result


def warm(name: str) -> None:
    """Import what this class of worker will: whatever its part imports, and what that loads when it is used."""
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[worker.PARTS[name].__module__]))):
        if isinstance(node, ast.ImportFrom) and node.module:
            importlib.import_module(node.module)
    for module in ("temporalio.worker", "activities.beating", "adapters.temporal.connect", "adapters.store.database"):
        importlib.import_module(module)
    if name == "model":
        importlib.import_module("adapters.models.engine")._configured()


def live(state: Path) -> NoReturn:
    """Be the worker, and never outlive the parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    worker.main([Mortal(state)])
    sys.exit(0)


def keep(name: str, state: Path) -> int:
    """Fork a worker, and another one whenever it was killed; hand on what ends it, and return its exit code."""
    down, pid_file = state / "kills" / "down", state / "kills" / f"pid.{name}"
    down.parent.mkdir(parents=True, exist_ok=True)
    stop = (signal.SIGTERM, signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    while True:
        child = os.fork()
        if child == 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, stop)
            live(state)
        pid_file.write_text(str(child))
        code, asked = _ended(child, stop)
        if asked or code >= 0:
            return max(code, 0)
        while down.exists():
            if signal.sigtimedwait(stop, 0.05):
                return 0


def _ended(child: int, stop: tuple[signal.Signals, ...]) -> tuple[int, bool]:
    """The child's exit code, below 0 for a signal, and whether it was asked to end."""
    asked = False
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), asked
        if signal.sigtimedwait(stop, 0.02):
            os.kill(child, signal.SIGTERM)
            asked = True
