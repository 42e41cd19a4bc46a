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
from workflows.policies import PLACE, SANDBOX, STORE, WORKSPACE, Effects, granting
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    from activities.gates import GateReport, Gates, RunGatesInput
    from activities.models import CalledModel
    from activities.money import Money, PlaceInput
    from activities.prompts import Prompts, RenderChangeInput
    from activities.repository.changes import AppliedChange, ApplyChangeInput, Changes
    from domain.build.requests import TaskOutcome, TaskRequest, decode
    from domain.errors import AttemptsExhausted, MendworkError
    from domain.money.budget import Budget, Payer

STUCK = ("AttemptsExhausted", "ModelsExhausted", "BudgetExhausted")
"""What a person may get a task out of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How an attempt ended: ``commit`` when it was green, else what the next one is told."""

    commit: str = ""
    ran: int = -1
    reason: str = ""
    report: str = ""
    change: str = ""
    touched: tuple[str, ...] = ()
    model: str = ""


@workflow.defn(failure_exception_types=[MendworkError])
class TaskSaga:
    """Runs attempts one after the other; a red one tells the next what was wrong."""

    @workflow.init
    def __init__(self, request: Any = None) -> None:
        self._attempt = 0
        self._phase = "starting"
        self._effects = Effects()
        self._last = Attempt()

    @workflow.run
    async def run(self, request: Any = None) -> TaskOutcome:
        """Takes a TaskRequest as plain JSON. What a person has to decide is an outcome; fails with anything else."""
        self._request = decode(TaskRequest, request)
        self._budget = self._request.budget
        self._effects.beat_every(timedelta(seconds=self._request.heartbeat))
        self._effects.paused = self._effects.paused or self._request.paused
        self._recorder = Recorder(build=self._request.build, task=self._request.task)
        self._recorder.note("task.started", base=self._request.base, first=self._request.first)
        try:
            outcome = await self._in_place()
        except (ActivityError, MendworkError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error):
                await self._end("aborted", sentence="it was cancelled")
                raise
            fault = last_fault(error)
            if fault.kind not in STUCK:
                await self._end("failed", sentence=fault.sentence, fault=fault.kind)
                raise failure(fault) from error
            outcome = self._outcome("stuck", kind=fault.kind, sentence=fault.sentence)
        await self._end(outcome.status, commit=outcome.commit, sentence=outcome.sentence, fault=outcome.kind)
        return outcome

    @workflow.query(description="Where the task stands: its attempt and what it is doing.")
    def state(self) -> dict[str, Any]:
        """Small and pure."""
        return {"attempt": self._attempt, "phase": self._phase, "paused": self._effects.paused}

    @workflow.signal(description="From its build: start no new call.")
    def pause(self) -> None:
        """Before ``run`` too."""
        self._effects.paused = True

    @workflow.signal(description="From its build: go on, also with what only waits.")
    def resume_now(self) -> None:
        """Ends a pause."""
        self._effects.paused = False
        self._effects.hurry()

    @workflow.signal(description="From its build: the money that the next calls may use.")
    def set_budget(self, budget: Budget) -> None:
        """Whole, as the build has it now."""
        self._budget = budget

    async def _in_place(self) -> TaskOutcome:
        """The attempts, while the task holds one of its project's places."""
        request = self._request
        if not request.places:
            return await self._attempts()
        place = PlaceInput(
            project=request.project,
            build=request.build,
            holder=workflow.info().workflow_id,
            limit=request.places,
        )
        try:
            await self._effects.run(PLACE, Money.take_place, place, summary="a place among the project's tasks")
            return await self._attempts()
        finally:
            await self._effects.last(STORE, Money.give_place, place)

    async def _attempts(self) -> TaskOutcome:
        request = self._request
        self._last = Attempt(reason=request.reason, report=request.report, change=request.change)
        for self._attempt in range(request.first, request.first + request.attempts):
            self._recorder.note("attempt.started", attempt=self._attempt)
            self._last = await self._one(self._last)
            await self._recorder.flush(self._effects)
            if self._last.commit:
                return self._outcome("green")
        raise AttemptsExhausted(f"{request.attempts} attempts were not enough; {self._last.reason}")

    def _outcome(self, status: str, *, kind: str = "", sentence: str = "") -> TaskOutcome:
        last = self._last
        return TaskOutcome(
            task=self._request.task,
            commit=last.commit,
            ran=last.ran,
            attempt=max(self._attempt, self._request.first - 1),
            status=status,
            base=self._request.base,
            kind=kind,
            sentence=sentence,
            touched=last.touched,
            model=last.model,
            diff=last.change,
            report=last.report,
        )

    async def _one(self, last: Attempt) -> Attempt:
        called, prompt = await self._write(last)
        try:
            applied = await self._apply(called, prompt)
        except ActivityError as error:
            fault = last_fault(error)
            if fault.kind != "InvalidChange":
                raise
            self._recorder.note("change.refused", attempt=self._attempt, reason=fault.sentence)
            return Attempt(reason=fault.sentence, change=called.value, model=called.model)
        report = await self._judge(applied)
        return Attempt(
            commit=applied.commit if report.green else "",
            ran=report.ran,
            reason=report.reason,
            report=report.report,
            change=applied.diff,
            touched=applied.touched,
            model=called.model,
        )

    async def _write(self, last: Attempt) -> tuple[CalledModel, str]:
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
        payer = Payer(
            project=request.project,
            build=request.build,
            task=request.task,
            user=request.user or "unknown",
            phase="tasks",
            role="coding",
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
            payer=payer,
            budget=self._budget,
        )
        return await ask(question, effects=self._effects, recorder=self._recorder), rendered.prompt

    async def _apply(self, called: CalledModel, prompt: str) -> AppliedChange:
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
                prompt=prompt,
            ),
        )
        self._recorder.note(
            "change.applied", attempt=self._attempt, **{**asdict(applied), "touched": list(applied.touched[:50])}
        )
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
