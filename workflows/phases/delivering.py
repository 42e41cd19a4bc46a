"""Delivery of what was landed: a saga of its own, which outlives this one and reports by signal."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError

from workflows.context import Build
from workflows.delivery.saga import DeliverySaga
from workflows.phases.approval import missing
from workflows.policies import STORE, to_its_end

with workflow.unsafe.imports_passed_through():
    from activities.delivery.lanes import Lanes, LookInput
    from domain.delivery.requests import DeliveryRequest, delivery_saga_id
    from domain.ports.releases import PROMOTED, UNCLEAR
    from domain.ports.sagas import RUNNING
    from domain.risk.evidence import Made

LOOK_HEARTBEATS = 4
"""After so many heartbeats a build that waits looks at its delivery: one that was terminated reports nothing."""

TOO_LATE = "its abort came after the release was promoted: `mendwork rollback` takes that back"


async def deliver(build: Build) -> str:
    """Start the delivery and wait for its report. An abort is passed on, and the report awaited all the same: a release
    that was promoted before it heard of that serves, and the build ends with it."""
    await build.enter("deliver")
    if not build.state.delivering:
        await _start(build)
        build.state.delivering = True
    try:
        await _report(build, renew=True)
    except asyncio.CancelledError:
        await to_its_end(_abort(build))
        if build.state.delivered["status"] != PROMOTED:
            raise
        build.state.note = "; ".join(filter(None, [build.state.note, TOO_LATE]))
    return "done"


async def _start(build: Build) -> None:
    request = DeliveryRequest(
        project=build.admitted.project,
        commit=build.head.commit,
        build=build.name,
        by=build.request.user,
        approved=tuple(name for name in build.request.approved if name == "release"),
        unattended=build.request.unattended,
        allow_missing=build.request.allow_missing,
        made=made(build),
    )
    with contextlib.suppress(WorkflowAlreadyStartedError):  # a build that was reset finds its delivery
        await workflow.start_child_workflow(
            DeliverySaga.run,
            asdict(request),
            id=delivery_saga_id(build.name),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
            static_summary=f"deliver {build.head.commit[:12]} of {build.admitted.project}",
        )


async def _report(build: Build, *, renew: bool) -> None:
    state = build.state
    pause = timedelta(seconds=LOOK_HEARTBEATS * build.admitted.heartbeat)
    while not state.delivered:
        with contextlib.suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: bool(state.delivered) or (renew and build.full), timeout=pause)
        if renew:
            build.effects.heed_cancellation()
        if not state.delivered and renew and build.full:
            await build.renew()
        if not state.delivered:
            await _look(build)


async def _look(build: Build) -> None:
    saga = delivery_saga_id(build.name)
    how = await build.effects.run(STORE, Lanes.look_at_holder, LookInput(saga=saga))
    if how != RUNNING and not build.state.delivered:
        sentence = f"its delivery {saga} is {how} and told nothing: see `mendwork lane {build.admitted.project}`"
        build.state.delivered = {"status": UNCLEAR, "sentence": sentence, "release": 0}


async def _abort(build: Build) -> None:
    """Pass the abort on, and wait for what it comes to: what the build undoes next must not race with it."""
    build.effects.shield()
    with contextlib.suppress(FailureError):
        delivery = workflow.get_external_workflow_handle(delivery_saga_id(build.name))
        await delivery.signal("abort", {"by": build.name, "reason": "its build was ended"})
    await _report(build, renew=False)


def made(build: Build) -> Made:
    """How the change came to be, in figures."""
    state, found = build.state, build.state.findings
    tasks = list(state.tasks.values())
    return Made(
        green=bool(state.gates.get("green", True)),
        tests=int(state.gates.get("ran", -1)),
        base_tests=build.base.ran,
        attempts=max((task.attempt for task in tasks), default=1),
        tasks=len(tasks),
        missing=len(missing(build)),
        high=_count(found, "high"),
        medium=_count(found, "medium"),
        low=_count(found, "low"),
        reviewed=("weak" if found.get("weak") else "other") if found.get("model") else "",
    )


def _count(found: dict[str, Any], name: str) -> int:
    return int(found.get(name, 0))
