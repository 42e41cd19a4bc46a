"""The planning phase: ask, check, and send the problems back until a plan can be run or the attempts are used up."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from temporalio import workflow

from workflows.asking import Question, ask
from workflows.policies import WORKSPACE, Effects
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    from activities.intake import AdmittedBuild
    from activities.planning import CheckedPlan, CheckPlanInput, Planning, TaskBrief
    from activities.prompts import Prompts, RenderPlanInput
    from domain.errors import InvalidPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """``base`` is the commit to plan on."""

    build: str
    admitted: AdmittedBuild
    base: str


async def make_plan(request: PlanRequest, *, effects: Effects, recorder: Recorder) -> tuple[str, tuple[TaskBrief, ...]]:
    """The plan's digest and its tasks in an order in which they can run. Raises InvalidPlan, ModelsExhausted."""
    limits = request.admitted.limits
    problems: tuple[str, ...] = ()
    for attempt in range(1, limits.attempts + 1):
        question = await _question(request, attempt, problems, effects)
        answer = await ask(question, effects=effects, recorder=recorder)
        check = CheckPlanInput(plan=answer.value, max_tasks=limits.tasks)
        checked = await effects.run(WORKSPACE, Planning.check_plan, check)
        _note(recorder, attempt, answer.value, checked)
        await recorder.flush(effects)
        if checked.tasks:
            return answer.value, checked.tasks
        problems = checked.problems
    raise InvalidPlan(f"{limits.attempts} plans were not usable; the last: {problems[0]}")


async def _question(request: PlanRequest, attempt: int, problems: tuple[str, ...], effects: Effects) -> Question:
    admitted = request.admitted
    render = RenderPlanInput(project=admitted.project, base=request.base, spec=admitted.spec, problems=problems)
    rendered = await effects.run(WORKSPACE, Prompts.render_plan_prompt, render)
    return Question(
        build=request.build,
        step="plan",
        attempt=attempt,
        prompt=rendered.prompt,
        schema_name="Plan",
        chain=admitted.reasoning,
        output_tokens=admitted.limits.output_tokens,
        seconds=admitted.limits.model_seconds,
    )


def _note(recorder: Recorder, attempt: int, plan: str, checked: CheckedPlan) -> None:
    if checked.tasks:
        recorder.note("build.planned", plan=plan, tasks=[asdict(task) for task in checked.tasks])
    else:
        recorder.note("plan.refused", attempt=attempt, plan=plan, problems=list(checked.problems))
