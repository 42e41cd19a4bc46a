"""What the engine costs over Temporal itself: builds with nothing outside, beside a bare tree of the same shape.

``python -m benchmarks.engine``. First one build is run and its tree drawn from its histories: the same workflows,
children, search attributes and activities, in the same rounds, on as many queues, with inputs and results of the same
sizes; but each activity does nothing, and no workflow decides anything. Then builds and bare trees are run in turns on
one server, 1, 10 and 50 at once. "bare, work only" leaves out what a program without an event log, undo records,
snapshots, accounts and places would leave out: it is shown, once, and not limited.

A ratio is the median of the rounds' own ratios, so that a machine that is busy for a while moves both sides. Workers
and clients are one process; CPU seconds are those of the process and of the server, for one build.
"""

from __future__ import annotations

import argparse
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
from benchmarks.processes import cpu_of

LIMIT = 1.3
SIZES: Mapping[int, int] = {1: 7, 10: 3, 50: 2}
"""Builds at once, and how many rounds of them."""
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
    """One of those compared: its workers, and how a build is run to its end on a queue."""

    serving: Callable[[str], AbstractAsyncContextManager[None]]
    run: Callable[[str], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The server, by its process, and a client of each kind."""

    server: int
    ours: Client
    bare: Client

    def engine(self) -> Side:
        return Side(serving=lambda queue: serving_ours(self.ours, queue), run=self.build)

    def tree(self, tree: Tree) -> Side:
        async def run(queue: str) -> object:
            return await self.bare.execute_workflow(Bare.run, tree, id=f"bare-{uuid.uuid4().hex}", task_queue=queue)

        return Side(serving=lambda queue: serving_bare(self.bare, queue), run=run)

    async def build(self, queue: str) -> str:
        """Run one build; its name."""
        name = f"build-notes-{uuid.uuid4().hex}"
        await self.ours.execute_workflow("BuildSaga", SPEC, id=name, task_queue=queue)
        return name

    async def drawn(self) -> Tree:
        """The tree of a build."""
        queue = uuid.uuid4().hex
        async with serving_ours(self.ours, queue):
            return await draw(self.ours, await self.build(queue))

    async def play(self, side: Side, builds: int) -> Took:
        """So many at once; one comes before and does not count."""
        queue = uuid.uuid4().hex
        async with side.serving(queue):
            await side.run(queue)
            wall, workers, server = time.perf_counter(), time.process_time(), cpu_of(self.server)
            await asyncio.gather(*(side.run(queue) for _ in range(builds)))
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
        _say("builds  who                  wall s  ratio   CPU s a build: workers   server     both  ratio")
        worst = 0.0
        for builds, rounds in sizes.items():
            taken: dict[str, list[Took]] = {name: [] for name in sides}
            for number in range(rounds):
                for name in sides if number % 2 else reversed(sides):
                    if name != WORK or number == 0:
                        taken[name].append(await here.play(sides[name], builds))
            worst = max(worst, _show(builds, taken))
        _say(f"\na build: {1 + sum(len(each.children) for each in tree.rounds)} workflows, {steps(tree)} activities; "
             f"at most {LIMIT} times the bare tree's time is allowed")  # fmt: skip
    return worst


def _show(builds: int, taken: Mapping[str, Sequence[Took]]) -> float:
    ratio = 0.0
    for name, all_of in taken.items():
        ratio = _median([took.wall / bare.wall for took, bare in zip(all_of, taken["bare"], strict=False)])
        dearer = _median([took.cpu / bare.cpu for took, bare in zip(all_of, taken["bare"], strict=False)])
        workers, server = (_median([getattr(took, who) / builds for took in all_of]) for who in ("workers", "server"))
        wall = _median([took.wall for took in all_of])
        _say(f"{builds:6}  {name:<18} {wall:8.2f} {ratio:6.2f} {workers:24.3f} {server:8.3f} "
             f"{workers + server:8.3f} {dearer:6.2f}")  # fmt: skip
    return ratio


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Builds with nothing outside, beside a bare tree of the same shape.")
    parser.add_argument("--quick", action="store_true", help="one round of one build: whether it still works")
    quick = parser.parse_args().quick
    found = asyncio.run(main({1: 1} if quick else SIZES))
    sys.exit(0 if quick or found <= LIMIT else 1)
