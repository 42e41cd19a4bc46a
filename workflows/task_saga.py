"""One task of a build: attempts until its gates are green, isolated from its siblings."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from workflows.asking import Question, ask
from workflows.faults import failure, last_fault
from workflows.policies import SANDBOX, WORKSPACE, Effects, granting
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    from activities.changes import AdvanceHeadInput, AppliedChange, ApplyChangeInput, Changes
    from activities.gates import GateReport, Gates, RunGatesInput
    from activities.models import CalledModel
    from activities.prompts import Prompts, RenderChangeInput
    from domain.build.requests import TaskOutcome, TaskRequest, decode
    from domain.errors import AttemptsExhausted, MendworkError


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How an attempt ended: ``commit`` when it was green, else what the next one is told."""

    commit: str = ""
    ran: int = -1
    reason: str = ""
    report: str = ""
    change: str = ""


@workflow.defn(failure_exception_types=[MendworkError])
class TaskSaga:
    """Runs attempts one after the other; a red one tells the next what was wrong."""

    @workflow.init
    def __init__(self, request: Any = None) -> None:
        self._attempt = 0
        self._phase = "starting"

    @workflow.run
    async def run(self, request: Any = None) -> TaskOutcome:
        """Takes a TaskRequest as plain JSON. Fails with AttemptsExhausted, ModelsExhausted or what ended it."""
        self._request = decode(TaskRequest, request)
        self._effects = Effects(heartbeat=timedelta(seconds=self._request.heartbeat))
        self._recorder = Recorder(build=self._request.build, task=self._request.task)
        self._recorder.note("task.started", base=self._request.base)
        try:
            outcome = await self._attempts()
        except (ActivityError, MendworkError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error):
                await self._end("aborted", sentence="it was cancelled")
                raise
            fault = last_fault(error)
            await self._end("failed", sentence=fault.sentence, fault=fault.kind)
            raise failure(fault) from error
        await self._end("succeeded", commit=outcome.commit)
        return outcome

    @workflow.query(description="Where the task stands: its attempt and what it is doing.")
    def state(self) -> dict[str, Any]:
        """Small and pure."""
        return {"attempt": self._attempt, "phase": self._phase}

    async def _attempts(self) -> TaskOutcome:
        request, last = self._request, Attempt()
        for self._attempt in range(1, request.attempts + 1):
            self._recorder.note("attempt.started", attempt=self._attempt)
            last = await self._one(last)
            await self._recorder.flush(self._effects)
            if last.commit:
                return TaskOutcome(task=request.task, commit=last.commit, ran=last.ran, attempts=self._attempt)
        raise AttemptsExhausted(f"task {request.task}: {request.attempts} attempts were not enough; {last.reason}")

    async def _one(self, last: Attempt) -> Attempt:
        called = await self._write(last)
        try:
            applied = await self._apply(called)
        except ActivityError as error:
            fault = last_fault(error)
            if fault.kind != "InvalidChange":
                raise
            self._recorder.note("change.refused", attempt=self._attempt, reason=fault.sentence)
            return Attempt(reason=fault.sentence, change=called.value)
        report = await self._judge(applied)
        if not report.green:
            return Attempt(reason=report.reason, report=report.report, change=applied.diff)
        await self._advance(applied.commit)
        return Attempt(commit=applied.commit, ran=report.ran)

    async def _write(self, last: Attempt) -> CalledModel:
        await self._enter("writing")
        request = self._request
        rendered = await self._effects.run(
            WORKSPACE,
            Prompts.render_change_prompt,
            RenderChangeInput(
                project=request.project,
                base=request.base,
                spec=request.spec,
                plan=request.plan,
                task=request.task,
                reason=last.reason,
                report=last.report,
                change=last.change,
            ),
        )
        question = Question(
            build=request.build,
            step="change",
            attempt=self._attempt,
            prompt=rendered.prompt,
            schema_name="Change",
            chain=request.chain,
            output_tokens=request.output_tokens,
            seconds=request.model_seconds,
        )
        return await ask(question, effects=self._effects, recorder=self._recorder)

    async def _apply(self, called: CalledModel) -> AppliedChange:
        await self._enter("applying")
        request = self._request
        applied = await self._effects.run(
            WORKSPACE,
            Changes.apply_change,
            ApplyChangeInput(
                project=request.project,
                build=request.build,
                task=request.task,
                plan=request.plan,
                base=request.base,
                change=called.value,
                model=called.model,
                attempt=self._attempt,
                at=int(workflow.info().start_time.timestamp()) + self._attempt,
            ),
        )
        self._recorder.note("change.applied", attempt=self._attempt, **asdict(applied))
        return applied

    async def _judge(self, applied: AppliedChange) -> GateReport:
        await self._enter("testing")
        request = self._request
        report = await self._effects.run(
            granting(SANDBOX, 2 * request.test_seconds),  # the syntax check has as long as the tests
            Gates.run_gates,
            RunGatesInput(
                label=f"{workflow.info().workflow_id}/gates/{self._attempt}",
                project=request.project,
                commit=applied.commit,
                written=applied.written,
                base_ran=request.base_ran,
                allow_missing=request.allow_missing,
            ),
        )
        self._recorder.note("gates.ran", attempt=self._attempt, **asdict(report))
        return report

    async def _advance(self, commit: str) -> None:
        await self._enter("committing")
        request = self._request
        move = AdvanceHeadInput(project=request.project, build=request.build, old=request.base, new=commit)
        await self._effects.run(WORKSPACE, Changes.advance_head, move)

    async def _enter(self, phase: str) -> None:
        """A new phase shows at once in the log, so that a person sees what goes on."""
        self._phase = phase
        self._recorder.note("attempt.phase", attempt=self._attempt, phase=phase)
        workflow.set_current_details(f"attempt {self._attempt}: {phase}")
        await self._recorder.flush(self._effects)

    async def _end(self, status: str, **data: Any) -> None:
        self._phase = status
        self._effects.shield()
        self._recorder.note("task.ended", attempt=self._attempt, status=status, **data)
        workflow.set_current_details(status)
        await self._recorder.flush(self._effects)
