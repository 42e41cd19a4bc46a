"""Both sides of the comparison: so many at once to their ends, undisturbed or killed midway."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
import uuid
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client

from adapters.settings import Settings
from adapters.store import open_store
from adapters.temporal.connect import Target, connect_to, converter_for
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from adapters.temporal.supervisor import Program, Supervisor
from benchmarks.engine.tree import BOOKKEEPING, draw, steps, without
from benchmarks.ground.processes import cpu_below
from benchmarks.ground.waiting import Handle, all_ended, telling, until, within
from benchmarks.langgraph.asking import Asked, model
from benchmarks.langgraph.ours import QUEUE
from benchmarks.langgraph.theirs import CALLS, POOL
from tests.postgres import Cluster

SPEC = {"spec": "# Tags\nNotes get tags.", "project": "notes", "unattended": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds from the start of all to the end of the last; seconds of CPU of all processes but PostgreSQL's; calls
    asked, and asked again."""

    wall: float
    cpu: float
    asked: int
    again: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where everything is; ``builds`` at once, each call of the model takes ``seconds``. What has not ended after
    ``patience`` seconds is given up: Unfinished says what that is."""

    cluster: Cluster
    folder: Path
    builds: int
    seconds: float
    patience: float

    async def theirs(self, *, killed: bool) -> Took:
        """LangGraph; this is the supervisor that it has not."""
        database = self.cluster.create()
        async with model(self.seconds) as asked:
            names = [f"thread-{number}" for number in range(self.builds)]
            argv = ("-m", "benchmarks.langgraph.theirs", database, asked.url, *names)
            began, cpu = time.perf_counter(), cpu_below(os.getpid())
            async with telling(lambda: self._said(asked)):
                if killed:
                    async with process(*argv):
                        await self._midway(asked)
                async with process(*argv) as last:
                    code = await within(self.patience, last.wait(), what=lambda: self._said(asked))
            if code:
                raise RuntimeError(f"LangGraph's process exited with {code}")
            wall = time.perf_counter() - began
            return Took(wall=wall, cpu=cpu_below(os.getpid()) - cpu, asked=asked.total, again=asked.again)

    async def ours(self, *, killed: bool) -> Took:
        """Mendwork, kept by its own supervisor."""
        url = f"{self.cluster.create()}&pool_size={POOL}&pool_overflow=0"
        async with model(self.seconds) as asked, self.temporal() as server:
            argv = ("-m", "benchmarks.langgraph.ours", server, url, asked.url, str(self.folder / uuid.uuid4().hex))
            program = Program(
                name="all",
                argv=(sys.executable, *argv),
                environment=dict(os.environ),
                log=self.folder / "worker.log",
                folder=Path.cwd(),
            )
            began, cpu = time.perf_counter(), cpu_below(os.getpid())
            async with kept(program) as supervisor:
                client = await connected(server, self.folder)
                handles = [await started(client) for _ in range(self.builds)]

                async def kill() -> None:
                    await self._midway(asked)
                    os.kill(supervisor.pids["all"], signal.SIGKILL)

                await self._ended(handles, asked, also=[kill()] if killed else [])
                wall, cpu = time.perf_counter() - began, cpu_below(os.getpid()) - cpu
            names = [handle.id for handle in handles]
            note = await unknown(url, names) if killed else await shape(client, names[0])
        return Took(wall=wall, cpu=cpu, asked=asked.total, again=asked.again, note=note)

    async def _ended(self, handles: Sequence[Handle], asked: Asked, also: Sequence[Coroutine[Any, Any, None]]) -> None:
        results = await all_ended(handles, seconds=self.patience, also=also, more=lambda: f", {self._said(asked)}")
        for handle, ended in zip(handles, results, strict=True):
            if ended["status"] != "succeeded":
                raise RuntimeError(f"{handle.id} ended as {ended['status']}")

    @asynccontextmanager
    async def temporal(self) -> AsyncIterator[str]:
        """A development server of its own; its address."""
        program = find_server(explicit=None, environment=os.environ)
        with tempfile.TemporaryDirectory(dir=self.folder) as state:
            async with DevServer(ServerPlan(program=program, state=Path(state), patience=60)) as server:
                yield server.address

    async def _midway(self, asked: Asked) -> None:
        """Half of the calls have been asked."""
        calls = self.builds * len(CALLS) // 2
        await until(lambda: asked.total >= calls, seconds=self.patience, what=lambda: self._said(asked))

    def _said(self, asked: Asked) -> str:
        return f"{asked.total - asked.again} of {self.builds * len(CALLS)} calls asked, {asked.again} again"


async def connected(server: str, folder: Path) -> Client:
    """A client as the product has it."""
    target = Target(address=server, namespace="default", origin="the benchmark's server")
    return await connect_to(target, converter=converter_for(Settings.model_validate({"root": folder}), "default"))


async def started(client: Client) -> Handle:
    """One more build, with the product's own patience for a lost workflow task."""
    patience = timedelta(seconds=Settings.model_validate({"root": Path.cwd()}).timeouts.sticky)
    name = f"build-notes-{uuid.uuid4().hex}"
    return await client.start_workflow(
        "BuildSaga", SPEC, id=name, task_queue=QUEUE, task_timeout=patience, result_type=dict
    )


async def unknown(url: str, names: Sequence[str]) -> str:
    """What the ledger says of the calls that were under way."""
    async with await open_store(url) as store:
        left = [each for name in names for each in await store.calls.tries(name) if each.state == "unknown"]
    return f"{len(left)} calls are in the ledger as unknown"


async def shape(client: Client, build: str) -> str:
    """How many steps a build kept."""
    tree = await draw(client, build)
    work = steps(without(tree, BOOKKEEPING))
    return f"{work} steps a build, and {steps(tree) - work} of its books"


@asynccontextmanager
async def process(*argv: str) -> AsyncIterator[Process]:
    """A Python of its own; what has not ended at the end is killed."""
    running = await asyncio.create_subprocess_exec(sys.executable, *argv)
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()


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
