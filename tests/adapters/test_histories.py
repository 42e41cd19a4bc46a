"""Rows read back out of real histories: continued, reset, swept, exported; nothing more, nothing less."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from google.protobuf.json_format import ParseDict
from temporalio import workflow
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.records import Records
from adapters.store.memory import MemoryStore
from adapters.temporal.connect import DATA_CONVERTER
from adapters.temporal.finding import find_server
from adapters.temporal.histories.exports import exported
from adapters.temporal.histories.harvest import Harvest, harvest
from domain.build.names import task_saga_id
from domain.errors import EventUnreadable, InvalidInput, InvalidName
from domain.ports.sagas import sweep_id
from domain.ports.store import Event
from domain.trace.order import key_of, undone
from tests.conftest import TemporalServer
from workflows.policies import Effects
from workflows.recorder import BATCH, Recorder

FINISHED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


@workflow.defn(name="Noting")
class Noting:
    """Notes ``facts`` a run, as the sagas do; runs ``tasks`` as children, and ``runs`` times in all."""

    def __init__(self) -> None:
        self._holds = False

    @workflow.update
    async def held(self) -> None:
        """Answers when everything is recorded and the run waits to be terminated."""
        await workflow.wait_condition(lambda: self._holds)

    @workflow.run
    async def run(self, asked: dict[str, Any]) -> None:
        effects, recorder = Effects(), Recorder(build=asked["build"], task=asked.get("task", ""))
        for number in range(asked.get("facts", 3)):
            recorder.note("task.waits", holder="somebody", files=[f"file-{number}"])
            if number % 2:
                await recorder.flush(effects)
        for task in asked.get("tasks", ()):
            child = {"build": asked["build"], "task": task}
            await workflow.execute_child_workflow("Noting", child, id=task_saga_id(asked["build"], task))
        recorder.note("build.ended", status="succeeded", sentence="")
        await recorder.flush(effects)
        if asked.get("hold"):
            self._holds = True
            await workflow.wait_condition(lambda: False)
        if asked.get("runs", 1) > 1:
            workflow.continue_as_new({**asked, "runs": asked["runs"] - 1})


class Site:
    """A worker that records into a store of its own, and builds with names of their own."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.store = MemoryStore()
        self.queue = uuid.uuid4().hex
        self.build = f"build-notes-{uuid.uuid4().hex[:12]}"

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        records = Records(events=self.store.events, undo=self.store.undo)
        runner = UnsandboxedWorkflowRunner()
        async with Worker(
            self.client,
            task_queue=self.queue,
            workflows=[Noting],
            activities=[records.record_events],
            workflow_runner=runner,
        ):
            yield

    async def start(self, *, saga: str = "", **asked: Any) -> WorkflowHandle[Any, Any]:
        given = {"build": self.build, **asked}
        return await self.client.start_workflow("Noting", given, id=saga or self.build, task_queue=self.queue)

    async def run(self, **asked: Any) -> WorkflowHandle[Any, Any]:
        """To its end; the handle is of the last run."""
        handle = await self.start(**asked)
        await handle.result()
        return self.client.get_workflow_handle(handle.id, run_id=(await handle.describe()).run_id)

    async def recorded(self) -> list[Event]:
        return [event for _, event in await self.store.events.read(self.build)]


@pytest.fixture
async def site(client: Client) -> AsyncIterator[Site]:
    site = Site(client)
    async with site.working():
        yield site


def same(harvested: Sequence[Event], recorded: Sequence[Event]) -> bool:
    """The same rows; a reset run's history holds some of them a second time."""
    found = {key_of(event): event for event in harvested}
    assert found == {key_of(event): event for event in recorded}
    assert all(found[key_of(event)] == event for event in harvested)
    return True


async def reset(site: Site, handle: WorkflowHandle[Any, Any], *, to: int) -> str:
    """Back to where its workflow task number ``to`` ended; the new run."""
    history = await handle.fetch_history()
    finished = [event.event_id for event in history.events if event.event_type == FINISHED]
    request = ResetWorkflowExecutionRequest(
        namespace=site.client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=handle.run_id or ""),
        reason="a test",
        request_id=str(uuid.uuid4()),
        workflow_task_finish_event_id=finished[to],
    )
    run: str = (await site.client.workflow_service.reset_workflow_execution(request)).run_id
    return run


