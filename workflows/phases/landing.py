"""Landing: the result on a branch of its own, and on the project's branch where the project says so."""

from __future__ import annotations

from dataclasses import asdict

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.context import Build, Wanted
from workflows.faults import last_fault
from workflows.lines.gating import gate
from workflows.lines.merging import rebase
from workflows.phases.approval import weighed
from workflows.policies import WORKSPACE
from workflows.state import Head

with workflow.unsafe.imports_passed_through():
    from activities.repository.landing import CompensateInput, ForwardInput, Landings, LandInput
    from activities.repository.merging import FetchTargetInput, Merging
    from domain.errors import Aborted
    from domain.human.asks import Answer
    from domain.risk.matrix import DRAFT

UNLANDED = ("retry", "skip", "abort")
MOVED = "moved"
MOST_MOVES = 5
"""How often the target may move while the result is gated before a person is asked."""


async def land(build: Build) -> str:
    """Land the head. Raises BranchTaken, RepositoryRefused, Aborted."""
    await build.enter("landing")
    draft = weighed(build, DRAFT)
    if build.admitted.consent.land == "target" and draft and not _consented(build):
        _left(build, f"a draft, left on its own branch for a review: {draft}")
    elif build.admitted.consent.land == "target":
        await _onto_target(build)
    await _branch(build)
    return "deliver" if build.admitted.delivers and build.request.deliver else "done"


def _consented(build: Build) -> bool:
    """Whether a person said yes to the change, when it was shown or beforehand."""
    return build.state.approved or "change" in build.request.approved


async def _branch(build: Build) -> None:
    state, commit = build.state, build.head.commit
    state.landings += 1
    undo = CompensateInput(project=build.admitted.project, build=build.name, commit=commit)
    await build.undo.register("land", "retract_result", undo, number=state.landings)
    land = LandInput(project=build.admitted.project, build=build.name, base=build.base.commit, commit=commit)
    landed = await build.effects.run(WORKSPACE, Landings.land_result, land)
    state.branch, state.diff = landed.branch, landed.diff


async def _onto_target(build: Build) -> None:
    """Bring the head on top of the target as it is now, and the target to the head.

    While the target keeps moving this goes on; what conflicts or is red is for a person, who may leave the result on
    its own branch.
    """
    for _ in range(MOST_MOVES):
        problem = await _caught_up(build) or await _forward(build)
        if not problem:
            return
        if problem != MOVED and not await _ask(build, problem):
            return
    _left(build, f"the target branch moved {MOST_MOVES} times while the result was tested")


async def _caught_up(build: Build) -> str:
    """ "" when the head descends from the target, else what is in the way."""
    fetch = FetchTargetInput(project=build.admitted.project, build=build.name)
    target = await build.effects.run(WORKSPACE, Merging.fetch_target, fetch)
    if target == build.base.commit:
        return ""
    rebased = await rebase(build, onto=target, base=build.base.commit, head=build.head.commit)
    build.recorder.note("merge.tried", onto=target, **asdict(rebased))
    if rebased.conflicts:
        return f"the target branch has moved and conflicts in {', '.join(rebased.conflicts[:5])}"
    build.state.landings += 1
    label = f"{build.name}/landing/{build.state.landings}"
    report = await gate(build, commit=rebased.commit, label=label, before=None)
    build.recorder.note("gates.ran", label="landing", **asdict(report))
    if not report.green:
        return f"on top of the target branch, which has moved, the tests are red: {report.reason}"
    build.state.base = Head(commit=target, ran=build.base.ran, baseline=build.base.baseline)
    build.state.head = Head(commit=rebased.commit, ran=report.ran, baseline=report.baseline)
    return ""


async def _ask(build: Build, problem: str) -> bool:
    """Whether to try again."""
    wanted = Wanted(about="landing", sentence=problem, choices=UNLANDED, document={"head": build.head.commit})
    answer: Answer = await build.question(wanted)
    if answer.choice == "abort":
        raise Aborted(f"{answer.by} ended the build at its landing: {answer.reason or 'no reason given'}")
    if answer.choice == "skip":
        _left(build, f"{problem}; the result is on its own branch")
    return answer.choice == "retry"


async def _forward(build: Build) -> str:
    """ "" when the target is at the head, or stays where it is for good; MOVED when it was overtaken.

    The branch moves only forwards, and only from where the head started.
    """
    old, new = build.base.commit, build.head.commit
    build.state.landings += 1
    undo = CompensateInput(project=build.admitted.project, build=build.name, commit=new, old=old)
    await build.undo.register("forward", "rewind_target", undo, number=build.state.landings)
    forward = ForwardInput(project=build.admitted.project, build=build.name, old=old, new=new)
    try:
        await build.effects.run(WORKSPACE, Landings.forward_target, forward)
    except ActivityError as error:
        fault = last_fault(error)
        if fault.kind == "Overtaken":
            return MOVED
        if fault.kind != "RepositoryRefused":
            raise
        _left(build, f"the target branch was left as it is: {fault.sentence}")
        return ""
    build.recorder.note("target.forwarded", old=old, new=new)
    return ""


def _left(build: Build, sentence: str) -> None:
    build.state.note = sentence
    build.recorder.note("target.left", sentence=sentence[:300])
