"""A site to measure: a real server and store, worker hosts as processes, builds to their ends, and what it all took."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle

from benchmarks.scale.host import Plan
from benchmarks.scale.world import Shape

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The largest of all workflows' histories, a run each."""

    workflow: str
    events: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What builds took: ``seconds`` from the first start to the last end, ``cpu`` of hosts and server, the largest
    history by events and by bytes, how many calls reached the provider, and how many of them more than once."""

    builds: int
    seconds: float
    cpu: float
    longest: History
    heaviest: History
    calls: int
    again: int

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
        if host.stdout is None or await host.stdout.readline() != b"serving\n":
            raise RuntimeError("a host ended before it served")
        return host

    async def lose(self, host: Process) -> None:
        """kill -9."""
        self._lost += _cpu(host.pid)
        self.hosts.remove(host)
        host.kill()
        await host.wait()

    async def build(self, projects: Sequence[str], *, meanwhile: Callable[[], Awaitable[None]] | None = None) -> Took:
        """One build of each of ``projects``, all at once, while ``meanwhile`` happens. Raises what a build ends
        with."""
        began, before = time.monotonic(), self._cpu()
        handles = await asyncio.gather(*(self._start(project) for project in projects))
        await asyncio.gather(*(handle.result() for handle in handles), *([meanwhile()] if meanwhile else []))
        seconds, cpu = time.monotonic() - began, self._cpu() + self._lost - before
        keys = self.bill.read_text().splitlines()
        histories = await self._histories(len(projects) * (1 + self.shape.tasks))
        return Took(
            builds=len(projects),
            seconds=seconds,
            cpu=cpu,
            longest=max(histories, key=lambda each: each.events),
            heaviest=max(histories, key=lambda each: each.bytes),
            calls=len(keys),
            again=len(keys) - len(set(keys)),
        )

    async def billed(self, calls: int) -> None:
        """Wait until so many calls have reached the provider."""
        while not self.bill.exists() or len(self.bill.read_text().splitlines()) < calls:  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.02)

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
        return sum(_cpu(pid) for pid in (*(host.pid for host in self.hosts), self.server) if pid)

    async def close(self) -> None:
        """End the hosts."""
        for host in self.hosts:
            with contextlib.suppress(ProcessLookupError):
                host.send_signal(signal.SIGTERM)
        await asyncio.gather(*(host.wait() for host in self.hosts))
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


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has taken, 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS
