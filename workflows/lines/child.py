"""A task's saga, as its build starts it and hears of it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict

from temporalio import workflow
from temporalio.exceptions import (
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.workflow import ChildWorkflowHandle

from workflows.context import Build
from workflows.faults import last_fault
from workflows.policies import WORKFLOW_TASK
from workflows.task_saga import TaskSaga

with workflow.unsafe.imports_passed_through():
    from domain.build.names import task_saga_id
    from domain.build.requests import TaskOutcome, TaskRequest
    from domain.errors import Overbilled

EARLIER_LIFE_SECONDS = 2


def task_request(build: Build, task: str) -> TaskRequest:
    """Everything that the saga of ``task`` needs, on the build's head as it is now."""
    admitted, state = build.admitted, build.state.tasks[task]
    limits = admitted.limits
    return TaskRequest(
        build=build.name,
        project=admitted.project,
        task=task,
        plan=build.state.plan,
        spec=admitted.spec,
        base=build.head.commit,
        base_ran=build.head.ran,
        attempts=limits.attempts,
        chain=admitted.coding,
        heartbeat=admitted.heartbeat,
        output_tokens=limits.output_tokens,
        model_seconds=limits.model_seconds,
        test_seconds=limits.test_seconds,
        allow_missing=build.request.allow_missing,
        first=state.attempt + 1,
        reason=state.reason,
        report=state.report,
        change=state.change,
        user=build.request.user,
        places=limits.project_parallel,
        budget=build.budget,
        paused=build.effects.paused,
        baseline=build.head.baseline,
        sets_up=admitted.sets_up,
        packages=build.state.packages,
        at=build.state.started,
        needs_rounds=limits.needs_rounds,
        setup_seconds=limits.setup_seconds,
        strategy=build.state.strategy,
        trusted=build.base.commit,
        weights=admitted.weights,
    )


async def run_task(build: Build, request: TaskRequest) -> TaskOutcome:
    """The task's outcome. Raises Overbilled, and CancelledError when it has really stopped."""
    try:
        handle = await _start(build, request)
        build.children[request.task] = handle
        outcome: TaskOutcome = await handle
    except ChildWorkflowError as error:
        if is_cancelled_exception(error):
            raise asyncio.CancelledError from error
        outcome = _failed(request, error)
    finally:
        build.children.pop(request.task, None)
    build.effects.heed_cancellation()
    return outcome


async def _start(build: Build, request: TaskRequest) -> ChildWorkflowHandle[TaskSaga, TaskOutcome]:
    """A build that was reset meets the task of its earlier life: that one has to end first."""
    saga = task_saga_id(request.build, request.task)
    title = next(brief.title for brief in build.briefs if brief.id == request.task)
    while True:
        try:
            return await workflow.start_child_workflow(
                TaskSaga.run,
                asdict(request),
                id=saga,
                task_timeout=WORKFLOW_TASK,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                static_summary=title,
                priority=build.effects.priority,
            )
        except WorkflowAlreadyStartedError:
            with contextlib.suppress(FailureError):  # it ended in the meantime
                await workflow.get_external_workflow_handle(saga).cancel()
        await build.effects.rest(EARLIER_LIFE_SECONDS, summary="the task's earlier life ends")


def _failed(request: TaskRequest, error: ChildWorkflowError) -> TaskOutcome:
    """A task that fails never takes its siblings with it; a bill that nobody can explain stops everything."""
    fault = last_fault(error)
    if fault.kind == "Overbilled":
        raise Overbilled(fault.sentence) from error
    return TaskOutcome(
        task=request.task,
        commit="",
        ran=-1,
        attempt=request.first + request.attempts - 1,  # all numbers that it may have used
        status="stuck",
        kind=fault.kind,
        sentence=fault.sentence,
    )
