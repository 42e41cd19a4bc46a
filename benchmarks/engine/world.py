"""The engine with nothing outside: its real workflows, its own records, money and calls on stores in memory.

What would touch a repository, a sandbox or a target answers at once; a model answers from memory, through the real
activity with its ledger, schemas and blobs.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.beating import BeatingInterceptor
from activities.intake import AdmitBuildInput, AdmittedBuild
from adapters.blobs.memory import MemoryBlobs
from adapters.store.memory import MemoryStore
from adapters.telemetry.activities import MeasuringInterceptor
from adapters.telemetry.metrics import Metrics
from benchmarks.engine.bare import Bare, step
from benchmarks.ground.outside import HEARTBEAT, STICKY, Outside
from domain.build.project import Limits
from domain.money.usage import Price, Quote, Usage
from domain.ports.blobs import Blobs
from domain.ports.language_model import LanguageModel, ModelAnswer, ModelRequest
from domain.ports.store import Store
from worker import WORKFLOW_TASKS
from workflows.catalogue import WORKFLOWS

PLACES = 1_000
"""More than there are tasks: what is measured is the way, not the wait for a place."""
QUEUES = ("", "-workspace", "-model", "-sandbox")
ANSWERS = {
    "Plan": json.dumps({"summary": "two tasks", "tasks": []}),
    "Change": json.dumps({"summary": "a change", "operations": []}),
}


class Instant:
    """A language model that takes no time."""

    async def quote(self, model: str) -> Quote | None:
        price = Price(input_micros_per_million=1_000_000, output_micros_per_million=4_000_000)
        return Quote(price=price, source="here")

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        usage = Usage(input_tokens=10, output_tokens=5, cost_micros=30)
        return ModelAnswer(text=ANSWERS[request.schema_name], usage=usage)


class Faked(Outside):
    """Many builds of one project, none of which waits for a place."""

    def __init__(self, store: Store, model: LanguageModel, *, blobs: Blobs | None = None) -> None:
        super().__init__(store=store, blobs=blobs or MemoryBlobs(), model=model)
        self.limits = Limits(project_parallel=PLACES)

    @activity.defn(name="admit_build")
    async def do_admit_build(self, request: AdmitBuildInput) -> AdmittedBuild:
        return replace(await super().do_admit_build(request), heartbeat=HEARTBEAT)


@asynccontextmanager
async def serving_ours(client: Client, queue: str, world: Faked | None = None) -> AsyncIterator[None]:
    """Workers of the four classes with the interceptors of the product; without a ``world``, on a new one in memory."""
    world = world or Faked(MemoryStore(), Instant())
    await world.fill()
    interceptors = [MeasuringInterceptor(Metrics(worker="bench", models=[])), BeatingInterceptor()]
    async with AsyncExitStack() as stack:
        for suffix in QUEUES:
            workflows = WORKFLOWS if not suffix else ()
            worker = Worker(
                client,
                task_queue=queue + suffix,
                workflows=workflows,
                activities=world.activities(),
                interceptors=interceptors,
                max_concurrent_workflow_tasks=WORKFLOW_TASKS,
                sticky_queue_schedule_to_start_timeout=STICKY,
            )
            await stack.enter_async_context(worker)
        yield


@asynccontextmanager
async def serving_bare(client: Client, queue: str) -> AsyncIterator[None]:
    """As many workers, bare."""
    async with AsyncExitStack() as stack:
        for suffix in QUEUES:
            workflows = [] if suffix else [Bare]
            worker = Worker(
                client,
                task_queue=queue + suffix,
                workflows=workflows,
                activities=[step],
                max_concurrent_workflow_tasks=WORKFLOW_TASKS,
                sticky_queue_schedule_to_start_timeout=STICKY,
            )
            await stack.enter_async_context(worker)
        yield
