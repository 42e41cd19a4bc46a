"""Review of the merged change by a model that did not write it: high findings go back to their task, then a person."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.asking import Question, ask
from workflows.context import Build, Wanted
from workflows.faults import last_fault
from workflows.policies import WORKSPACE

with workflow.unsafe.imports_passed_through():
    from activities.models import CalledModel
    from activities.prompts import Prompts, RenderReviewInput
    from activities.reviewing import CheckedReview, CheckReviewInput, FoundHigh, Reviewing
    from domain.errors import Aborted, MendworkError
    from domain.flow.board import MERGED, WAITING
    from domain.human.asks import UNSURE
    from domain.human.raising import Raised
    from domain.recovery.fault import Fault


async def review(build: Build) -> str:
    """The next phase: back to the tasks, a person's decision, or on to the approval."""
    await build.enter("review")
    if "review:" in build.state.asked:  # an earlier run asked; the answer is still to come
        return await _decide(build, build.state.note)
    try:
        called, checked = await _reviewed(build)
    except (ActivityError, MendworkError) as error:
        build.effects.heed_cancellation()
        fault = last_fault(error)
        if fault.kind == "Overbilled":
            raise
        return await _unreviewed(build, fault)
    _note(build, called, checked)
    await build.recorder.flush(build.effects)
    if not checked.high:
        return "approve"
    if build.state.review_rounds < build.admitted.limits.sent_back:
        build.state.review_rounds += 1
        for found in checked.high:
            _send_back(build, found)
        return "tasks"
    sentences = "; ".join(f"{found.task}: {found.sentence}" for found in checked.high)
    return await _decide(build, f"the review still finds what is serious: {sentences}"[:500])


async def _reviewed(build: Build) -> tuple[CalledModel, CheckedReview]:
    admitted, state = build.admitted, build.state
    state.reviews += 1
    merged = tuple(_merged(build))
    render = RenderReviewInput(
        project=admitted.project,
        base=build.base.commit,
        commit=build.head.commit,
        spec=admitted.spec,
        plan=state.plan,
        tasks=merged,
    )
    rendered = await build.effects.run(WORKSPACE, Prompts.render_review_prompt, render)
    question = Question(
        build=build.name,
        step="review",
        attempt=state.reviews,
        prompt=rendered.prompt,
        schema_name="Review",
        chain=_reviewers(build),
        output_tokens=admitted.limits.output_tokens,
        seconds=admitted.limits.model_seconds,
        payer=build.payer(phase="review", role="validation"),
        budget=build.budget,
    )
    called = await ask(question, effects=build.effects, recorder=build.recorder)
    check = CheckReviewInput(review=called.value, tasks=merged, plan=state.plan, diff=rendered.diff)
    return called, await build.effects.run(WORKSPACE, Reviewing.check_review, check)


def _reviewers(build: Build) -> tuple[str, ...]:
    """The chain, with those who wrote nothing of the change first."""
    authors = build.state.authors
    chain = build.admitted.validation or build.admitted.reasoning
    return (*(m for m in chain if m not in authors), *(m for m in chain if m in authors))


def _merged(build: Build) -> list[str]:
    return [name for name, state in build.state.tasks.items() if state.status == MERGED]


def _note(build: Build, called: CalledModel, checked: CheckedReview) -> None:
    found: dict[str, Any] = {
        "findings": checked.findings,
        "high": sum(group.count for group in checked.high),
        "medium": checked.medium,
        "low": checked.low,
        "weak": called.model in build.state.authors,
        "model": called.model,
        "round": build.state.reviews,
    }
    build.state.findings = found
    build.recorder.note("review.ended", **found)


def _send_back(build: Build, found: FoundHigh) -> None:
    state = build.state.tasks[found.task]
    state.status, state.report, state.change = WAITING, found.report, ""
    state.reason = f"the review of the merged change found: {found.sentence}"
    build.recorder.note(
        "task.sent_back",
        task=found.task,
        why="finding",
        times=build.state.review_rounds,
        sentence=found.sentence,
        report=found.report,
    )


async def _unreviewed(build: Build, fault: Fault) -> str:
    return await _decide(build, f"the change could not be reviewed: {fault.sentence}")


async def _decide(build: Build, sentence: str) -> str:
    """Retry reviews again, skip goes on with what was found: the approval shows it."""
    build.state.note = sentence
    wanted = Wanted(
        about="review",
        sentence=sentence,
        choices=UNSURE,
        document={"findings": build.state.findings, "spent": asdict(await build.spent())},
    )
    answer = await build.question(wanted)
    build.state.note = ""
    if answer.choice == "abort":
        raise Aborted(f"{answer.by} ended the build at its review: {answer.reason or 'no reason given'}")
    if answer.choice in ("retry", "raise"):
        build.raise_limits(Raised.of(answer))
        return "review"
    build.state.findings = {**build.state.findings, "left": sentence, "by": answer.by}
    return "approve"
