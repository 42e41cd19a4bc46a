"""One task of a build: attempts until its gates are green, isolated from its siblings."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from workflows.faults import failure, last_fault
from workflows.lines.attempt import Attempt, Attempts
from workflows.policies import PLACE, STORE, Effects
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    from activities.accounts.money import Money, PlaceInput
    from domain.build.requests import TaskOutcome, TaskRequest, decode
    from domain.errors import AttemptsExhausted, MendworkError, UnknownPackages
    from domain.money.budget import Budget
    from domain.risk.confidence import confidence_in
    from domain.risk.evidence import Evidence, Made, Past, Touched
    from domain.risk.formula import score
    from domain.risk.matrix import decide
    from domain.risk.policy import WEIGHTS, RiskPolicy

STUCK = ("AttemptsExhausted", "ModelsExhausted", "BudgetExhausted", "NeedsExhausted", "UnknownPackages")
"""What a person may get a task out of."""


@workflow.defn(failure_exception_types=[MendworkError])
class TaskSaga:
    """Runs attempts one after the other; a red one tells the next what was wrong."""

    @workflow.init
    def __init__(self, request: Any = None) -> None:
        # Its build may speak to it before ``run`` has looked at its request.
        self._effects = Effects()
        self._attempts: Attempts | None = None
        self._budget: Budget | None = None
        self._last = Attempt()

    @workflow.run
    async def run(self, request: Any = None) -> TaskOutcome:
        """Takes a TaskRequest as plain JSON. What a person has to decide is an outcome; fails with anything else."""
        self._request = decode(TaskRequest, request)
        self._effects.beat_every(timedelta(seconds=self._request.heartbeat))
        self._effects.fair_to(self._request.project)
        self._effects.paused = self._effects.paused or self._request.paused
        self._recorder = Recorder(build=self._request.build, task=self._request.task)
        self._note_started()
        attempts = Attempts(request=self._request, effects=self._effects, recorder=self._recorder)
        attempts.number = self._request.first - 1
        attempts.budget = self._budget or attempts.budget
        self._attempts = attempts
        try:
            outcome = await self._in_place(attempts)
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
        attempts = self._attempts
        where = (
            {"attempt": attempts.number, "phase": attempts.phase} if attempts else {"attempt": 0, "phase": "starting"}
        )
        return {**where, "paused": self._effects.paused}

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
        if self._attempts is not None:
            self._attempts.budget = budget

    def _note_started(self) -> None:
        """With what it takes to run the same task again."""
        request = self._request
        self._recorder.note(
            "task.started",
            base=request.base,
            first=request.first,
            baseline=request.baseline,
            spec=request.spec,
            plan=request.plan,
            at=request.at,
            base_ran=request.base_ran,
            allow_missing=list(request.allow_missing),
            reason=request.reason[:2_000],
            report=request.report,
            change=request.change,
        )

    async def _in_place(self, attempts: Attempts) -> TaskOutcome:
        """The attempts, while the task holds one of its project's places."""
        request = self._request
        if not request.places:
            return await self._run(attempts)
        place = PlaceInput(
            project=request.project,
            build=request.build,
            holder=workflow.info().workflow_id,
            limit=request.places,
        )
        try:
            await self._effects.run(PLACE, Money.take_place, place, summary="a place among the project's tasks")
            return await self._run(attempts)
        finally:
            await self._effects.last(STORE, Money.give_place, place)

    async def _run(self, attempts: Attempts) -> TaskOutcome:
        request = self._request
        self._last = Attempt(reason=request.reason, report=request.report, change=request.change)
        for number in range(request.first, request.first + request.attempts):
            self._last = await attempts.make(number, self._last)
            if self._last.unknown:
                raise UnknownPackages(self._last.reason)
            if self._last.commit:
                return self._weighed(self._outcome("green"))
        raise AttemptsExhausted(f"{request.attempts} attempts were not enough; {self._last.reason}")

    def _weighed(self, outcome: TaskOutcome) -> TaskOutcome:
        """What the escalation matrix says of green work: figures of this task alone, before any review."""
        request = self._request
        made = Made(
            tests=outcome.ran, base_tests=request.base_ran, attempts=outcome.attempt - request.first + 1, tasks=1
        )
        touched = Touched(files=len(outcome.touched), paths=outcome.touched)
        policy = RiskPolicy(weights={**WEIGHTS, **request.weights})
        risk = score(Evidence(touched=touched, made=made, past=Past()), policy).value
        trust = confidence_in(made).value
        decision = decide(risk, trust, retries=made.attempts - 1)
        self._recorder.note(
            "task.weighed",
            attempt=outcome.attempt,
            risk=risk,
            confidence=trust,
            action=decision.action,
            why=decision.why,
        )
        return replace(outcome, action=decision.action, why=decision.why)

    def _outcome(self, status: str, *, kind: str = "", sentence: str = "") -> TaskOutcome:
        last = self._last
        return TaskOutcome(
            task=self._request.task,
            commit=last.commit,
            ran=last.ran,
            attempt=self._number,
            status=status,
            base=self._request.base,
            kind=kind,
            sentence=sentence,
            touched=last.touched,
            model=last.model,
            diff=last.change,
            report=last.report,
            baseline=last.baseline,
            packages=last.unknown,
        )

    @property
    def _number(self) -> int:
        return self._attempts.number if self._attempts else 0

    async def _end(self, status: str, **data: Any) -> None:
        if self._attempts:
            self._attempts.phase = status
        self._effects.shield()
        self._recorder.note("task.ended", attempt=self._number, status=status, **data)
        workflow.set_current_details(status)
        await self._recorder.flush(self._effects)
