"""One attempt at a task: ask for a change, apply it to its base, judge it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.asking import Question, ask
from workflows.faults import last_fault
from workflows.policies import SANDBOX, WORKSPACE, Effects, granting
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    from activities.gates import GateReport, Gates, RunGatesInput
    from activities.models import CalledModel
    from activities.prompts import Prompts, RenderChangeInput
    from activities.repository.changes import AppliedChange, ApplyChangeInput, Changes
    from domain.build.requests import TaskRequest
    from domain.money.budget import Budget, Payer


REFUSED = ("InvalidChange", "StaleChange")
"""What costs the attempt: the next one is shown the tree as it is, and why."""


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


class Attempts:
    """The attempts of one task, one after the other. ``budget`` may be raised in between."""

    def __init__(self, *, request: TaskRequest, effects: Effects, recorder: Recorder) -> None:
        self._request = request
        self._effects = effects
        self._recorder = recorder
        self.number = 0
        self.phase = "starting"
        self.budget: Budget = request.budget

    async def make(self, number: int, last: Attempt) -> Attempt:
        """Attempt ``number``, told what was wrong with the ``last`` one."""
        self.number = number
        self._recorder.note("attempt.started", attempt=number)
        made = await self._make(last)
        await self._recorder.flush(self._effects)
        return made

    async def _make(self, last: Attempt) -> Attempt:
        called, prompt = await self._write(last)
        try:
            applied = await self._apply(called, prompt)
        except ActivityError as error:
            fault = last_fault(error)
            if fault.kind not in REFUSED:
                raise
            self._recorder.note("change.refused", attempt=self.number, reason=fault.sentence)
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
            attempt=self.number,
            prompt=rendered.prompt,
            schema_name="Change",
            chain=request.chain,
            output_tokens=request.output_tokens,
            seconds=request.model_seconds,
            payer=payer,
            budget=self.budget,
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
                attempt=self.number,
                at=int(workflow.info().start_time.timestamp()) + self.number,
                prompt=prompt,
            ),
        )
        self._recorder.note(
            "change.applied", attempt=self.number, **{**asdict(applied), "touched": list(applied.touched[:50])}
        )
        return applied

    async def _judge(self, applied: AppliedChange) -> GateReport:
        await self._enter("testing")
        request = self._request
        report = await self._effects.run(
            granting(SANDBOX, 2 * request.test_seconds),  # the syntax check has as long as the tests
            Gates.run_gates,
            RunGatesInput(
                label=f"{workflow.info().workflow_id}/gates/{self.number}",
                project=request.project,
                commit=applied.commit,
                written=applied.written,
                base_ran=request.base_ran,
                allow_missing=request.allow_missing,
            ),
        )
        self._recorder.note("gates.ran", attempt=self.number, **asdict(report))
        return report

    async def _enter(self, phase: str) -> None:
        """A new phase shows at once in the log, so that a person sees what goes on."""
        self.phase = phase
        self._recorder.note("attempt.phase", attempt=self.number, phase=phase)
        workflow.set_current_details(f"attempt {self.number}: {phase}")
        await self._recorder.flush(self._effects)
