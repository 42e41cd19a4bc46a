"""A site to measure: a real server and store, worker hosts as processes, builds to their ends, and what it all took."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle

from benchmarks.ground.processes import cpu_of
from benchmarks.ground.waiting import all_ended, until, within
from benchmarks.scale.host import Plan
from benchmarks.scale.world import Shape

PATIENCE = 1_200.0
"""Seconds after which builds that have not ended are named."""
_STARTING, _ENDING = 120.0, 60.0
Meanwhile = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The largest of all workflows' histories, a run each."""

    workflow: str
    events: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What builds took: ``seconds`` from the first start to the last end, ``cpu`` of hosts and server, the largest
    history by events and by bytes, how many calls reached the provider, and how many of them more than once.

    ``steady`` is how many calls a second began while the middle half of them did: at the start and at the end there are
    fewer of them than turns."""

    builds: int
    seconds: float
    cpu: float
    longest: History
    heaviest: History
    calls: int
    again: int
    steady: float

    @property
    def a_minute(self) -> float:
        return 60 * self.builds / self.seconds


@dataclass(slots=True, kw_only=True)
class Site:
    """One server at ``address``, and the hosts on one queue; ``server`` is its process, 0 where that is not known."""

    client: Client
    address: str
    store: str
    folder: Path
    shape: Shape
    server: int = 0
    queue: str = field(default_factory=lambda: f"scale-{uuid.uuid4().hex[:12]}")
    hosts: list[Process] = field(default_factory=list)
    _lost: float = 0.0

    @property
    def bill(self) -> Path:
        return self.folder / f"{self.queue}.bill"

    async def add_host(self) -> Process:
        """One more, when it serves."""
        plan = Plan(
            address=self.address,
            queue=self.queue,
            store=self.store,
            folder=str(self.folder),
            bill=str(self.bill),
            shape=self.shape,
        )
        host = await asyncio.create_subprocess_exec(*plan.argv(), stdout=PIPE)
        self.hosts.append(host)
        assert host.stdout is not None  # noqa: S101 - it is a pipe
        if await within(_STARTING, host.stdout.readline(), what="a host does not serve") != b"serving\n":
            raise RuntimeError("a host ended before it served")
        return host

    async def lose(self, host: Process) -> None:
        """kill -9."""
        self._lost += cpu_of(host.pid)
        self.hosts.remove(host)
        host.kill()
        await host.wait()

    async def build(self, projects: Sequence[str], *, meanwhile: Meanwhile | None = None) -> Took:
        """One build of each of ``projects``, all at once, while ``meanwhile`` happens. Raises what a build ends
        with, and Unfinished."""
        began, before = time.monotonic(), self._cpu()
        handles = await asyncio.gather(*(self._start(project) for project in projects))
        also = [meanwhile()] if meanwhile else []
        await all_ended(handles, seconds=PATIENCE, also=also, more=lambda: f", {len(self._calls())} calls made")
        seconds, cpu = time.monotonic() - began, self._cpu() + self._lost - before
        calls = self._calls()
        histories = await self._histories(len(projects) * (1 + self.shape.tasks))
        return Took(
            builds=len(projects),
            seconds=seconds,
            cpu=cpu,
            longest=max(histories, key=lambda each: each.events),
            heaviest=max(histories, key=lambda each: each.bytes),
            calls=len(calls),
            again=len(calls) - len({key for key, _ in calls}),
            steady=_steady([at for _, at in calls]),
        )

    async def billed(self, calls: int) -> None:
        """Wait until so many calls have reached the provider."""
        await until(
            lambda: len(self._calls()) >= calls,
            seconds=PATIENCE,
            what=lambda: f"{len(self._calls())} of {calls} calls have begun",
        )

    def _calls(self) -> list[tuple[str, float]]:
        """The key of each call that reached the provider, and when."""
        lines = self.bill.read_text().splitlines() if self.bill.exists() else []
        return [(key, float(at)) for key, _, at in (line.partition(" ") for line in lines)]

    async def _start(self, project: str) -> WorkflowHandle[Any, Any]:
        name = f"build-{project}-{uuid.uuid4().hex[:8]}"
        request = {"spec": "# Tags", "project": project}
        return await self.client.start_workflow("BuildSaga", request, id=name, task_queue=self.queue)

    async def _histories(self, workflows: int) -> list[History]:
        """Of every run on the queue, once the lists have all of them."""
        async with asyncio.timeout(60):
            while True:
                found = [
                    History(workflow=each.id, events=each.history_length, bytes=each.raw_info.history_size_bytes)
                    async for each in self.client.list_workflows(f"TaskQueue = '{self.queue}'")
                ]
                if len({each.workflow for each in found}) >= workflows and all(each.bytes for each in found):
                    return found
                await asyncio.sleep(0.2)

    def _cpu(self) -> float:
        return sum(cpu_of(pid) for pid in (*(host.pid for host in self.hosts), self.server) if pid)

    async def close(self) -> None:
        """End the hosts; those that do not end are killed."""
        for host in self.hosts:
            with contextlib.suppress(ProcessLookupError):
                host.send_signal(signal.SIGTERM)
        await asyncio.gather(*(_ended(host) for host in self.hosts))
        self.hosts.clear()


@contextlib.asynccontextmanager
async def opened(site: Site, *, hosts: int) -> AsyncIterator[Site]:
    """``site`` with so many hosts."""
    try:
        for _ in range(hosts):
            await site.add_host()
        yield site
    finally:
        await site.close()


async def _ended(host: Process) -> None:
    try:
        async with asyncio.timeout(_ENDING):
            await host.wait()
    except TimeoutError:
        host.kill()
        await host.wait()


def _steady(times: Sequence[float]) -> float:
    """How many a second there are in the middle half of ``times``; 0 for too few."""
    middle = sorted(times)[len(times) // 4 : -(len(times) // 4) or None]
    return (len(middle) - 1) / (middle[-1] - middle[0]) if len(middle) > 1 else 0.0
