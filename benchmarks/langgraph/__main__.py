"""Fifty builds whose model answers in a second, killed midway: beside the same steps in LangGraph on PostgreSQL.

``python -m benchmarks.langgraph``. Three calls one after the other, fifty times at once, and no other work: once to the
end, and once with kill -9 of the process that works when half of the calls have been asked. Both sides run in one
process, keep their state in one PostgreSQL cluster (a database each, 20 connections at most), and ask the same model
over HTTP. LangGraph is used as its documentation has it (``theirs.py``); Mendwork's process is kept by its supervisor,
with its default timeouts, and its builds are whole ones: event log, undo records, ledger, snapshots, three sagas each
on Temporal's development server.

A call that was under way at the kill is asked again by both: nobody can know whether it was answered. What differs is
who does the rest; it is printed below the figures. LangGraph's commercial server has a queue and workers of its own,
which would take over some of it; here it is the library.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from adapters.settings import Settings
from adapters.store import open_store
from adapters.temporal.connect import Target, connect_to, converter_for
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from adapters.temporal.supervisor import Program, Supervisor
from benchmarks.langgraph.asking import Asked, model
from benchmarks.langgraph.ours import QUEUE
from benchmarks.langgraph.theirs import POOL, STEPS
from tests.postgres import Cluster, running_cluster

BUILDS, SECONDS = 50, 1.0
SPEC = {"spec": "# Tags\nNotes get tags.", "project": "notes", "unattended": True}
BY_HAND = """
what had to be done by hand after the kill       LangGraph                          Mendwork
  start the process again                        a supervisor of one's own          `mendwork dev` does
  find what has not ended                        own list of threads, aget_state    Temporal knows
  go on with each                                ainvoke(None) for each, by a loop  the worker polls
  keep two processes off one thread              own lock                           Temporal does
  give a call the same key when made again       own key from thread and node       saga/step/attempt/turn
  count what the lost calls may have cost        own table                          the ledger holds it as unknown
  notice a process that hangs instead of dying   own watchdog                       heartbeat timeouts
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds from the start of all to the end of the last; calls asked, and asked again."""

    wall: float
    asked: int
    again: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where everything is; ``builds`` at once, each call of the model takes ``seconds``."""

    cluster: Cluster
    folder: Path
    builds: int
    seconds: float

    @property
    def midway(self) -> int:
        return self.builds * len(STEPS) // 2

    async def theirs(self, *, killed: bool) -> Took:
        """LangGraph; this is the supervisor that it has not."""
        database = self.cluster.create()
        async with model(self.seconds) as asked:
            names = [f"thread-{number}" for number in range(self.builds)]
            argv = ("-m", "benchmarks.langgraph.theirs", database, asked.url, *names)
            began = time.perf_counter()
            process = await asyncio.create_subprocess_exec(sys.executable, *argv)
            if killed:
                await _reached(asked, self.midway)
                process.kill()
                await process.wait()
                process = await asyncio.create_subprocess_exec(sys.executable, *argv)
            if await process.wait():
                raise RuntimeError(f"LangGraph's process exited with {process.returncode}")
            return Took(wall=time.perf_counter() - began, asked=asked.total, again=asked.again)

    async def ours(self, *, killed: bool) -> Took:
        """Mendwork, kept by its own supervisor."""
        url = f"{self.cluster.create()}&pool_size={POOL}&pool_overflow=0"
        async with model(self.seconds) as asked, self.temporal() as server:
            program = Program(
                name="all",
                argv=(sys.executable, "-m", "benchmarks.langgraph.ours", server, url, asked.url),
                environment=dict(os.environ),
                log=self.folder / "worker.log",
                folder=Path.cwd(),
            )
            began = time.perf_counter()
            async with kept(program) as supervisor:
                builds = asyncio.create_task(self._built(server))
                if killed:
                    await _reached(asked, self.midway)
                    os.kill(supervisor.pids["all"], signal.SIGKILL)
                names = await builds
            wall = time.perf_counter() - began
        async with await open_store(url) as store:
            unknown = [each for name in names for each in await store.calls.tries(name) if each.state == "unknown"]
        note = f"{len(unknown)} calls are in the ledger as unknown" if killed else ""
        return Took(wall=wall, asked=asked.total, again=asked.again, note=note)

    @asynccontextmanager
    async def temporal(self) -> AsyncIterator[str]:
        """A development server of its own; its address."""
        program = find_server(explicit=None, environment=os.environ)
        with tempfile.TemporaryDirectory(dir=self.folder) as state:
            async with DevServer(ServerPlan(program=program, state=Path(state), patience=60)) as server:
                yield server.address

    async def _built(self, server: str) -> list[str]:
        settings = Settings.model_validate({"root": self.folder})
        target = Target(address=server, namespace="default", origin="the benchmark's server")
        client = await connect_to(target, converter=converter_for(settings, target.namespace))
        patience = timedelta(seconds=settings.timeouts.sticky)

        async def build() -> str:
            name = f"build-notes-{uuid.uuid4().hex}"
            ended = await client.execute_workflow(
                "BuildSaga", SPEC, id=name, task_queue=QUEUE, task_timeout=patience, result_type=dict
            )
            if ended["status"] != "succeeded":
                raise RuntimeError(f"{name} ended as {ended['status']}")
            return name

        return list(await asyncio.gather(*(build() for _ in range(self.builds))))


@asynccontextmanager
async def kept(program: Program) -> AsyncIterator[Supervisor]:
    """The program runs, and is started again whenever it dies."""
    supervisor = Supervisor([program], say=lambda line: None, changed=lambda pids: None)
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await supervisor.stop(grace=5)


async def _reached(asked: Asked, calls: int) -> None:
    while asked.total < calls:  # noqa: ASYNC110 - counted by the server's handlers
        await asyncio.sleep(0.01)


def main(builds: int = BUILDS, seconds: float = SECONDS) -> None:
    """Print the table. Raises for builds and threads that did not end well."""
    with tempfile.TemporaryDirectory(prefix="mendwork-bench-") as name, running_cluster() as cluster:
        site = Site(cluster=cluster, folder=Path(name), builds=builds, seconds=seconds)
        sides: dict[str, Callable[..., Awaitable[Took]]] = {"LangGraph": site.theirs, "Mendwork": site.ours}
        _say(f"{builds} at once         wall s   calls asked   asked again")
        for killed in (False, True):
            for who, side in sides.items():
                took = asyncio.run(_once(side, killed=killed))
                what = f"{who}, killed" if killed else who
                _say(f"{what:<18} {took.wall:8.1f} {took.asked:13} {took.again:13}   {took.note}".rstrip())
    _say(BY_HAND)


async def _once(side: Callable[..., Awaitable[Took]], *, killed: bool) -> Took:
    return await side(killed=killed)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Builds killed midway, beside the same steps in LangGraph.")
    parser.add_argument("--quick", action="store_true", help="four builds, a model of a tenth of a second")
    if parser.parse_args().quick:
        main(4, 0.1)
    else:
        main()
