"""Production: beside the old release, then under its traffic, watched, and back when it is bad."""

from __future__ import annotations

import contextlib
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError

from workflows.delivery.approving import approve_final
from workflows.delivery.context import Delivering
from workflows.delivery.steps import find, lead, start
from workflows.delivery.watch import KpiWatch
from workflows.faults import Stopped, last_fault
from workflows.policies import DEPLOY, RESTORE, granting

with workflow.unsafe.imports_passed_through():
    from activities.delivery.deploys import Deploys, PruneInput, RunStepInput, UnitInput
    from activities.repository.landing import CompensateInput
    from domain.delivery.requests import watch_id
    from domain.delivery.steps import COMPENSATABLE, REVERSIBLE
    from domain.errors import InvalidInput, ReleaseMissing
    from domain.human.asks import WATCH
    from domain.kpi.watching import WatchOutcome, WatchRequest
    from domain.ports.target import PRODUCTION

SWITCH = "switch_traffic"
NOT_SWITCHED = ("PortTaken", "Overtaken", "ReleaseMissing", "ReleaseDied", "ReleaseSilent")
"""A switch that failed so has not touched traffic: nothing is rolled back then, and no lane is frozen."""

MOST_PRUNED = 50
"""How many numbers back old releases are looked for: each promotion does, so none gets further away than that."""


async def run_beside(d: Delivering) -> None:
    """Start the release beside what serves, and run the project's own steps in it. Raises Stopped when one fails."""
    await d.enter("production")
    await d.undoing("start", environment=PRODUCTION)
    started = await start(d, PRODUCTION)
    d.found.unit_url = started.url
    d.recorder.note("release.started", release=d.found.release, url=started.url, seconds=started.seconds)
    for step in d.admitted.delivery.steps:
        await approve_final(d, step)
        if step.kind in (REVERSIBLE, COMPENSATABLE):
            await d.undoing(step.name, environment=PRODUCTION, name=step.name)
        key = f"{d.name}/{step.name}"
        running = RunStepInput(project=d.admitted.project, release=d.found.release, name=step.name, key=key)
        report = await d.effects.run(granting(DEPLOY, d.admitted.delivery.start_seconds), Deploys.run_step, running)
        entry: dict[str, Any] = {
            "name": step.name,
            "kind": step.kind,
            "green": report.green,
            "sentence": report.sentence,
        }
        d.found.record.setdefault("steps", []).append(entry)
        d.recorder.note("step.ran", **entry)
        if not report.green:
            raise Stopped("StepFailed", f"step {step.name!r} failed: {report.sentence}")


async def switch(d: Delivering) -> None:
    """The one moment that users notice. It is never cancelled: it is undone."""
    await d.enter("switch")
    d.effects.heed_cancellation()
    before = d.found.snapshot.release
    await d.undoing("switch", environment=PRODUCTION, to=before)
    d.found.switching = True
    began = workflow.now()
    try:
        url = await lead(d, PRODUCTION, before)
    except ActivityError as error:
        d.found.switching = error.activity_type != SWITCH or last_fault(error).kind not in NOT_SWITCHED
        raise
    d.recorder.note(
        "release.switched",
        release=d.found.release,
        previous=before,
        artifact=d.found.artifact,
        url=url,
        seconds=round((workflow.now() - began).total_seconds(), 3),
    )
    await d.write()


async def watch(d: Delivering) -> None:
    """Until the verdict. Raises Stopped when the release has to go back."""
    await d.enter("watch")
    outcome = await _watched(d)
    d.found.record["watch"] = {"kind": outcome.kind, "reason": outcome.reason, "series": list(outcome.series)}
    if outcome.kind != "pass":
        by = f"{outcome.by}: " if outcome.by else ""
        raise Stopped("KpiBreach" if outcome.kind == "fail" else "WatchEnded", f"{by}{outcome.reason}"[:300])
    if d.wanted_back:  # said after the last look, before anybody heard of its verdict: who was told yes counts
        raise Stopped("WatchEnded", d.wanted_back[:300])


