"""Planning: ask, check, send the problems back until a plan can be run; then a person's consent, where asked for."""

from __future__ import annotations

from dataclasses import asdict

from temporalio import workflow

from workflows.asking import Question, ask
from workflows.context import Build, Wanted
from workflows.policies import WORKSPACE

with workflow.unsafe.imports_passed_through():
    from activities.planning import CheckedPlan, CheckPlanInput, Planning
    from activities.prompts import Prompts, RenderPlanInput
    from domain.errors import Escalated, InvalidPlan
    from domain.flow.board import TaskState
    from domain.human.asks import APPROVAL


async def plan(build: Build) -> str:
    """A plan whose tasks can run. Raises InvalidPlan, ModelsExhausted, BudgetExhausted."""
    await build.enter("plan")
    limits, state = build.admitted.limits, build.state
    problems: tuple[str, ...] = (state.plan_reason,) if state.plan_reason else ()
    for _ in range(limits.attempts):
        state.plans += 1
        answer = await ask(await _question(build, problems), effects=build.effects, recorder=build.recorder)
        check = CheckPlanInput(plan=answer.value, max_tasks=limits.tasks)
        checked = await build.effects.run(WORKSPACE, Planning.check_plan, check)
        if checked.tasks:
            adopt(build, answer.value, checked)
            state.plan_reason = ""
            await build.recorder.flush(build.effects)
            return "approve_plan" if "plan" in build.admitted.consent.approve else "tasks"
        problems = checked.problems
        build.recorder.note("plan.refused", attempt=state.plans, plan=answer.value, problems=list(problems))
        await build.recorder.flush(build.effects)
    raise InvalidPlan(f"{limits.attempts} plans were not usable; the last: {problems[0]}")


def adopt(build: Build, digest: str, checked: CheckedPlan) -> None:
    """Make ``digest`` the build's plan; a task that had attempts under an earlier plan goes on counting them."""
    state = build.state
    state.used |= {name: task.attempt for name, task in state.tasks.items()}
    state.plan, build.briefs = digest, checked.tasks
    state.tasks = {task.id: TaskState(attempt=state.used.get(task.id, 0)) for task in checked.tasks}
    build.recorder.note("build.planned", plan=digest, tasks=[asdict(task) for task in checked.tasks])


async def read_briefs(build: Build) -> None:
    """The plan's tasks, which a new run does not carry."""
    if not build.briefs:
        check = CheckPlanInput(plan=build.state.plan, max_tasks=build.admitted.limits.tasks)
        build.briefs = (await build.effects.run(WORKSPACE, Planning.check_plan, check)).tasks


async def approve_plan(build: Build) -> str:
    """A person's consent to the plan, by its digest. A rejection's reason goes back into planning; raises Escalated."""
    await build.enter("approve_plan")
    state, consent = build.state, build.admitted.consent
    while "plan" not in build.request.approved:
        await read_briefs(build)
        wanted = Wanted(
            about="plan",
            sentence=f"{len(build.briefs)} tasks: " + ", ".join(task.id for task in build.briefs),
            choices=APPROVAL,
            document={},
        )
        answer = await build.decide(wanted, seconds=consent.approval_seconds, digest=state.plan)
        if answer.choice == "expired":
            raise Escalated(f"nobody approved the plan within {consent.approval_seconds:g} s")
        if answer.choice == "reject":
            state.plan_reason = f"{answer.by} rejected the plan: {answer.reason}"
            return "plan"
        if answer.choice == "approve":
            break
    return "tasks"


async def _question(build: Build, problems: tuple[str, ...]) -> Question:
    admitted = build.admitted
    render = RenderPlanInput(
        project=admitted.project,
        base=build.head.commit,
        spec=admitted.spec,
        problems=problems,
        strategy=build.state.strategy,
    )
    rendered = await build.effects.run(WORKSPACE, Prompts.render_plan_prompt, render)
    return Question(
        build=build.name,
        step="plan",
        attempt=build.state.plans,
        prompt=rendered.prompt,
        schema_name="Plan",
        chain=admitted.reasoning,
        output_tokens=admitted.limits.output_tokens,
        seconds=admitted.limits.model_seconds,
        payer=build.payer(phase="plan", role="reasoning"),
        budget=build.budget,
    )
