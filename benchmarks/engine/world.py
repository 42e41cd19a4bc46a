"""The engine with nothing outside: its real workflows, its own records, money and calls on stores in memory.

What would touch a repository, a sandbox or a target answers at once; a model answers from memory, through the real
activity with its ledger, schemas and blobs.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.accounts.money import Money
from activities.beating import BeatingInterceptor
from activities.intake import AdmitBuildInput, AdmittedBuild
from activities.models import Models
from activities.prompts import RenderChangeInput, RenderedPrompt, RenderPlanInput
from activities.records import Records
from adapters.blobs.memory import MemoryBlobs
from adapters.schemas import open_schemas
from adapters.store.memory import MemoryStore
from adapters.telemetry.activities import MeasuringInterceptor
from adapters.telemetry.metrics import Metrics
from benchmarks.engine.bare import Bare, step
from domain.build.project import Limits
from domain.build.prompt import Prompt
from domain.money.usage import Price, Quote, Usage
from domain.ports.language_model import LanguageModel, Message, ModelAnswer, ModelRequest
from domain.ports.store import Store
from tests.workflows.fakes import World
from workflows.catalogue import WORKFLOWS

PLACES = 1_000
"""More than there are tasks: what is measured is the way, not the wait for a place."""
HEARTBEAT = 5.0
"""Seconds, as the configuration has it when it says nothing."""
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


class Faked(World):
    """The tests' outside world, with the engine's own activities on ``store`` and ``model``."""

    def __init__(self, store: Store, model: LanguageModel) -> None:
        super().__init__(limits=Limits(project_parallel=PLACES))
        self.blobs = MemoryBlobs()
        self.prompt = ""
        records = Records(events=store.events, undo=store.undo)
        money = Money(ledger=store.ledger, places=store.places)
        models = Models(model=model, schemas=open_schemas(), calls=store.calls, blobs=self.blobs)
        self.real: list[Callable[..., Any]] = [records.record_events, records.register_undo, records.close_undo]
        self.real += [money.count_spent, money.take_place, money.give_place, money.release_build, models.call_model]

    async def fill(self) -> None:
        """Store the one prompt that all calls name."""
        prompt = Prompt(template="any", version="1", messages=(Message(role="user", content="Write it.\n" * 200),))
        self.prompt = await self.blobs.put(prompt.to_bytes())

    def activities(self) -> list[Callable[..., Any]]:
        real = {f"do_{method.__name__}" for method in self.real}
        faked = [getattr(self, name) for name in dir(self) if name.startswith("do_") and name not in real]
        return [*faked, *self.real]

    @activity.defn(name="admit_build")
    async def do_admit_build(self, request: AdmitBuildInput) -> AdmittedBuild:
        return replace(await super().do_admit_build(request), heartbeat=HEARTBEAT)

    @activity.defn(name="render_plan_prompt")
    async def do_render_plan(self, request: RenderPlanInput) -> RenderedPrompt:
        return RenderedPrompt(prompt=self.prompt, size=1)

    @activity.defn(name="render_change_prompt")
    async def do_render_change(self, request: RenderChangeInput) -> RenderedPrompt:
        return RenderedPrompt(prompt=self.prompt, size=1)


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
            )
            await stack.enter_async_context(worker)
        yield


@asynccontextmanager
async def serving_bare(client: Client, queue: str) -> AsyncIterator[None]:
    """As many workers, bare."""
    async with AsyncExitStack() as stack:
        for suffix in QUEUES:
            workflows = [] if suffix else [Bare]
            worker = Worker(client, task_queue=queue + suffix, workflows=workflows, activities=[step])
            await stack.enter_async_context(worker)
        yield