async def _watched(d: Delivering) -> WatchOutcome:
    delivery, found = d.admitted.delivery, d.found
    request = WatchRequest(
        case=d.case,
        project=d.admitted.project,
        release=found.release,
        candidate=found.unit_url,
        baseline=await _baseline(d),
        health=delivery.health,
        policy=delivery.watch,
        heartbeat=d.admitted.heartbeat,
    )
    child = await workflow.start_child_workflow(
        KpiWatch.run,
        request,
        id=watch_id(d.name),
        cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        static_summary=f"watch release {found.release} of {d.admitted.project}",
    )
    while not child.done():
        await workflow.wait_condition(lambda: child.done() or bool(d.undecided) or bool(d.wanted_back))
        if d.wanted_back and not child.done():
            await _tell(child, "stop", {"by": d.wanted_back})
            break
        if d.undecided and not child.done():
            await _ask(d, child)
    return await child


async def _ask(d: Delivering, child: workflow.ChildWorkflowHandle[KpiWatch, WatchOutcome]) -> None:
    """The verdict is a person's; measuring goes on meanwhile, and a breach ends the question."""
    undecided, d.undecided = d.undecided, {}
    sentence = f"release {d.found.release} serves, and its watch cannot tell: {undecided.get('reason', '')}"
    digest = (await d.pack({"about": "watch", "release": d.found.release, **undecided})).digest
    if d.request.unattended:
        await _tell(child, "decided", {"choice": "roll back", "by": "nobody: unattended"})
        return
    answer = await d.desk.ask(
        d.asking("watch", sentence, WATCH, digest), unless=lambda: child.done() or bool(d.wanted_back)
    )
    d.attributes.tell(NeedsApproval=False)
    if answer is None:
        return
    choice = {"promote": "promote", "extend": "extend"}.get(answer.choice, "roll back")
    by = answer.by if answer.choice != "expired" else "nobody: not answered in time"
    await _tell(child, "decided", {"choice": choice, "by": by})


async def _tell(child: workflow.ChildWorkflowHandle[KpiWatch, WatchOutcome], name: str, word: dict[str, str]) -> None:
    """To a watch that may have ended a moment ago, of which this saga hears next."""
    with contextlib.suppress(FailureError):
        await child.signal(name, word)


async def _baseline(d: Delivering) -> str:
    """The old release's own address: it stays up beside the new one."""
    if not d.found.snapshot.release:
        return ""
    unit = UnitInput(project=d.admitted.project, environment=PRODUCTION, release=d.found.snapshot.release)
    return await d.effects.run(DEPLOY, Deploys.find_unit, unit)


async def prune(d: Delivering) -> None:
    """Old releases that nobody goes back to any more go; what cannot be removed now is removed next time."""
    live = d.found.release
    pruning = PruneInput(project=d.admitted.project, live=live, known=tuple(range(max(1, live - MOST_PRUNED), live)))
    await d.effects.run(DEPLOY, Deploys.prune_units, pruning)


async def go_back(d: Delivering) -> None:
    """A rollback that a person asked for, after the release's own saga has ended.

    Raises InvalidInput when the release does not serve, ReleaseMissing when there is nothing to go back to.
    """
    release, to, live = d.request.release, d.request.to, d.found.snapshot.release
    if live != release:
        raise InvalidInput(f"release {release} does not serve production of {d.admitted.project}: release {live} does")
    if not to:
        to = await _before(d, release)
    await d.enter("rollback")
    undo = CompensateInput(project=d.admitted.project, build=d.name, environment=PRODUCTION, release=to, to=release)
    await d.undo.register("back", "restore_traffic", undo)
    d.found.switching = True
    back = CompensateInput(project=d.admitted.project, build=d.name, environment=PRODUCTION, release=release, to=to)
    if not await d.effects.last(RESTORE, Deploys.restore_traffic, back):
        raise Stopped("ReleaseSilent", f"production does not answer with release {to}")
    proof = {"release": to, "ok": True}
    d.found.record["proof"] = proof
    reason = f"{d.request.by or 'somebody'}: {d.request.reason or 'no reason given'}"
    d.recorder.note("release.rolled_back", release=release, to=to, proof=proof, reason=reason[:300])


async def _before(d: Delivering, release: int) -> int:
    found = await find(d, release)
    if found is None or not found.previous:
        raise ReleaseMissing(f"release {release} replaced no other: name one with --to")
    return found.previous
