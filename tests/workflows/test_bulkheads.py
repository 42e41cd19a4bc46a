"""No project keeps another's steps waiting: queues serve them in turn, and calls that hang leave turns to others."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from adapters.blobs.memory import MemoryBlobs
from adapters.store import open_store
from benchmarks.scale.crowd import Began, measure
from benchmarks.scale.world import Host, Model, Shape
from domain.build.project import Limits
from tests.workflows.fakes import World
from tests.workflows.running import begin, build, serving

with workflow.unsafe.imports_passed_through():
    from activities.intake import FetchBaseInput, Intake
    from workflows.policies import WORKSPACE, Effects

CALLS = 500
SHAPE = Shape(tasks=1, slots=20, share=0.5)


@workflow.defn
class Steps:
    """So many steps of one project, all at once."""

    @workflow.run
    async def run(self, project: str, number: int) -> None:
        effects = Effects(heartbeat=timedelta(seconds=30))
        effects.fair_to(project)
        step = FetchBaseInput(build=project, project=project)
        await asyncio.gather(*(effects.run(WORKSPACE, Intake.fetch_base, step) for _ in range(number)))


async def scheduled(client: Client, queue: str, project: str, number: int) -> WorkflowHandle[Any, Any]:
    """The workflow, once all its steps lie in the queue."""
    handle = await client.start_workflow(Steps.run, args=[project, number], id=f"{project}-{queue}", task_queue=queue)
    while len((await handle.describe()).raw_description.pending_activities) < number:  # noqa: ASYNC110 - on the server
        await asyncio.sleep(0.05)
    return handle


async def backlog(client: Client, queue: str) -> int:
    """How many activities lie in the queue, as far as the server has handed them on to it."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        report_stats=True,
    )
    return (await client.workflow_service.describe_task_queue(request)).stats.approximate_backlog_count


async def test_a_queue_serves_the_projects_in_turn_however_many_steps_one_has(client: Client) -> None:
    queue, world = uuid.uuid4().hex, World()
    async with asyncio.timeout(90), Worker(client, task_queue=queue, workflows=[Steps]):
        many = await scheduled(client, queue, "many", 80)
        few = await scheduled(client, queue, "few", 3)
        while await backlog(client, f"{queue}-workspace") < 83:  # noqa: ASYNC110 - on the server
            await asyncio.sleep(0.05)
        async with Worker(
            client, task_queue=f"{queue}-workspace", activities=world.activities(), max_concurrent_activities=1
        ):
            await few.result()
            served = [request.project for request in world.of("fetch_base")]
            await many.result()
    assert served.count("few") == 3
    assert len(served) < 40  # first come, first served would be 83


async def test_every_step_and_every_child_of_a_build_is_queued_by_its_project(client: Client) -> None:
    name = f"build-notes-{uuid.uuid4().hex}"
    await build(client, World(), name=name)
    for saga in (name, f"{name}-task-store"):
        events = (await client.get_workflow_handle(saga).fetch_history()).events
        keys = [key for key in map(_fairness_key, events) if key is not None]
        assert set(keys) == {"notes"}, saga
        assert len(keys) > 5


async def test_a_start_with_any_text_as_its_project_ends_with_a_sentence_and_not_at_its_first_step(
    client: Client,
) -> None:
    queue = uuid.uuid4().hex
    async with serving(client, World(limits=Limits()), queue), asyncio.timeout(60):
        handle = await begin(client, queue, {"spec": "# Tags", "project": "ж" * 60})
        await handle.result()
        events = (await handle.fetch_history()).events
    first = next(key for key in map(_fairness_key, events) if key is not None)
    assert 0 < len(first.encode()) <= 64


async def test_while_five_hundred_calls_of_one_project_hang_anothers_first_call_begins(client: Client) -> None:
    began = Began()
    async with await open_store("memory:") as store:
        host = Host(SHAPE, store=store, blobs=MemoryBlobs(), model=Model(SHAPE, begun=began))
        waited = await measure(client, host, began, calls=CALLS, builds=1)
    assert 0 < waited.hanging <= SHAPE.slots // 2
    assert began.count("build-other") >= 2
    assert waited.events < CALLS * 1.5  # those who were turned away left no event


def _fairness_key(event: HistoryEvent) -> str | None:
    if event.HasField("activity_task_scheduled_event_attributes"):
        return event.activity_task_scheduled_event_attributes.priority.fairness_key
    if event.HasField("start_child_workflow_execution_initiated_event_attributes"):
        return event.start_child_workflow_execution_initiated_event_attributes.priority.fairness_key
    return None
