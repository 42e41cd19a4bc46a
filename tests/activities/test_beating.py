"""Every activity beats, fails typed, and carries the faults of all its tries into the history."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.beating import BeatingInterceptor, earlier_faults
from domain.errors import InvalidPlan, ProviderUnavailable, RateLimited
from tests.activities.trying import Trying

Flaky = Callable[[int], Awaitable[Any]]


async def outcome(client: Client, flaky: Flaky) -> Any:
    """What the workflow returns when its activity behaves as ``flaky`` does with the number of the try."""

    @activity.defn(name="flaky")
    async def run() -> Any:
        return await flaky(activity.info().attempt)

    queue = uuid.uuid4().hex
    async with (
        Worker(client, task_queue=queue, workflows=[Trying], activities=[run], interceptors=[BeatingInterceptor()]),
        asyncio.timeout(40),
    ):
        return await client.execute_workflow(Trying.run, id=queue, task_queue=queue)


async def test_a_result_knows_the_faults_of_the_tries_before_it(client: Client) -> None:
    async def flaky(number: int) -> Any:
        if number == 1:
            raise RateLimited("later", retry_after=0)
        if number == 2:
            raise ProviderUnavailable("no answer")
        return [[fault.kind, fault.number] for fault in earlier_faults()]

    assert await outcome(client, flaky) == [["RateLimited", 1], ["ProviderUnavailable", 2]]


async def test_the_last_failure_carries_the_faults_of_all_tries(client: Client) -> None:
    async def flaky(number: int) -> Any:
        raise RateLimited(f"later {number}")

    assert await outcome(client, flaky) == [["RateLimited", f"later {n}", n] for n in (1, 2, 3)]


async def test_a_retry_after_is_waited_for(client: Client) -> None:
    at: list[float] = []

    async def flaky(number: int) -> Any:
        at.append(time.monotonic())
        if number == 1:
            raise RateLimited("later", retry_after=3)
        return None

    await outcome(client, flaky)
    assert at[1] - at[0] >= 3


async def test_what_will_never_work_is_not_tried_again(client: Client) -> None:
    async def flaky(number: int) -> Any:
        raise InvalidPlan("no task")

    assert await outcome(client, flaky) == [["InvalidPlan", "no task", 1]]


async def test_an_unexpected_error_keeps_its_text_to_itself(client: Client) -> None:
    async def flaky(number: int) -> Any:
        raise ValueError("hunter2")

    faults = await outcome(client, flaky)
    assert [fault[0] for fault in faults] == ["ValueError"] * 3
    assert "hunter2" not in str(faults)


async def test_an_activity_that_does_nothing_for_long_still_beats(client: Client) -> None:
    async def flaky(number: int) -> Any:
        await asyncio.sleep(2.5)  # the heartbeat timeout is one second: without beats this is try 3 of 3
        return number

    assert await outcome(client, flaky) in (1, 2, 3)  # a stall of the machine costs a try; without beats none ends well
