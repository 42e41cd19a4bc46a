"""A build: intake, plan, tasks, review, approval, landing. Holds phases, and what people say to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ChildWorkflowError, is_cancelled_exception

from workflows.context import Build
from workflows.faults import failure, last_fault
from workflows.people.conversation import Conversation
from workflows.phases.approval import approve, missing
from workflows.phases.delivering import deliver
from workflows.phases.forecasting import forecast
from workflows.phases.intake import intake
from workflows.phases.landing import land
from workflows.phases.planning import approve_plan, plan
from workflows.phases.review import review
from workflows.phases.tasks import tasks
from workflows.policies import to_its_end
from workflows.resume.snapshots import snapshot
from workflows.state import BuildState, carried

with workflow.unsafe.imports_passed_through():
    from domain.build.names import check_build_name
    from domain.build.requests import decode_build_request
    from domain.errors import MendworkError, UnknownName
    from domain.flow.board import MERGED
    from domain.ports.releases import PROMOTED

PHASES: Mapping[str, Callable[[Build], Awaitable[str]]] = {
    "intake": intake,
    "plan": plan,
    "approve_plan": approve_plan,
    "tasks": tasks,
    "review": review,
    "approve": approve,
    "land": land,
    "deliver": deliver,
}
ENDINGS = {"Cancelled": "aborted", "Aborted": "aborted", "Escalated": "escalated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What a build ends with: the branch in the user's repository and the commit it points at. ``status`` is
    "succeeded" or "partial"; ``missing`` are the tasks that a partial one lacks. What was landed and could not be
    delivered is "undelivered", "rolled back" or "unclear". A dry run is "planned", and one that was only wanted until
    some phase "stopped": neither has a branch."""

    build: str
    status: str
    branch: str
    commit: str
    tasks: tuple[str, ...]
    missing: tuple[str, ...] = ()


