"""How soon there is an answer: ``mendwork --help``, and workers that take work.

``python -m benchmarks.start``. ``--help`` is run as users run it, in a process of its own; the first run, which may
write byte code, does not count. "workers ready" is from the start of ``mendwork dev``, with a Temporal server that
runs already, until each of the four queues has a worker that polls it, as the server says; "with the server" is the
same with the embedded server's own start. CPU seconds are those of all the processes that were started.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from adapters.temporal.state import read_state
from benchmarks.ground.printing import is_quick, say
from benchmarks.ground.processes import cpu_below
from tests.e2e.workshop import DEV, MENDWORK, Workshop

HELP, READY = 0.35, 3.0
"""Seconds."""
HELPS, STARTS = 10, 5
QUEUES = ("mendwork", "mendwork-workspace", "mendwork-model", "mendwork-sandbox")
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds by the clock, and of CPU."""

    wall: float
    cpu: float


def help_once() -> Took:
    """One ``mendwork --help``."""
    began = time.perf_counter()
    process = subprocess.Popen([*MENDWORK, "--help"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"mendwork --help exited with {process.returncode}")
    return Took(wall=wall, cpu=used.ru_utime + used.ru_stime)


async def ready_once(here: Workshop, address: str) -> Took:
    """One ``mendwork dev`` until all queues are served; ``address`` "" lets it start its own server."""
    environment = here.environment | ({"TEMPORAL_ADDRESS": address} if address else {})
    began = time.perf_counter()
    process = _begun(here, environment)
    try:
        async with asyncio.timeout(_PATIENCE):
            await served(await _connected(here, process, address))
        wall = time.perf_counter() - began
        cpu = cpu_below(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait)
    return Took(wall=wall, cpu=cpu)


def _begun(here: Workshop, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with (here.root / "dev.log").open("wb") as log:
        return subprocess.Popen(DEV, cwd=here.root, env=environment, stdout=log, stderr=log, start_new_session=True)


async def _connected(here: Workshop, process: subprocess.Popen[bytes], address: str) -> Client:
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"mendwork dev ended: {(here.root / 'dev.log').read_text()[-1000:]}")
        state = read_state(here.state)
        if address or state is not None:
            return await Client.connect(address or str(state and state.address))
        await asyncio.sleep(0.01)


async def served(client: Client, queues: Sequence[str] = QUEUES) -> None:
    """Until somebody polls each queue for activities, and the first one for workflows too."""
    kinds = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    left = [(queue, kind) for queue in queues for kind in (kinds if queue == queues[0] else kinds[:1])]
    while left:
        queue, kind = left[-1]
        asked = DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        )
        try:
            polled = bool((await client.workflow_service.describe_task_queue(asked)).pollers)
        except RPCError:  # the queue is not there before somebody has polled it
            polled = False
        if polled:
            left.pop()
        else:
            await asyncio.sleep(0.01)


async def starts(folder: Path, times: int, *, with_server: bool) -> list[Took]:
    """So many starts, each on queues that nobody has polled yet."""
    taken = []
    for number in range(times):
        here = Workshop(folder / f"{'own' if with_server else 'there'}-{number}")
        here.configure()
        async with AsyncExitStack() as stack:
            address = ""
            if not with_server:
                program = find_server(explicit=None, environment=os.environ)
                plan = ServerPlan(program=program, state=here.root / "server", patience=60)
                address = (await stack.enter_async_context(DevServer(plan))).address
            taken.append(await ready_once(here, address))
    return taken


def main(helps: int = HELPS, times: int = STARTS) -> bool:
    """Print the table; whether all limits hold."""
    help_once()
    say("                      wall s      CPU s  at most")
    holds = _show("mendwork --help", [help_once() for _ in range(helps)], HELP)
    with tempfile.TemporaryDirectory(prefix="mendwork-bench-") as name:
        folder = Path(name)
        holds &= _show("workers ready", asyncio.run(starts(folder, times, with_server=False)), READY)
        _show("with the server", asyncio.run(starts(folder, times, with_server=True)), None)
    return holds


def _show(what: str, taken: Sequence[Took], limit: float | None) -> bool:
    wall = _median(taken, lambda took: took.wall)
    say(f"{what:<18} {wall:9.2f} {_median(taken, lambda took: took.cpu):10.2f} {limit or ''!s:>8}")
    return limit is None or wall <= limit


def _median(taken: Sequence[Took], of: Callable[[Took], float]) -> float:
    return statistics.median(map(of, taken))


if __name__ == "__main__":
    quick = is_quick(
        "The time to an answer and to workers that take work.", quick="one of each: whether it still works"
    )
    held = main(1, 1) if quick else main()
    sys.exit(0 if quick or held else 1)
