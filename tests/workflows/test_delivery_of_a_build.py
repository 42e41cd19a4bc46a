"""A build that is delivered: it starts the delivery, waits for its report, passes an abort on, outlives new runs."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError

from activities.delivery.lanes import LookInput
from activities.intake import AdmitBuildInput, AdmittedBuild
from domain.build.project import Consent, Limits
from tests.workflows.fakes import World
from tests.workflows.running import UNATTENDED, begin, serving, until


@workflow.defn(name="DeliverySaga")
class ScriptedDelivery:
    """Stands in for the delivery: reports what the test tells it to, and keeps what it is told."""

    @workflow.init
    def __init__(self, request: Any = None) -> None:
        self._report: dict[str, Any] = {}
        self._heard: list[Any] = []
        self._request = request

    @workflow.run
    async def run(self, request: Any = None) -> None:
        await workflow.wait_condition(lambda: bool(self._report))
        parent = workflow.info().parent
        assert parent is not None
        await workflow.get_external_workflow_handle(parent.workflow_id).signal("delivered", self._report)

    @workflow.signal
    def end_with(self, report: Any) -> None:
        self._report = dict(report)

    @workflow.signal
    def abort(self, raw: Any) -> None:
        self._heard.append(raw)

    @workflow.query
    def heard(self) -> list[Any]:
        return self._heard

    @workflow.query
    def request(self) -> Any:
        return self._request


@dataclass
class Delivered(World):
    """A world whose project has a target; ``standing`` is what a look at the delivery finds."""

    standing: str = "running"
    looks: list[str] = field(default_factory=list)

    @activity.defn(name="admit_build")
    async def do_admit_build(self, request: AdmitBuildInput) -> AdmittedBuild:
        return replace(await World.do_admit_build(self, request), delivers=True)

    @activity.defn(name="look_at_holder")
    async def do_look_at_holder(self, request: LookInput) -> str:
        self.looks.append(request.saga)
        return self.standing


@dataclass
class Stage:
    """One build that waits for its delivery."""

    client: Client
    build: Any
    world: Delivered

    def delivery(self) -> Any:
        return self.client.get_workflow_handle(f"{self.build.id}-release")

    async def ends_with(self, **report: Any) -> Any:
        told = {"release": 7, "status": "promoted", "sentence": "release 7 serves production of notes"}
        await self.delivery().signal("end_with", {**told, **report})
        async with asyncio.timeout(60):
            return await self.build.result()

    async def waiting(self) -> Any:
        await until(lambda: any(e.kind == "build.phase" and e.data["phase"] == "deliver" for e in self.world.events))
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(RPCError):  # it has not begun yet
                    return await self.delivery().query("heard")
                await asyncio.sleep(0.05)


@asynccontextmanager
async def staged(client: Client, world: Delivered, request: Any = None) -> AsyncIterator[Stage]:
    queue = uuid.uuid4().hex
    async with serving(client, world, queue, also=[ScriptedDelivery]):
        build = await begin(client, queue, request or UNATTENDED)
        stage = Stage(client=client, build=build, world=world)
        await stage.waiting()
        yield stage


class TestTheReport:
    async def test_promoted_is_a_success_that_names_the_release(self, client: Client) -> None:
        world = Delivered()
        async with staged(client, world) as stage:
            result = await stage.ends_with()
        assert result["status"] == "succeeded"
        ended = next(e.data for e in world.events if e.kind == "build.ended")
        assert "release 7 serves production of notes" in ended["sentence"]

    @pytest.mark.parametrize("status", ["rolled back", "undelivered", "unclear"])
    async def test_another_end_is_the_builds_and_what_was_landed_stays(self, client: Client, status: str) -> None:
        world = Delivered()
        async with staged(client, world) as stage:
            result = await stage.ends_with(status=status, sentence="because")
        assert result["status"] == status
        assert world.of("retract_result") == []

    async def test_the_delivery_is_told_how_the_change_came_to_be(self, client: Client) -> None:
        world = Delivered()
        async with staged(client, world) as stage:
            request = await stage.delivery().query("request")
            await stage.ends_with()
        made = request["made"]
        assert (made["green"], made["tests"], made["tasks"], made["unknown"]) == (True, 3, 2, False)
        assert request["commit"] == world.of("land_result")[0].commit


class TestWaiting:
    async def test_a_delivery_that_was_terminated_is_unclear_not_awaited_for_ever(self, client: Client) -> None:
        world = Delivered(standing="stopped")
        async with staged(client, world) as stage:
            await stage.delivery().terminate()
            async with asyncio.timeout(60):
                result = await stage.build.result()
        assert result["status"] == "unclear"

    async def test_it_goes_on_in_a_new_run_while_it_waits(self, client: Client) -> None:
        world = Delivered(limits=Limits(history_events=60))
        async with staged(client, world) as stage:
            await until(lambda: "build.continued" in world.kinds())
            result = await stage.ends_with()
        assert result["status"] == "succeeded"


class TestAbort:
    async def test_is_passed_on_and_undone_only_after_the_report(self, client: Client) -> None:
        world = Delivered()
        async with staged(client, world) as stage:
            await stage.build.signal("abort", {"by": "bob", "reason": "stop"})
            async with asyncio.timeout(30):
                while not await stage.delivery().query("heard"):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert world.of("retract_result") == []
            with pytest.raises(WorkflowFailureError):
                await stage.ends_with(status="rolled back", sentence="back at release 6")
        assert len(world.of("retract_result")) == 1

    async def test_that_comes_as_the_release_was_promoted_leaves_it_and_its_branch(self, client: Client) -> None:
        world = Delivered()
        async with staged(client, world) as stage:
            await stage.build.signal("abort", {"by": "bob", "reason": "stop"})
            result = await stage.ends_with(status="promoted", sentence="serves")
        assert result["status"] == "succeeded"
        assert world.of("retract_result") == []
        ended = world.events[-1].data
        assert ended["sentence"].endswith("`mendwork rollback` takes that back; release 7: serves"), ended

    async def test_without_a_target_nothing_is_delivered(self, client: Client) -> None:
        world = World(consent=Consent(approve=(), review=False))
        queue = uuid.uuid4().hex
        async with serving(client, world, queue):
            build = await begin(client, queue, UNATTENDED)
            assert (await build.result())["status"] == "succeeded"
        assert not [e for e in world.events if e.kind == "build.phase" and e.data["phase"] == "deliver"]
