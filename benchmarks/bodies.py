"""What the engine costs around its own activities: whole builds, beside the same bodies called in a plain loop.

``python -m benchmarks.bodies``. Builds of two tasks run by ``mendwork dev`` as it is: four worker processes, git, the
sandbox, SQLite, blobs in files, litellm and a scripted model. After each, its histories are read, and the bodies of its
activities are called with the very same inputs, in the same order, in this process, on a state folder and a repository
of their own. A bare tree of the same shape (see ``benchmarks.engine``) says what Temporal takes between the steps.
What counts is (ours - bare) / loop by the clock, the median of the rounds' own; the same of CPU seconds, of all the
processes of each side and of the server, says on a busy machine what a quiet one would show.

``--plain`` takes the sandbox without isolation, where there is no bubblewrap.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.testing import ActivityEnvironment

from adapters.settings import Settings, load_settings
from adapters.temporal.connect import connect
from adapters.temporal.environment import WORKERS
from adapters.temporal.state import DevState, read_state
from benchmarks.engine.bare import Bare
from benchmarks.engine.tree import draw
from benchmarks.engine.world import serving_bare
from benchmarks.ground.printing import options, say
from benchmarks.ground.processes import cpu_below, cpu_of
from benchmarks.ground.waiting import all_ended
from tests.e2e.workshop import MUL, PLAN, SPEC, SQUARE, Workshop
from worker import PARTS

LIMIT = 1.3
ROUNDS = 9
_PATIENCE = 300.0
ANSWERS: list[dict[str, Any]] = [
    {"role": "Plan", "answer": PLAN},
    {"role": "Change", "task": "mul", "answer": MUL},
    {"role": "Change", "task": "square", "answer": SQUARE},
]
Body = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One activity of a build, in the order in which they were scheduled: its name and its input."""

    at: int
    name: str
    given: Any


async def calls_of(client: Client, build: str, bodies: Mapping[str, Body]) -> list[Call]:
    """What a build and its tasks called, the oldest first."""
    made: list[Call] = []
    async for event in client.get_workflow_handle(build).fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        started = event.start_child_workflow_execution_initiated_event_attributes
        if started.workflow_id:
            made += await calls_of(client, started.workflow_id, bodies)
        if name := scheduled.activity_type.name:
            given = await _given(client.data_converter, scheduled.input.payloads, bodies[name])
            made.append(Call(at=event.event_time.ToNanoseconds(), name=name, given=given))
    return sorted(made, key=lambda call: call.at)


async def _given(converter: DataConverter, payloads: Sequence[Any], body: Body) -> Any:
    hints = [kind for name, kind in get_type_hints(body).items() if name != "return"]
    return (await converter.decode(list(payloads), hints))[0]


