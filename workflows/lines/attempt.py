"""One attempt at a task: ask for a change, apply it to its base, judge it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.asking import Question, ask
from workflows.faults import last_fault
from workflows.lines.gating import SET_UP_FAILED, Kit, prepare, unknown
from workflows.policies import SANDBOX, WORKSPACE, Effects, granting
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    from activities.gates import GateReport, Gates, RunGatesInput
    from activities.models import CalledModel
    from activities.prompts import Prompts, RenderChangeInput
    from activities.repository.changes import AppliedChange, ApplyChangeInput, Changes
    from activities.sandboxed.environments import Prepared
    from domain.build.requests import TaskRequest
    from domain.errors import NeedsExhausted
    from domain.money.budget import Budget, Payer


REFUSED = ("InvalidChange", "StaleChange")
"""What costs the attempt: the next one is shown the tree as it is, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How an attempt ended: ``commit`` when it was green, else what the next one is told. With ``unknown`` packages
    the commit could not be judged: a person comes first."""

    commit: str = ""
    ran: int = -1
    reason: str = ""
    report: str = ""
    change: str = ""
    touched: tuple[str, ...] = ()
    model: str = ""
    baseline: str = ""
    unknown: tuple[str, ...] = ()


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
        """Attempt ``number``, told what was wrong with the ``last`` one. Raises NeedsExhausted."""
        self.number = number
        self._recorder.note("attempt.started", attempt=number)
        made = await self._make(last)
        await self._recorder.flush(self._effects)
        return made

    async def _make(self, last: Attempt) -> Attempt:
        needs: tuple[str, ...] = ()
        for rounds in range(self._request.needs_rounds, -1, -1):
            called, prompt = await self._write(last, needs, rounds)
            try:
                applied = await self._apply(called, prompt)
            except ActivityError as error:
                return self._refused(error, called)
            if not applied.needs:
                return await self._judged(called, applied)
            needs = tuple(dict.fromkeys((*needs, *applied.needs)))
            self._recorder.note("change.needs", attempt=self.number, paths=list(applied.needs), left=rounds)
        asked = ", ".join(needs[:5])
        raise NeedsExhausted(f"the model asked for more of the repository again and again, at last for {asked}")

    def _refused(self, error: ActivityError, called: CalledModel) -> Attempt:
        fault = last_fault(error)
        if fault.kind not in REFUSED:
            raise error
        self._recorder.note("change.refused", attempt=self.number, reason=fault.sentence)
        return Attempt(reason=fault.sentence, change=called.value, model=called.model)

    async def _judged(self, called: CalledModel, applied: AppliedChange) -> Attempt:
        made = Attempt(change=applied.diff, touched=applied.touched, model=called.model)
        try:
            prepared = await self._prepare(applied.commit)
        except ActivityError as error:
            fault = last_fault(error)
            if fault.kind not in SET_UP_FAILED:
                raise
            self._recorder.note("change.refused", attempt=self.number, reason=fault.sentence)
            return replace(made, reason=fault.sentence)
        if prepared.unknown:
            return replace(made, commit=applied.commit, unknown=prepared.unknown, reason=unknown(prepared.unknown))
        report = await self._judge(applied, prepared.key)
        return replace(
            made,
            commit=applied.commit if report.green else "",
            ran=report.ran,
            reason=report.reason,
            report=report.report,
            baseline=report.baseline,
        )

    async def _write(self, last: Attempt, needs: tuple[str, ...], rounds: int) -> tuple[CalledModel, str]:
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
                needs=needs,
                rounds=rounds,
                strategy=request.strategy,
            ),
        )
        if rendered.manifest:
            self._recorder.note(
                "context.selected",
                attempt=self.number,
                manifest=rendered.manifest,
                tokens=rendered.tokens,
                shown=rendered.shown,
            )
        called = await ask(self._question(rendered.prompt, rounds), effects=self._effects, recorder=self._recorder)
        return called, rendered.prompt

    def _question(self, prompt: str, rounds: int) -> Question:
        request = self._request
        again = request.needs_rounds - rounds
        payer = Payer(
            project=request.project,
            build=request.build,
            task=request.task,
            user=request.user or "unknown",
            phase="tasks",
            role="coding",
        )
        return Question(
            build=request.build,
            step=f"change-{again}" if again else "change",  # each round is a call of its own
            attempt=self.number,
            prompt=prompt,
            schema_name="Change",
            chain=request.chain,
            output_tokens=request.output_tokens,
            seconds=request.model_seconds,
            payer=payer,
            budget=self.budget,
        )

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
                at=(request.at or int(workflow.info().start_time.timestamp())) + self.number,
                prompt=prompt,
            ),
        )
        if not applied.needs:
            self._note_applied(applied)
        return applied

    def _note_applied(self, applied: AppliedChange) -> None:
        row = {**asdict(applied), "touched": list(applied.touched[:50])}
        row.pop("needs")
        self._recorder.note("change.applied", attempt=self.number, **row)

    async def _prepare(self, commit: str) -> Prepared:
        request = self._request
        if not request.sets_up:
            return Prepared(key="")
        await self._enter("setting up")
        kit = Kit(
            project=request.project,
            sets_up=True,
            setup_seconds=request.setup_seconds,
            test_seconds=request.test_seconds,
            trusted=request.trusted,
            packages=request.packages,
            allow_missing=request.allow_missing,
        )
        return await prepare(kit, self._effects, self._recorder, label=self._label("setup"), commit=commit)

    async def _judge(self, applied: AppliedChange, environment: str) -> GateReport:
        await self._enter("testing")
        request = self._request
        report = await self._effects.run(
            granting(SANDBOX, 2 * request.test_seconds),  # the syntax check has as long as the tests
            Gates.run_gates,
            RunGatesInput(
                label=self._label("gates"),
                project=request.project,
                commit=applied.commit,
                written=applied.written,
                base_ran=request.base_ran,
                allow_missing=request.allow_missing,
                baseline=request.baseline,
                environment=environment,
            ),
        )
        self._recorder.note("gates.ran", attempt=self.number, **asdict(report))
        return report

    def _label(self, step: str) -> str:
        return f"{workflow.info().workflow_id}/{step}/{self.number}"

    async def _enter(self, phase: str) -> None:
        """A new phase shows at once in the log, so that a person sees what goes on."""
        self.phase = phase
        self._recorder.note("attempt.phase", attempt=self.number, phase=phase)
        workflow.set_current_details(f"attempt {self.number}: {phase}")
        await self._recorder.flush(self._effects)
