"""A build: intake, plan, tasks in DAG order, result branch. Holds phases only."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ChildWorkflowError, is_cancelled_exception

from workflows.compensation import Compensations
from workflows.faults import failure, last_fault
from workflows.planning import PlanRequest, make_plan
from workflows.policies import SANDBOX, WORKFLOW_TASK, WORKSPACE, Effects, granting
from workflows.recorder import Recorder
from workflows.task_saga import TaskSaga

with workflow.unsafe.imports_passed_through():
    from activities.gates import Gates, RunGatesInput
    from activities.intake import AdmitBuildInput, AdmittedBuild, FetchBaseInput, Intake
    from activities.landing import CompensateInput, Landed, Landings, LandInput
    from activities.planning import TaskBrief
    from domain.build.names import check_build_name, task_saga_id
    from domain.build.requests import BuildRequest, TaskOutcome, TaskRequest, decode_build_request, title_of
    from domain.errors import BaseIsRed, MendworkError


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What a build ends with: the branch in the user's repository and the commit it points at."""

    build: str
    status: str
    branch: str
    commit: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The pinned commit and its count of tests (-1: the runner cannot count)."""

    commit: str
    ran: int


@workflow.defn(failure_exception_types=[MendworkError])
class BuildSaga:
    """The root of one build. Its workflow id is the build's name."""

    @workflow.init
    def __init__(self, request: Any = None) -> None:
        self._phase = "intake"
        self._status = "running"
        self._tasks: dict[str, str] = {}

    @workflow.run
    async def run(self, request: Any = None) -> BuildResult:
        """Takes a BuildRequest as plain JSON. Fails typed and with one sentence; what it did is undone then."""
        self._build = check_build_name(workflow.info().workflow_id)
        self._request = decode_build_request(request)
        self._effects = Effects()
        self._recorder = Recorder(build=self._build)
        self._undo = Compensations(effects=self._effects, build=self._build)
        try:
            return await self._phases(self._request)
        except (ActivityError, ChildWorkflowError, MendworkError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error):
                await self._compensate("aborted", "it was cancelled", fault="Cancelled")
                raise
            fault = last_fault(error)
            await self._compensate("failed", fault.sentence, fault=fault.kind)
            raise failure(fault) from error

    @workflow.query(description="The phase, the status and each task's status.")
    def state(self) -> dict[str, Any]:
        """Small and pure."""
        return {"phase": self._phase, "status": self._status, "tasks": dict(self._tasks)}

    async def _phases(self, request: BuildRequest) -> BuildResult:
        admitted = await self._admit(request)
        base = await self._fetch(admitted)
        plan, tasks = await self._plan(admitted, base)
        head = base
        for task in tasks:
            head = await self._task(admitted, plan, task, head)
        landed = await self._land(admitted, base, head)
        self._effects.shield()
        await self._undo.close_all()
        self._status = "succeeded"
        names = tuple(task.id for task in tasks)
        self._recorder.note("build.ended", status="succeeded", sentence=f"on branch {landed.branch}", **asdict(landed))
        await self._recorder.flush(self._effects)
        workflow.set_current_details(f"**succeeded**: `{landed.branch}`")
        return BuildResult(
            build=self._build, status="succeeded", branch=landed.branch, commit=landed.commit, tasks=names
        )

    async def _admit(self, request: BuildRequest) -> AdmittedBuild:
        self._recorder.note("build.started", project=request.project, title=title_of(request))
        asked = AdmitBuildInput(build=self._build, project=request.project, spec=request.spec)
        admitted = await self._effects.run(WORKSPACE, Intake.admit_build, asked)
        self._effects = Effects(heartbeat=timedelta(seconds=admitted.heartbeat))
        self._undo = Compensations(effects=self._effects, build=self._build)
        self._recorder.note("build.admitted", project=admitted.project, spec=admitted.spec)
        await self._enter("intake")
        return admitted

    async def _fetch(self, admitted: AdmittedBuild) -> Base:
        here = CompensateInput(project=admitted.project, build=self._build)
        await self._undo.register("fetch", "forget_build", here)
        fetch = FetchBaseInput(build=self._build, project=admitted.project)
        commit = await self._effects.run(WORKSPACE, Intake.fetch_base, fetch)
        await self._enter("base")
        gates = RunGatesInput(
            label=f"{self._build}/base/1",
            project=admitted.project,
            commit=commit,
            allow_missing=self._request.allow_missing,
        )
        policy = granting(SANDBOX, admitted.limits.test_seconds)
        report = await self._effects.run(policy, Gates.run_gates, gates, summary="the base's own tests")
        self._recorder.note("build.base", commit=commit, **asdict(report))
        if not report.green:
            raise BaseIsRed(f"the project's own tests are red before any change ({commit[:12]}): {report.reason}")
        return Base(commit=commit, ran=report.ran)

    async def _plan(self, admitted: AdmittedBuild, base: Base) -> tuple[str, tuple[TaskBrief, ...]]:
        await self._enter("plan")
        plan, tasks = await make_plan(
            PlanRequest(build=self._build, admitted=admitted, base=base.commit),
            effects=self._effects,
            recorder=self._recorder,
        )
        self._tasks = {task.id: "waiting" for task in tasks}
        return plan, tasks

    async def _task(self, admitted: AdmittedBuild, plan: str, task: TaskBrief, head: Base) -> Base:
        await self._enter("tasks")
        self._tasks[task.id] = "running"
        request = TaskRequest(
            build=self._build,
            project=admitted.project,
            task=task.id,
            plan=plan,
            spec=admitted.spec,
            base=head.commit,
            base_ran=head.ran,
            attempts=admitted.limits.attempts,
            chain=admitted.coding,
            heartbeat=admitted.heartbeat,
            output_tokens=admitted.limits.output_tokens,
            model_seconds=admitted.limits.model_seconds,
            test_seconds=admitted.limits.test_seconds,
            allow_missing=self._request.allow_missing,
        )
        try:
            outcome: TaskOutcome = await workflow.execute_child_workflow(
                TaskSaga.run,
                asdict(request),
                id=task_saga_id(self._build, task.id),
                task_timeout=WORKFLOW_TASK,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                static_summary=task.title,
            )
        except ChildWorkflowError:
            self._tasks[task.id] = "failed"
            raise
        self._effects.heed_cancellation()
        self._tasks[task.id] = "succeeded"
        return Base(commit=outcome.commit, ran=outcome.ran)

    async def _land(self, admitted: AdmittedBuild, base: Base, head: Base) -> Landed:
        await self._enter("landing")
        undo = CompensateInput(project=admitted.project, build=self._build, commit=head.commit)
        await self._undo.register("land", "retract_result", undo)
        land = LandInput(project=admitted.project, build=self._build, base=base.commit, commit=head.commit)
        landed = await self._effects.run(WORKSPACE, Landings.land_result, land)
        await self._enter("done")
        return landed

    async def _compensate(self, status: str, sentence: str, *, fault: str) -> None:
        self._status = status
        self._effects.shield()
        left = await self._undo.undo_all()
        if left:
            sentence += "; could not be undone: " + "; ".join(left)
        self._recorder.note("build.ended", status=status, sentence=sentence, fault=fault)
        workflow.set_current_details(f"**{status}**: {sentence}")
        await self._recorder.flush(self._effects)

    async def _enter(self, phase: str) -> None:
        self._phase = phase
        self._recorder.note("build.phase", phase=phase)
        workflow.set_current_details(f"phase: **{phase}**")
        await self._recorder.flush(self._effects)