@asynccontextmanager
async def open_bodies(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[dict[str, Body]]:
    """Every activity of a build by its name, on the real adapters, without a worker."""
    found: list[Callable[..., Any]] = []
    async with AsyncExitStack() as stack:
        for name in WORKERS:
            found += (await stack.enter_async_context(PARTS[name](settings, environment))).activities
        yield {body.__name__: body for body in found}


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds of one build: by the clock, and of CPU."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """``running`` is ``mendwork dev``, ``client`` of its server; ``bodies`` stand on a folder of their own."""

    running: DevState
    client: Client
    bodies: Mapping[str, Body]

    async def engine(self) -> tuple[str, Took]:
        """One build: its name, and its seconds as the server counts them."""
        name = f"build-calc-{uuid.uuid4().hex[:8]}"
        cpu = cpu_below(self.running.pid)
        handle = await self.client.start_workflow(
            "BuildSaga", {"spec": SPEC, "project": "calc"}, id=name, task_queue="mendwork"
        )
        await all_ended([handle], seconds=_PATIENCE)
        told = await handle.describe()
        assert told.close_time is not None  # noqa: S101 - it has a result
        wall = (told.close_time - told.start_time).total_seconds()
        return name, Took(wall=wall, cpu=cpu_below(self.running.pid) - cpu)

    async def loop(self, build: str) -> Took:
        """The same calls, one after the other."""
        calls = await calls_of(self.client, build, self.bodies)
        environment = ActivityEnvironment()
        cpu, began = cpu_below(os.getpid()), time.perf_counter()
        for call in calls:
            await environment.run(self.bodies[call.name], call.given)
        return Took(wall=time.perf_counter() - began, cpu=cpu_below(os.getpid()) - cpu)

    async def bare(self, build: str) -> Took:
        """A tree of the same shape with nothing in it."""
        tree, queue = await draw(self.client, build), uuid.uuid4().hex
        plain = await Client.connect(self.client.service_client.config.target_host)
        async with serving_bare(plain, queue):
            for number in range(2):  # the first one imports
                cpu, began = self._cpu(), time.perf_counter()
                await plain.execute_workflow(Bare.run, tree, id=f"bare-{build}-{number}", task_queue=queue)
            return Took(wall=time.perf_counter() - began, cpu=self._cpu() - cpu)

    def _cpu(self) -> float:
        return time.process_time() + cpu_of(self.running.server_pid or 0)


async def compare(here: Workshop, rounds: int) -> list[tuple[Took, Took, Took]]:
    """Ours, the loop and the bare tree, round by round; without the first, which clones and imports."""
    settings = load_settings(start=here.root, environment=here.environment)
    client = await connect(settings, here.environment)
    apart = here.root / "loop"
    apart.mkdir()
    shutil.copytree(here.repository, apart / "repository")
    text = (here.root / "mendwork.toml").read_text()
    (apart / "mendwork.toml").write_text(text)
    running = read_state(here.state)
    assert running is not None  # noqa: S101 - it is ready
    told = {"MENDWORK_CONFIG": str(apart / "mendwork.toml"), "TEMPORAL_ADDRESS": running.address}
    environment = here.environment | told
    taken: list[tuple[Took, Took, Took]] = []
    async with open_bodies(load_settings(start=apart, environment=environment), environment) as bodies:
        bench = Bench(running=running, client=client, bodies=bodies)
        for _ in range(rounds + 1):
            build, ours = await bench.engine()
            taken.append((ours, await bench.loop(build), await bench.bare(build)))
    return taken[1:]


def main(rounds: int = ROUNDS, *, plain: bool = False) -> float:
    """Print the table; the ratio."""
    with tempfile.TemporaryDirectory(prefix="mendwork-bench-") as name:
        here = Workshop(Path(name) / "site", answers=ANSWERS)
        extra = '[sandbox]\nengine = "mount"\n' if plain else ""
        with here.running(extra=extra, unchecked="the loop asks the model once more in each build's name"):
            taken = asyncio.run(compare(here, rounds))
    say("                wall ms    CPU ms")
    for who, values in zip(("ours", "plain loop", "bare tree"), zip(*taken, strict=True), strict=True):
        wall, cpu = (1000 * statistics.median(map(of, values)) for of in (_wall, _cpu))
        say(f"{who:<12} {wall:10.0f}{cpu:10.0f}")
    ratio, dearer = (statistics.median((of(o) - of(b)) / of(p) for o, p, b in taken) for of in (_wall, _cpu))
    say(f"ratio        {ratio:10.2f}{dearer:10.2f}")
    say(f"\n(ours - bare tree) / plain loop; at most {LIMIT} is allowed by the clock. Medians of {rounds} builds")
    return ratio


def _wall(took: Took) -> float:
    return took.wall


def _cpu(took: Took) -> float:
    return took.cpu


if __name__ == "__main__":
    parser = options("Whole builds beside the same bodies in a plain loop.", quick="one round: whether it still works")
    parser.add_argument("--plain", action="store_true", help="run tests without isolation")
    given = parser.parse_args()
    found = main(1 if given.quick else ROUNDS, plain=given.plain)
    sys.exit(0 if given.quick or found <= LIMIT else 1)
