"""A try that only waited for its turn is no try: it uses up nothing, and heartbeats do not grow with it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Worker

from activities.beating import MOST_LOST, BeatingInterceptor, earlier_faults
from domain.errors import Busy, Crowded, ProviderUnavailable
from domain.recovery.fault import Fault, told_after

with workflow.unsafe.imports_passed_through():
    from workflows.faults import faults_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    tries: int = 3


@workflow.defn
class Calling:
    """Returns what the activity returns, or the faults that its failure carries."""

    @workflow.run
    async def run(self) -> Any:
        try:
            return await workflow.execute_activity(
                "flaky",
                Request(),
                start_to_close_timeout=timedelta(seconds=20),
                heartbeat_timeout=timedelta(seconds=5),
                retry_policy=RetryPolicy(maximum_attempts=1_003),
            )
        except ActivityError as error:
            return [[fault.kind, fault.number] for fault in faults_of(error)]


async def played(client: Client, script: list[Callable[[], Exception]]) -> tuple[Any, int]:
    """The workflow's result, and how often the activity ran; each run raises the next of ``script``, if any."""
    left: Iterator[Callable[[], Exception]] = iter(script)
    runs = 0

    @activity.defn(name="flaky")
    async def run(request: Request) -> Any:
        nonlocal runs
        runs += 1
        if error := next(left, None):
            raise error()
        return [[fault.kind, fault.number] for fault in earlier_faults()]

    queue = uuid.uuid4().hex
    async with Worker(
        client, task_queue=queue, workflows=[Calling], activities=[run], interceptors=[BeatingInterceptor()]
    ):
        return await client.execute_workflow(Calling.run, id=queue, task_queue=queue), runs


def crowded() -> Exception:
    return Crowded("others", retry_after=0.02)


def away() -> Exception:
    return ProviderUnavailable("no answer")


async def test_waiting_for_a_turn_uses_up_no_try_and_is_told_once(client: Client) -> None:
    told, runs = await played(client, [crowded] * 6 + [away] + [crowded] * 3)
    assert told == [["Crowded", 1], ["ProviderUnavailable", 1], ["Crowded", 2]]
    assert runs == 11


async def test_between_waits_the_tries_are_used_up_as_ever(client: Client) -> None:
    told, runs = await played(client, [away, crowded, crowded, away, away, away])
    assert [fault for fault in told if fault[0] != "Crowded"] == [["ProviderUnavailable", n] for n in (1, 2, 3)]
    assert runs == 5


class Body(ActivityInboundInterceptor):
    """The innermost: the activity itself."""

    def __init__(self) -> None:
        self.ran = False

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self.ran = True


@pytest.mark.parametrize(("attempt", "runs"), [(3 + MOST_LOST, True), (4 + MOST_LOST, False)])
async def test_a_request_that_takes_its_worker_with_it_again_and_again_is_given_up(attempt: int, runs: bool) -> None:
    here, body = ActivityEnvironment(), Body()
    here.info = replace(here.info, attempt=attempt)
    given = ExecuteActivityInput(fn=lambda: None, args=[Request()], executor=None, headers={})

    async def run() -> None:
        await BeatingInterceptor().intercept_activity(body).execute_activity(given)

    with nullcontext() if runs else pytest.raises(ApplicationError, match="were lost with their workers"):
        await here.run(run)
    assert body.ran is runs


def test_a_wait_of_days_is_one_line_and_the_faults_before_it_stay() -> None:
    faults: tuple[Fault, ...] = ()
    for number, error in enumerate([ProviderUnavailable("x"), *[Busy("full")] * 1_000, ProviderUnavailable("y")], 1):
        faults = told_after(faults, Fault.of(error, source="s", number=number))
    assert [(fault.kind, fault.number) for fault in faults] == [
        ("ProviderUnavailable", 1),
        ("Busy", 1_001),
        ("ProviderUnavailable", 1_002),
    ]