class TestFromTheServer:
    async def test_a_build_with_tasks_gives_the_rows_that_were_recorded(self, site: Site) -> None:
        await site.run(facts=BATCH + 7, tasks=["api", "store"])
        found = await harvest(site.client, site.build)
        assert same(found.events, await site.recorded())
        assert len(found.read) == 3
        assert found.gone == []

    async def test_every_run_of_a_build_that_continues_as_new_is_read(self, site: Site) -> None:
        await site.run(runs=4, tasks=["api"])
        found = await harvest(site.client, site.build)
        assert same(found.events, await site.recorded())
        assert len(found.read) == 8, "the task's saga ran once for each run of the build, under one name"

    async def test_a_reset_build_gives_the_rows_before_and_after(self, site: Site) -> None:
        handle = await site.run(facts=5)
        before = await site.recorded()
        await site.client.get_workflow_handle(site.build, run_id=await reset(site, handle, to=1)).result()
        assert {run for _, run, _ in undone(await site.recorded())} == {handle.run_id}
        assert len(await site.recorded()) > len(before)
        assert same((await harvest(site.client, site.build)).events, await site.recorded())

    async def test_so_does_one_that_was_reset_twice_and_continued_before(self, site: Site) -> None:
        handle = await site.run(facts=4, runs=2)
        again = site.client.get_workflow_handle(site.build, run_id=await reset(site, handle, to=1))
        await again.result()
        await site.client.get_workflow_handle(site.build, run_id=await reset(site, again, to=0)).result()
        assert same((await harvest(site.client, site.build)).events, await site.recorded())

    async def test_a_build_that_runs_gives_what_it_has_recorded_so_far(self, site: Site) -> None:
        handle = await site.start(facts=3, hold=True)
        await handle.execute_update(Noting.held)
        assert same((await harvest(site.client, site.build)).events, await site.recorded())
        await handle.terminate()

    async def test_what_a_sweep_recorded_is_the_builds_too_and_no_other_builds_rows_are(self, site: Site) -> None:
        handle = await site.start(facts=3, hold=True)
        await handle.execute_update(Noting.held)
        await handle.terminate()
        await (await site.start(saga=sweep_id(site.build), facts=2)).result()
        other = Site(site.client)
        other.queue, other.store = site.queue, site.store
        other.build = f"{site.build}-10"
        await other.run(tasks=["api"])
        found = await harvest(site.client, site.build)
        assert same(found.events, await site.recorded())
        assert {workflow_id for workflow_id, _ in found.read} == {site.build, sweep_id(site.build)}

    async def test_two_sweeps_under_one_name_are_both_read_and_what_they_noted_of_others_is_left(
        self, site: Site
    ) -> None:
        for _ in range(2):
            await (await site.start(saga=sweep_id(site.build))).result()
        await (await site.start(saga=sweep_id(site.build), build=f"{site.build}-x")).result()
        found = await listed(site, runs=3)
        assert same(found.events, await site.recorded())

    async def test_runs_that_the_servers_list_does_not_show_yet_are_found_by_what_histories_name(
        self, site: Site
    ) -> None:
        handle = await site.run(facts=4, runs=2, tasks=["api"])
        await site.client.get_workflow_handle(site.build, run_id=await reset(site, handle, to=1)).result()
        found = await harvest(cast(Client, Unlisting(site.client)), site.build)
        assert same(found.events, await site.recorded())

    async def test_a_history_that_is_gone_is_named(self, site: Site) -> None:
        handle = await site.run(runs=2)
        first = (await site.recorded())[0].run
        found = await harvest(cast(Client, Forgetful(site.client, run=first)), site.build)
        assert found.gone == [(site.build, first)]
        assert same(found.events, [event for event in await site.recorded() if event.run == handle.run_id])

    async def test_a_build_that_nobody_knows_has_nothing(self, client: Client) -> None:
        found = await harvest(client, f"build-notes-{uuid.uuid4().hex}")
        assert (found.events, found.read, found.gone) == ([], [], [])

    async def test_a_name_that_no_build_can_have_is_refused(self, client: Client) -> None:
        with pytest.raises(InvalidName):
            await harvest(client, "x' OR WorkflowType = 'BuildSaga")


