"""What a host of the scale benchmarks serves: the engine's own workflows, records, money, plans and calls, on a real
store and real blobs. Repositories and sandboxes answer at once: what they cost is what ``benchmarks.tasks`` and
``benchmarks.environments`` measure. The model answers from memory after a while, or never.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.accounts.turns import Turnstile
from activities.beating import BeatingInterceptor
from activities.intake import AdmitBuildInput, AdmittedBuild
from activities.planning import Planning
from activities.repository.changes import AppliedChange, ApplyChangeInput
from activities.repository.merging import RebasedCommit, RebaseInput
from activities.repository.snapshots import PinSnapshotInput
from benchmarks.ground.outside import HEARTBEAT, STICKY, Outside
from domain.errors import ProviderRefused
from domain.flow.turns import Room
from domain.money.usage import FREE, Price, Quote, Usage
from domain.ports.blobs import Blobs
from domain.ports.language_model import ModelAnswer, ModelRequest, with_bill
from domain.ports.store import Store
from worker import WORKFLOW_TASKS
from workflows.build_saga import BuildSaga
from workflows.task_saga import TaskSaga

ROLES = ("", "-workspace", "-model", "-sandbox")
LAST = "last"
"""The model of every chain that answers; those before it refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The builds: so many ``tasks`` each, ``parallel`` at once, whose chain has ``refusing`` models before the one that
    answers. A call takes ``seconds``; past ``history_events`` a build goes on in a new run. A host makes ``slots``
    calls at once, of which a project has ``share``; ``places`` are for a project's tasks."""

    tasks: int = 3
    parallel: int = 4
    refusing: int = 0
    seconds: float = 0.0
    history_events: int = 4_000
    slots: int = 40
    share: float = 1.0
    places: int = 8

    def plan(self) -> str:
        """What the model answers to the planning."""
        return json.dumps({"summary": "many small ones", "tasks": [_task(number) for number in range(self.tasks)]})


class Model:
    """Answers after ``shape.seconds``; a saga whose name begins with ``hangs`` never gets an answer. ``begun`` is told
    of each call as it reaches the provider."""

    def __init__(self, shape: Shape, *, hangs: str = "hung", begun: Callable[[str], None] = lambda key: None) -> None:
        self._shape = shape
        self._hangs = hangs
        self._begun = begun
        self._answers = {"Plan": shape.plan(), "Change": json.dumps({"summary": "a change", "operations": []})}

    async def quote(self, model: str) -> Quote | None:
        """As cheap for every model."""
        return Quote(price=Price(input_micros_per_million=1, output_micros_per_million=1), source="here")

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Of a chain the last one answers."""
        self._begun(str(request.key))
        if request.key.saga.startswith(self._hangs):
            await asyncio.Event().wait()
        await asyncio.sleep(self._shape.seconds)
        if request.model != LAST:
            raise with_bill(ProviderRefused(f"model {request.model}: it declined to answer"), FREE)
        return ModelAnswer(
            text=self._answers[request.schema_name], usage=Usage(input_tokens=10, output_tokens=5, cost_micros=1)
        )


class Host(Outside):
    """Builds of a ``shape``, with their plans and their own commits."""

    def __init__(self, shape: Shape, *, store: Store, blobs: Blobs, model: Model | None = None) -> None:
        self.turnstile = Turnstile(Room(slots=shape.slots, lobby=shape.slots // 2, share=shape.share), providers={})
        super().__init__(store=store, blobs=blobs, model=model or Model(shape), turnstile=self.turnstile)
        self.shape = shape
        self.limits = replace(
            self.limits,
            tasks=max(50, shape.tasks),
            parallel=shape.parallel,
            project_parallel=max(shape.places, shape.parallel),
            history_events=shape.history_events,
        )
        self.coding = (*(f"refuses-{number}" for number in range(shape.refusing)), LAST)
        self._planning = Planning(blobs=blobs, schemas=self.schemas)
        self.real.append(self._planning.check_plan)

    @activity.defn(name="admit_build")
    async def do_admit_build(self, request: AdmitBuildInput) -> AdmittedBuild:
        admitted = await super().do_admit_build(replace(request, project="notes"))
        return replace(admitted, project=request.project, reasoning=(LAST,), heartbeat=HEARTBEAT)

    @activity.defn(name="apply_change")
    async def do_apply_change(self, request: ApplyChangeInput) -> AppliedChange:
        commit = _commit(request.task, request.base, str(request.attempt))
        return AppliedChange(commit=commit, written="w", diff="d" * 64, files=1, touched=(f"{request.task}.py",))

    @activity.defn(name="rebase_commits")
    async def do_rebase_commits(self, request: RebaseInput) -> RebasedCommit:
        return RebasedCommit(commit=_commit(request.head, request.onto), diff="d" * 64)

    @activity.defn(name="pin_snapshot")
    async def do_pin_snapshot(self, request: PinSnapshotInput) -> str:
        return await self.blobs.put(json.dumps(request.state, sort_keys=True).encode())


@asynccontextmanager
async def serving(client: Client, queue: str, host: Host, *, also: Sequence[type] = ()) -> AsyncIterator[None]:
    """A worker of each class, with the slots of the product; ``also`` are further workflows."""
    await host.fill()
    slots = {"-model": host.shape.slots + host.shape.slots // 2}
    async with AsyncExitStack() as stack:
        for role in ROLES:
            worker = Worker(
                client,
                task_queue=queue + role,
                workflows=() if role else (BuildSaga, TaskSaga, *also),
                activities=host.activities(),
                interceptors=[BeatingInterceptor()],
                max_concurrent_activities=slots.get(role, 20),
                max_concurrent_workflow_tasks=WORKFLOW_TASKS,
                sticky_queue_schedule_to_start_timeout=STICKY,
            )
            await stack.enter_async_context(worker)
        yield


def _task(number: int) -> dict[str, Any]:
    name = f"t{number:04}"
    return {
        "id": name,
        "title": f"Do {name}",
        "instructions": f"Do what {name} says.",
        "files": [f"src/{name}.py"],
        "tests": [f"tests/test_{name}.py"],
        "depends_on": [],
    }


def _commit(*parts: str) -> str:
    return hashlib.sha1("/".join(parts).encode(), usedforsecurity=False).hexdigest()
