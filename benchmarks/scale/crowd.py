"""A project whose calls hang, many at once, and how soon another project's first call begins beside them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client, WorkflowHandle
from temporalio.common import Priority

from benchmarks.ground.waiting import all_ended, within
from benchmarks.scale.world import LAST, Host, serving

with workflow.unsafe.imports_passed_through():
    from activities.models import CallModelInput, Models
    from domain.money.budget import Budget, Payer
    from domain.ports.language_model import CallKey
    from workflows.policies import MODEL, Effects

HUNG = "hung"
_STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
_PATIENCE = 300.0  # seconds for one build
_EACH = 25  # calls of one workflow: hundreds begun in one workflow task are taken for a deadlock on a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdInput:
    """``calls`` of project ``hung`` from number ``first`` on, all for the ``prompt`` of that digest."""

    first: int
    calls: int
    prompt: str


@workflow.defn
class Crowd:
    """Makes its calls all at once, by the product's own policy for calls."""

    @workflow.run
    async def run(self, wanted: CrowdInput) -> None:
        effects = Effects()
        effects.fair_to(HUNG)
        numbers = range(wanted.first, wanted.first + wanted.calls)
        await asyncio.gather(*(effects.run(MODEL, Models.call_model, _call(wanted, number)) for number in numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """Seconds from a build's start to its first call: ``alone``, ``joining`` (started with the crowd, while all its
    calls are put into the queue and turned away for the first time) and ``beside`` it, of which ``hanging`` calls hold
    turns at the end; ``events`` are in the crowd's histories."""

    alone: tuple[float, ...]
    joining: float
    beside: tuple[float, ...]
    hanging: int
    events: int


async def measure(client: Client, host: Host, began: Began, *, calls: int, builds: int = 1) -> Waited:
    """``builds`` of other projects one after the other, alone and then while ``calls`` calls hang."""
    queue = f"crowd-{uuid.uuid4().hex}"
    async with serving(client, queue, host, also=[Crowd]):
        alone = [await _first_call(client, began, queue, f"alone-{number}") for number in range(builds)]
        crowd = [await _hung(client, queue, host, first) for first in range(0, calls, _EACH)]
        await began.until(lambda: began.count(HUNG) > 0, what="no call of the crowd has begun")
        joining = await _first_call(client, began, queue, "joining")
        await within(_PATIENCE, _all_came(crowd), what="not all calls of the crowd were handed to the worker")
        beside = [await _first_call(client, began, queue, f"other-{number}") for number in range(builds)]
        events = sum([(await part.describe()).history_length for part in crowd])
        inside = dict(host.turnstile.inside)
        await asyncio.gather(*(part.terminate() for part in crowd))
    hanging = sum(number for caller, number in inside.items() if caller.project == HUNG)
    return Waited(alone=tuple(alone), joining=joining, beside=tuple(beside), hanging=hanging, events=events)


class Began:
    """When which call reached the provider."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self._changed = asyncio.Event()

    def __call__(self, key: str) -> None:
        self.at.setdefault(key, time.monotonic())
        self._changed.set()

    def count(self, saga: str) -> int:
        """The calls of sagas whose names begin so."""
        return sum(key.startswith(saga) for key in self.at)

    async def until(self, holds: Callable[[], bool], *, what: str, seconds: float = 120.0) -> None:
        """Wait for what calls change. Raises Unfinished with ``what`` there is not."""
        await within(seconds, self._until(holds), what=what)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()


async def _all_came(crowd: Sequence[WorkflowHandle[Any, Any]]) -> None:
    """Until every call has a turn, waits in the worker for one, or was turned away."""
    for part in crowd:
        while True:
            calls = (await part.describe()).raw_description.pending_activities
            if len(calls) == _EACH and all(call.state == _STARTED or call.attempt > 1 for call in calls):
                break
            await asyncio.sleep(0.05)


async def _hung(client: Client, queue: str, host: Host, first: int) -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(
        Crowd.run,
        CrowdInput(first=first, calls=_EACH, prompt=host.prompt),
        id=f"{HUNG}-{queue}-{first}",
        task_queue=queue,
        task_timeout=timedelta(seconds=60),
        priority=Priority(fairness_key=HUNG),
    )


async def _first_call(client: Client, began: Began, queue: str, project: str) -> float:
    started, name = time.monotonic(), f"build-{project}-{uuid.uuid4().hex[:8]}"
    handle: WorkflowHandle[Any, Any] = await client.start_workflow(
        "BuildSaga",
        {"spec": "# Tags", "project": project},
        id=name,
        task_queue=queue,
        priority=Priority(fairness_key=project),
    )
    await began.until(lambda: began.count(name) > 0, what=f"{name} has made no call")
    at = min(at for key, at in began.at.items() if key.startswith(name))
    await all_ended([handle], seconds=_PATIENCE)
    return at - started


def _call(wanted: CrowdInput, number: int) -> CallModelInput:
    payer = Payer(project=HUNG, build=f"{HUNG}-{number}", user="bench", phase="plan", role="reasoning")
    return CallModelInput(
        key=CallKey(saga=f"{HUNG}-{number}", step="plan", attempt=1),
        build=f"{HUNG}-{number}",
        model=LAST,
        prompt=wanted.prompt,
        schema_name="Plan",
        output_tokens=1_000,
        seconds=600,
        payer=payer,
        budget=Budget(),
        tries=MODEL.tries,
    )