async def listed(site: Site, *, runs: int) -> Harvest:
    """A harvest, once the server's list shows what ended a moment ago."""
    async with asyncio.timeout(60):
        while len((found := await harvest(site.client, site.build)).read) < runs:
            pass
    return found


class Unlisting:
    """A server whose list is not up to date."""

    def __init__(self, client: Client) -> None:
        self.data_converter, self.get_workflow_handle = client.data_converter, client.get_workflow_handle

    async def list_workflows(self, query: str) -> AsyncIterator[Any]:
        for nothing in list[Any]():
            yield nothing


class Forgetful:
    """A server that lists a run whose history it has no more: it deletes them one after the other, in its own time."""

    def __init__(self, client: Client, *, run: str) -> None:
        self.client, self.run = client, run
        self.data_converter, self.list_workflows = client.data_converter, client.list_workflows

    def get_workflow_handle(self, saga: str, *, run_id: str | None = None) -> Any:
        return self if run_id == self.run else self.client.get_workflow_handle(saga, run_id=run_id)

    async def fetch_history(self) -> None:
        raise RPCError("workflow execution not found", RPCStatusCode.NOT_FOUND, b"")


class TestFromExports:
    async def test_what_temporals_own_command_exports_gives_the_same_rows(
        self, site: Site, temporal: TemporalServer, environment: dict[str, str]
    ) -> None:
        await site.run(facts=4, tasks=["api"])
        program = find_server(explicit=None, environment=environment)
        rows: list[Event] = []
        for saga in (site.build, task_saga_id(site.build, "api")):
            argv = [str(program), "workflow", "show", "-w", saga, "-o", "json", "--address", temporal.address]
            process = await asyncio.create_subprocess_exec(*argv, env=environment, stdout=asyncio.subprocess.PIPE)
            text, _ = await process.communicate()
            rows += await exported(text.decode(), DATA_CONVERTER, name=saga)
        assert same(rows, await site.recorded())

    async def test_so_does_what_the_sdk_exports_and_payloads_in_short(self, site: Site) -> None:
        handle = await site.run(facts=4)
        text = (await handle.fetch_history()).to_json()
        assert same(await exported(text, DATA_CONVERTER, name="x"), await site.recorded())
        history = json.loads(text)
        for event in history["events"]:
            scheduled = event.get("activityTaskScheduledEventAttributes")
            if scheduled:
                scheduled["input"] = await DATA_CONVERTER.decode(payloads(scheduled["input"]))
        short = json.dumps(history)
        assert same(await exported(short, DATA_CONVERTER, name="x"), await site.recorded())

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{}",
            '{"events": 3}',
            '{"events": ["x"]}',
            '{"events": [{"activityTaskScheduledEventAttributes": {}}]}',
            json.dumps(
                {
                    "events": [
                        {
                            "activityTaskScheduledEventAttributes": {
                                "activityType": {"name": "record_events"},
                                "input": {"payloads": [{"metadata": {"encoding": "Ym9n"}, "data": "AAAA"}]},
                            }
                        }
                    ]
                }
            ),
        ],
        ids=["empty", "list", "no events", "number", "text", "nothing scheduled", "encrypted"],
    )
    async def test_what_is_no_history_is_refused_with_its_name(self, text: str) -> None:
        with pytest.raises(InvalidInput, match=r"backup\.json is no history"):
            await exported(text, DATA_CONVERTER, name="backup.json")

    async def test_a_row_that_is_none_is_told_loudly(self) -> None:
        scheduled = {"activityType": {"name": "record_events"}, "input": [{"events": [{"kind": "build.ended"}]}]}
        text = json.dumps({"events": [{"activityTaskScheduledEventAttributes": scheduled}]})
        with pytest.raises(EventUnreadable):
            await exported(text, DATA_CONVERTER, name="x")


def payloads(given: Any) -> list[Payload]:
    """Payloads of a history in JSON."""
    return [ParseDict(raw, Payload()) for raw in given["payloads"]]