@workflow.defn(failure_exception_types=[MendworkError])
class BuildSaga(Conversation):
    """The root of one build. Its workflow id is the build's name."""

    @workflow.init
    def __init__(self, request: Any = None, carried: BuildState | None = None) -> None:
        # People may speak before ``run`` has looked at its request.
        self._build = Build(name=workflow.info().workflow_id, state=carried or BuildState())
        self._status = "running"

    @workflow.run
    async def run(self, request: Any = None, carried: BuildState | None = None) -> BuildResult:
        """Takes a BuildRequest as plain JSON. Fails typed and with one sentence; what it did is undone then.

        ``carried`` is what an earlier run of the same build hands over.
        """
        build = self._build
        check_build_name(build.name)
        build.request = decode_build_request(request)
        self._main = asyncio.current_task()
        build.renew = self._continue
        if project := build.state.admitted.project if build.state.admitted else build.request.project:
            build.effects.fair_to(project)
        try:
            if stopped := await self._phases(build):
                return await to_its_end(self._stop(build, *stopped))
        except (ActivityError, ChildWorkflowError, MendworkError, asyncio.CancelledError) as error:
            await to_its_end(self._fail(build, error))
        return await to_its_end(self._succeed(build))

    @workflow.query(description="The phase, the status and each task's status.")
    def state(self) -> dict[str, Any]:
        """Small and pure."""
        state, paused = self._build.state, self._build.effects.paused
        tasks = {name: task.status for name, task in state.tasks.items()}
        return {"phase": state.phase, "status": self._status, "paused": paused, "tasks": tasks}

    @workflow.query(description="The plan's digest and its tasks.")
    def plan(self) -> dict[str, Any]:
        """Small and pure: the plan's text is in the blob of that digest."""
        return {"plan": self._build.state.plan, "tasks": [asdict(brief) for brief in self._build.briefs]}

    @workflow.query(description="The phases that this run entered, the newest last, with the time in ms since 1970.")
    def timeline(self) -> list[dict[str, Any]]:
        """Small and pure."""
        return [{"phase": phase, "at": at} for phase, at in self._build.timeline]

    @workflow.query(description="What it has spent as of the last phase that ended, in micro-dollars.")
    def cost(self) -> dict[str, Any]:
        """Small and pure: `mendwork cost` reads the ledger."""
        state = self._build.state
        budget = state.admitted.budget.build if state.admitted else None
        return {"spent_micros": self._build.spent_micros, "limit_micros": budget}

    @workflow.query(description="What waits for a person, and how to answer it.")
    def pending(self) -> list[dict[str, Any]]:
        """Small and pure."""
        return self._build.desk.shown(self._build.name)

    async def _phases(self, build: Build) -> tuple[str, str] | None:
        """Run to the end; or to where the request wants it, with the status and the sentence of that."""
        request, state = build.request, build.state
        if request.until and request.until not in PHASES:
            raise UnknownName.among("phase", request.until, PHASES)
        if workflow.info().continued_run_id:
            build.recorder.note("build.continued", phase=state.phase)
        while state.phase != "done":
            if build.full and state.phase != "intake":
                await self._continue()
            ran, state.phase = state.phase, await PHASES[state.phase](build)
            if request.until == ran and not (request.resume and ran == "intake"):
                return "stopped", f"after {ran}, as it was wanted"
            if request.dry_run and ran == "plan":
                await forecast(build)
                return "planned", f"{len(build.briefs)} tasks, as a dry run: nothing was written"
            if state.phase not in (ran, "done") and not request.dry_run:
                await snapshot(build, after=ran)
        build.effects.heed_cancellation()
        build.effects.shield()
        return None

    async def _continue(self) -> None:
        """Go on in a new run: nothing is under way now but what the state carries."""
        build = self._build
        await build.recorder.flush(build.effects)
        await workflow.wait_condition(workflow.all_handlers_finished)
        build.effects.heed_cancellation()
        build.state.paused = build.effects.paused
        workflow.continue_as_new(args=[asdict(build.request), carried(build.state)])

    async def _succeed(self, build: Build) -> BuildResult:
        await build.undo.close_all()
        lost, state = missing(build), build.state
        self._status = "partial" if lost else "succeeded"
        sentence = f"on branch {state.branch}"
        if lost:
            sentence += ", without " + "; ".join(f"{item['task']} ({item['why']})" for item in lost)
        if state.note:
            sentence += f"; {state.note}"
        if state.delivered:
            self._status, sentence = delivered(state.delivered, self._status, sentence)
        await self._end(build, sentence, branch=state.branch, commit=build.head.commit, diff=state.diff, missing=lost)
        return BuildResult(
            build=build.name,
            status=self._status,
            branch=state.branch,
            commit=build.head.commit,
            tasks=tuple(name for name, task in state.tasks.items() if task.status == MERGED),
            missing=tuple(item["task"] for item in lost),
        )

    async def _stop(self, build: Build, status: str, sentence: str) -> BuildResult:
        """End before the end: what was done on the way is undone."""
        build.effects.shield()
        self._status = status
        left = await build.undo.undo_all()
        sentence += "".join(f"; could not be undone: {each}" for each in left)
        await self._end(build, sentence, commit=build.head.commit)
        return BuildResult(build=build.name, status=status, branch="", commit=build.head.commit, tasks=())

    async def _fail(self, build: Build, error: BaseException) -> None:
        """Undo what was done, and raise what the saga ends with."""
        cancelled, fault = is_cancelled_exception(error), last_fault(error)
        kind, sentence = fault.kind, fault.sentence
        if cancelled:
            kind, sentence = ("Aborted", self._aborted) if self._aborted else ("Cancelled", "it was cancelled")
        self._status = ENDINGS.get(kind, "failed")
        build.effects.shield()
        left = await build.undo.undo_all()
        if left:
            sentence += "; could not be undone: " + "; ".join(left)
        await self._end(build, sentence, fault=kind, missing=missing(build))
        if cancelled and not self._aborted:
            raise error
        raise failure(replace(fault, kind=kind, sentence=sentence)) from error

    async def _end(self, build: Build, sentence: str, **data: Any) -> None:
        build.desk.close_all()
        build.recorder.note("build.ended", status=self._status, sentence=sentence[:1_000], **data)
        workflow.set_current_details(f"**{self._status}**: {sentence}")
        build.attributes.tell(BuildStatus=self._status, NeedsApproval=False)
        await build.recorder.flush(build.effects)
        await workflow.wait_condition(workflow.all_handlers_finished)
        await build.recorder.flush(build.effects)


def delivered(report: Mapping[str, Any], status: str, sentence: str) -> tuple[str, str]:
    """The status and sentence of a build whose result was to be delivered; what was landed stays."""
    told = f"{sentence}; release {report['release']}: {report['sentence']}" if report["release"] else report["sentence"]
    return (status if report["status"] == PROMOTED else str(report["status"])), told
