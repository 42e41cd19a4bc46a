"""Sagas at work on a real Temporal server: workers with a faked outside world, and what tests wait for."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from tests.workflows.fakes import World
from workflows.build_saga import BuildSaga
from workflows.task_saga import TaskSaga

SPEC = {"spec": "# Tags\nNotes get tags.", "project": "notes"}

UNATTENDED = {**SPEC, "unattended": True}


@asynccontextmanager
async def serving(client: Client, world: World, queue: str, *, also: Sequence[type] = ()) -> AsyncIterator[None]:
    workflows = [BuildSaga, TaskSaga, *also]
    async with (
        Worker(client, task_queue=queue, workflows=workflows, activities=world.activities()),
        Worker(client, task_queue=f"{queue}-workspace", activities=world.activities()),
        Worker(client, task_queue=f"{queue}-model", activities=world.activities()),
        Worker(client, task_queue=f"{queue}-sandbox", activities=world.activities()),
    ):
        yield


async def begin(client: Client, queue: str, request: Any = None, *, name: str = "") -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(
        "BuildSaga",
        SPEC if request is None else request,
        id=name or f"build-notes-{uuid.uuid4().hex}",
        task_queue=queue,
    )


async def build(client: Client, world: World, request: Any = None, *, name: str = "") -> Any:
    queue = uuid.uuid4().hex
    async with serving(client, world, queue):
        handle = await begin(client, queue, request, name=name)
        async with asyncio.timeout(90):
            return await handle.result()


async def failure_of(client: Client, world: World, request: Any = None, *, name: str = "") -> ApplicationError:
    with pytest.raises(WorkflowFailureError) as caught:
        await build(client, world, request, name=name)
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


async def until(what: Callable[[], Any], *, seconds: float = 60.0) -> Any:
    """Wait for a true value of ``what`` and return it."""
    async with asyncio.timeout(seconds):
        while not (value := what()):  # noqa: ASYNC110 - the condition lies in what activities recorded
            await asyncio.sleep(0.02)
        return value


async def opened(world: World, about: str, *, number: int = 1) -> dict[str, Any]:
    """The data of the ``number``-th ask about something, once its row is written."""

    def found() -> dict[str, Any] | None:
        asks = [e.data for e in world.events if e.kind == "ask.opened" and e.data["about"] == about]
        return dict(asks[number - 1]) if len(asks) >= number else None

    data: dict[str, Any] = await until(found)
    return data
