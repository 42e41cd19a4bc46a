"""The sweeper's schedule on a real server: made once, brought up to date, and really starting sweepers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import (
    Client,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleDescription,
    ScheduleOverlapPolicy,
)
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from adapters.settings import Settings
from adapters.temporal.namespace.schedule import ensure_housekeeper, ensure_sweeper, housekeeping_id, schedule_id
from domain.errors import ServerUnavailable
from tests.conftest import TemporalServer

Make = Callable[..., Settings]


@workflow.defn(name="Sweeper")
class FakeSweeper:
    """Returns what it was started with."""

    @workflow.run
    async def run(self, request: Any) -> Any:
        return request


@pytest.fixture
async def queue(client: Client) -> AsyncIterator[str]:
    """A queue of the test's own; its schedule goes with it."""
    name = f"q-{uuid.uuid4().hex}"
    yield name
    await client.get_schedule_handle(schedule_id(name)).delete()


async def described(client: Client, queue: str) -> ScheduleDescription:
    return await client.get_schedule_handle(schedule_id(queue)).describe()


def every(there: ScheduleDescription) -> timedelta:
    return there.schedule.spec.intervals[0].every


async def test_it_sweeps_every_minute_and_never_twice_at_once(client: Client, queue: str, make_settings: Make) -> None:
    assert await ensure_sweeper(client, make_settings(temporal={"task_queue": queue})) == f"mendwork-sweeper-{queue}"
    there = await described(client, queue)
    assert every(there) == timedelta(seconds=60)
    assert there.schedule.policy.overlap is ScheduleOverlapPolicy.SKIP
    action = there.schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    assert (action.workflow, action.task_queue) == ("Sweeper", queue)


async def test_made_again_it_is_brought_up_to_date(client: Client, queue: str, make_settings: Make) -> None:
    await ensure_sweeper(client, make_settings(temporal={"task_queue": queue}))
    await ensure_sweeper(client, make_settings(temporal={"task_queue": queue}, timeouts={"sweep": 7}))
    assert every(await described(client, queue)) == timedelta(seconds=7)


async def test_workers_that_start_at_once_make_one(client: Client, queue: str, make_settings: Make) -> None:
    settings = make_settings(temporal={"task_queue": queue})
    names = await asyncio.gather(*(ensure_sweeper(client, settings) for _ in range(8)))
    assert len(set(names)) == 1
    assert every(await described(client, queue)) == timedelta(seconds=60)


async def test_what_an_operator_paused_stays_paused(client: Client, queue: str, make_settings: Make) -> None:
    settings = make_settings(temporal={"task_queue": queue})
    await ensure_sweeper(client, settings)
    await client.get_schedule_handle(schedule_id(queue)).pause(note="moving house")
    await ensure_sweeper(client, settings)
    state = (await described(client, queue)).schedule.state
    assert (state.paused, state.note) == (True, "moving house")


async def test_it_starts_the_sweeper_with_the_settings_times_at_once_and_again(
    client: Client, queue: str, make_settings: Make
) -> None:
    settings = make_settings(temporal={"task_queue": queue}, timeouts={"sweep": 1, "heartbeat": 2})
    async with Worker(client, task_queue=queue, workflows=[FakeSweeper], workflow_runner=UnsandboxedWorkflowRunner()):
        await ensure_sweeper(client, settings)
        async with asyncio.timeout(60):
            while len(runs := (await described(client, queue)).info.recent_actions) < 2:  # noqa: ASYNC110 - elsewhere
                await asyncio.sleep(0.05)
        started = runs[0].action
        assert isinstance(started, ScheduleActionExecutionStartWorkflow)
        result = await client.get_workflow_handle(started.workflow_id).result()
    assert result == {"heartbeat": 2.0, "settle": 6.0}


async def test_a_server_without_the_namespace_is_told_in_a_sentence(
    temporal: TemporalServer, settings: Settings
) -> None:
    elsewhere = await Client.connect(temporal.address, namespace="no-such-namespace")
    with pytest.raises(ServerUnavailable, match="the schedule mendwork-sweeper-mendwork cannot be made: "):
        await ensure_sweeper(elsewhere, settings)


async def test_the_housekeeper_comes_once_a_day_and_never_at_once(client: Client, make_settings: Make) -> None:
    name = f"q-{uuid.uuid4().hex}"
    settings = make_settings(temporal={"task_queue": name})
    try:
        made = await asyncio.gather(*(ensure_housekeeper(client, settings) for _ in range(3)))
        assert set(made) == {f"mendwork-housekeeper-{name}"}
        there = await client.get_schedule_handle(housekeeping_id(name)).describe()
        assert every(there) == timedelta(days=1)
        assert there.schedule.policy.overlap is ScheduleOverlapPolicy.SKIP
        assert there.info.num_actions == 0, "a build that starts beside it has the machine for itself"
        action = there.schedule.action
        assert isinstance(action, ScheduleActionStartWorkflow)
        assert (action.workflow, action.task_queue) == ("Housekeeper", name)
        await ensure_housekeeper(client, make_settings(temporal={"task_queue": name}, timeouts={"housekeeping": 3600}))
        assert every(await client.get_schedule_handle(housekeeping_id(name)).describe()) == timedelta(hours=1)
    finally:
        await client.get_schedule_handle(housekeeping_id(name)).delete()
