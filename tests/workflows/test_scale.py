"""What the scale benchmarks play, small: many tasks in short histories, and a host that is lost in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client

from benchmarks.scale.site import Site, opened
from benchmarks.scale.world import Shape
from tests.conftest import TemporalServer


@asynccontextmanager
async def site(temporal: TemporalServer, folder: Path, shape: Shape, *, hosts: int) -> AsyncIterator[Site]:
    client: Client = await temporal.connect()
    store = f"sqlite+aiosqlite:///{folder / 'mendwork.db'}"
    at = Site(client=client, address=temporal.address, store=store, folder=folder, shape=shape)
    async with asyncio.timeout(240), opened(at, hosts=hosts):
        yield at


async def test_a_build_of_many_tasks_goes_on_in_new_runs_and_no_history_grows(
    temporal: TemporalServer, tmp_path: Path
) -> None:
    shape = Shape(tasks=40, parallel=4, history_events=300)
    async with site(temporal, tmp_path, shape, hosts=1) as at:
        took = await at.build(["large"])
    assert took.calls == 1 + shape.tasks
    assert took.longest.events < shape.history_events + 60 * shape.parallel  # and what was under way then
    assert took.heaviest.bytes < 250_000


async def test_when_a_host_is_lost_in_the_middle_the_other_one_ends_every_build(
    temporal: TemporalServer, tmp_path: Path
) -> None:
    shape = Shape(tasks=2, seconds=0.5)
    async with site(temporal, tmp_path, shape, hosts=2) as at:

        async def kill() -> None:
            await at.billed(4)
            await at.lose(at.hosts[0])

        took = await at.build(["one", "two", "three"], meanwhile=kill)
    assert took.calls - took.again == 3 * (1 + shape.tasks)
    assert took.again <= shape.slots
