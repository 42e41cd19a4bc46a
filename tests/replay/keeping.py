"""The sweepings whose histories are recorded: a terminated build that is undone, and one look at the whole house."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from temporalio.client import Client, WorkflowHistory

from domain.ports.sagas import sweep_id
from tests.workflows.test_housekeeper import House, workers
from tests.workflows.test_sweeper import QUICK, Outside, scene

Write = Callable[[WorkflowHistory, str], None]


async def record(client: Client, write: Write) -> None:
    """One after the other."""
    await _sweep(client, "swept", Outside(), write)
    await _sweep(client, "stuck", Outside(stuck=["retract_result"]), write)
    await _keep_house(client, "house", House(), write)
    await _keep_house(client, "house-broken", House(broken=("sweep_blobs", "judge_pins")), write)


async def _sweep(client: Client, name: str, outside: Outside, write: Write) -> None:
    async with scene(client, outside) as at, asyncio.timeout(60):
        build = await at.terminated()
        sweeper = await client.start_workflow("Sweeper", QUICK, id=f"sweeper-{name}", task_queue=at.queue)
        await sweeper.result()
        undoing: Any = client.get_workflow_handle(sweep_id(build))
        await undoing.result()
    write(await sweeper.fetch_history(), f"sweeper-{name}")
    write(await undoing.fetch_history(), f"sweeper-{name}-build")


async def _keep_house(client: Client, name: str, house: House, write: Write) -> None:
    async with workers(client, house) as queue, asyncio.timeout(60):
        keeper = await client.start_workflow("Housekeeper", {}, id=f"housekeeper-{name}", task_queue=queue)
        await keeper.result()
    write(await keeper.fetch_history(), f"housekeeper-{name}")
