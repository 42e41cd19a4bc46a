"""What the engine costs over Temporal itself: builds with nothing outside, beside a bare tree of the same shape.

``python -m benchmarks.engine``. First one build is run and its tree drawn from its histories: the same workflows,
children, search attributes and activities, in the same rounds, on as many queues, with inputs and results of the same
sizes; but each activity does nothing, and no workflow decides anything. Then builds and bare trees are run in turns on
one server, 1, 10 and 50 at once. "bare, work only" leaves out what a program without an event log, undo records,
snapshots, accounts and places would leave out: it is shown, once, and not limited.

A ratio is the median of the rounds' own ratios, so that a machine that is busy for a while moves both sides. Workers
and clients are one process, with as many workflow tasks at once on both sides as a worker of the product takes; CPU
seconds are those of the process and of the server, for one build. A round costs about a second and a half of processor
for each build and tree in it; when five minutes of a size are over no further round of it begins, and what has not
ended after ten minutes is named.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from adapters.settings import Settings
from adapters.temporal.connect import Target, connect_to, converter_for
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from benchmarks.engine.bare import Bare, Tree
from benchmarks.engine.tree import BOOKKEEPING, draw, steps, without
from benchmarks.engine.world import serving_bare, serving_ours
from benchmarks.ground.printing import is_quick, say, tell
from benchmarks.ground.processes import cpu_of
from benchmarks.ground.waiting import Handle, all_ended

LIMIT = 1.3
SIZES: Mapping[int, int] = {1: 7, 10: 3, 50: 2}
"""Builds at once, and at most how many rounds of them."""
ENOUGH, PATIENCE = 300.0, 600.0
"""Seconds after which no further round of a size begins, and after which one is given up."""
WORK = "bare, work only"
SPEC = {"spec": "# Tags\nNotes get tags.", "project": "notes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds that one round took: by the clock, of the workers' and the clients' CPU, and of the server's."""

    wall: float
    workers: float
    server: float

    @property
    def cpu(self) -> float:
        return self.workers + self.server


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of those compared: its workers, and how a build is started on a queue."""

    serving: Callable[[str], AbstractAsyncContextManager[None]]
    start: Callable[[str], Awaitable[Handle]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The server, by its process, and a client of each kind."""

    server: int
    ours: Client
    bare: Client

    def engine(self) -> Side:
        return Side(serving=lambda queue: serving_ours(self.ours, queue), start=self.build)

    def tree(self, tree: Tree) -> Side:
        async def start(queue: str) -> Handle:
            return await self.bare.start_workflow(Bare.run, tree, id=f"bare-{uuid.uuid4().hex}", task_queue=queue)

        return Side(serving=lambda queue: serving_bare(self.bare, queue), start=start)

    async def build(self, queue: str) -> Handle:
        """Start one build."""
        return await self.ours.start_workflow("BuildSaga", SPEC, id=f"build-notes-{uuid.uuid4().hex}", task_queue=queue)

    async def drawn(self) -> Tree:
        """The tree of a build."""
        queue = uuid.uuid4().hex
        async with serving_ours(self.ours, queue):
            build = await self.build(queue)
            await all_ended([build], seconds=PATIENCE)
            return await draw(self.ours, build.id)

    async def play(self, side: Side, builds: int) -> Took:
        """So many at once; one comes before and does not count."""
        queue = uuid.uuid4().hex
        async with side.serving(queue):
            await all_ended([await side.start(queue)], seconds=PATIENCE)
            wall, workers, server = time.perf_counter(), time.process_time(), cpu_of(self.server)
            handles = await asyncio.gather(*(side.start(queue) for _ in range(builds)))
            await all_ended(handles, seconds=PATIENCE)
            return Took(
                wall=time.perf_counter() - wall,
                workers=time.process_time() - workers,
                server=cpu_of(self.server) - server,
            )


@asynccontextmanager
async def stand() -> AsyncIterator[Stand]:
    """A development server as ``mendwork dev`` starts it."""
    program = find_server(explicit=None, environment=os.environ)
    with tempfile.TemporaryDirectory(prefix="mendwork-bench-") as name:
        folder = Path(name)
        async with DevServer(ServerPlan(program=program, state=folder, patience=60)) as server:
            target = Target(address=server.address, namespace="default", origin="the benchmark's server")
            converter = converter_for(Settings.model_validate({"root": folder}), target.namespace)
            ours = await connect_to(target, converter=converter)
            assert server.pid is not None  # noqa: S101 - it was started
            yield Stand(server=server.pid, ours=ours, bare=await Client.connect(server.address))


async def main(sizes: Mapping[int, int] = SIZES) -> float:
    """Print the table; the largest ratio of the clock."""
    async with stand() as here:
        tree = await here.drawn()
        sides = {
            WORK: here.tree(without(tree, BOOKKEEPING)),
            "bare": here.tree(tree),
            "ours": here.engine(),
        }
        say("builds  who                rounds   wall s  ratio   CPU s a build: workers   server     both  ratio")
        worst = 0.0
        for builds, rounds in sizes.items():
            worst = max(worst, _show(builds, await compare(here, sides, builds, rounds)))
        say(f"\na build: {1 + sum(len(each.children) for each in tree.rounds)} workflows, {steps(tree)} activities; "
             f"at most {LIMIT} times the bare tree's time is allowed")  # fmt: skip
    return worst


async def compare(here: Stand, sides: Mapping[str, Side], builds: int, rounds: int) -> Mapping[str, Sequence[Took]]:
    """Rounds in turns: at least one, and no further one when there has been ENOUGH."""
    taken: dict[str, list[Took]] = {name: [] for name in sides}
    began = time.monotonic()
    for number in range(rounds):
        if number and time.monotonic() - began > ENOUGH:
            break
        for name in list(sides) if number % 2 else reversed(list(sides)):
            if name != WORK or number == 0:
                tell(f"{builds} at once, {name}: round {number + 1} of at most {rounds}")
                taken[name].append(await here.play(sides[name], builds))
    return taken


def _show(builds: int, taken: Mapping[str, Sequence[Took]]) -> float:
    ratio = 0.0
    for name, all_of in taken.items():
        ratio = _median([took.wall / bare.wall for took, bare in zip(all_of, taken["bare"], strict=False)])
        dearer = _median([took.cpu / bare.cpu for took, bare in zip(all_of, taken["bare"], strict=False)])
        workers, server = (_median([getattr(took, who) / builds for took in all_of]) for who in ("workers", "server"))
        wall = _median([took.wall for took in all_of])
        say(f"{builds:6}  {name:<18} {len(all_of):6} {wall:8.2f} {ratio:6.2f} {workers:24.3f} {server:8.3f} "
             f"{workers + server:8.3f} {dearer:6.2f}")  # fmt: skip
    return ratio


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    quick = is_quick(
        "Builds with nothing outside, beside a bare tree of the same shape.", quick="one round of one build"
    )
    found = asyncio.run(main({1: 1} if quick else SIZES))
    sys.exit(0 if quick or found <= LIMIT else 1)
