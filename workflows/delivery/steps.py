"""A delivery up to the person who is asked: admitted, in its lane, built, staged, tested and weighed."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

from workflows.delivery.context import Delivering, row
from workflows.faults import Stopped
from workflows.lines.gating import Kit, prepare
from workflows.policies import DEPLOY, SANDBOX, STORE, WORKSPACE, granting

with workflow.unsafe.imports_passed_through():
    from activities.delivery.admission import Admission, AdmitDeliveryInput, Assessed, AssessInput, PinCommitInput
    from activities.delivery.artifacts import Artifacts, BuildArtifactInput
    from activities.delivery.deploys import Deploys, SiteInput, StartedUnit, SwitchInput, UnitInput
    from activities.delivery.integration import Integration, RunIntegrationInput
    from activities.delivery.lanes import JoinLaneInput, Lanes
    from activities.delivery.looking import Proof
    from activities.delivery.releases import CountPastInput, FindReleaseInput, OpenReleaseInput, ReleaseBook
    from activities.repository.landing import CompensateInput
    from domain.delivery.lane import lane_id
    from domain.delivery.requests import DELIVER
    from domain.errors import Escalated, OlderRelease
    from domain.ports.releases import Release
    from domain.ports.target import PRODUCTION, STAGING
    from domain.risk.evidence import Evidence, Touched

JOIN_AGAIN = (60.0, 3600.0)
"""Seconds: how soon a delivery that hears nothing from its lane asks again, and how long that may grow to."""


async def admit(d: Delivering) -> None:
    """The project and its target are allowed; the commit is pinned; the release has a number.

    Raises UnknownName, TargetMissing, InvalidInput, RepositoryRefused.
    """
    wanted = AdmitDeliveryInput(project=d.request.project)
    d.admit(await d.effects.run(WORKSPACE, Admission.admit_delivery, wanted))
    project = d.admitted.project
    opening = OpenReleaseInput(project=project, saga=d.name)
    d.found.release = await d.effects.run(STORE, ReleaseBook.open_release, opening)
    earlier = await find(d, d.found.release)
    d.go_on_from(earlier.revision if earlier is not None else 0)
    d.found.commit = d.request.commit
    if d.request.kind == DELIVER and not d.request.build:
        undo = CompensateInput(project=project, build=d.name)
        await d.undo.register("pin", "forget_build", undo)
        pin = PinCommitInput(saga=d.name, project=project, commit=d.request.commit)
        d.found.commit = await d.effects.run(WORKSPACE, Admission.pin_commit, pin)
    d.recorder.note(
        "delivery.began",
        release=d.found.release,
        kind=d.request.kind,
        commit=d.found.commit,
        project=project,
        saga=d.name,
    )
    await d.write()


async def join(d: Delivering) -> None:
    """Wait for the project's turn. Raises OlderRelease when the lane refuses, Escalated when its turn never came."""
    await d.enter("lane")
    lane, began = lane_id(d.admitted.project, PRODUCTION), workflow.now()
    until = began + timedelta(seconds=d.admitted.consent.approval_seconds)
    d.recorder.note("lane.joined", lane=lane, position=d.lane.position)
    pause, longest = JOIN_AGAIN
    known = ""
    while not (d.lane.granted or d.lane.refused):
        heard = d.lane.heard
        await _ask_lane(d)
        left = (until - workflow.now()).total_seconds()
        if left <= 0:
            raise Escalated(f"its turn in {lane} did not come in time: {d.lane.reason or 'others are before it'}")
        await d.hear_lane(min(pause, left), after=heard)
        known = await _note_place(d, lane, known)
        pause = min(2 * pause, longest)
    if d.lane.refused:
        d.recorder.note("lane.refused", reason=d.lane.reason)
        raise OlderRelease(d.lane.reason)
    waited = round((workflow.now() - began).total_seconds(), 3)
    d.recorder.note("lane.granted", lane=lane, waited=waited)


async def _note_place(d: Delivering, lane: str, known: str) -> str:
    """Tell people why it waits whenever that is another reason than ``known``; return the reason."""
    word = d.lane
    if word.granted or word.refused or not word.position or word.reason == known:
        return known
    d.recorder.note("lane.joined", lane=lane, position=word.position, reason=word.reason)
    await d.recorder.flush(d.effects)
    return word.reason


async def _ask_lane(d: Delivering) -> None:
    request = JoinLaneInput(
        project=d.admitted.project,
        environment=PRODUCTION,
        saga=d.name,
        release=d.found.release,
        kind=d.request.kind,
        commit=d.found.commit,
        by=d.request.by,
        heartbeat=d.admitted.heartbeat,
    )
    await d.effects.run(STORE, Lanes.join_lane, request)


async def snapshot(d: Delivering) -> None:
    """What runs now: what everything is led back to when this goes wrong."""
    await d.enter("snapshot")
    found = d.found
    found.snapshot = await d.effects.run(DEPLOY, Deploys.snapshot_site, SiteInput(**d.site()))
    found.record["snapshot"] = row(found.snapshot)
    d.recorder.note("delivery.snapshot", **row(found.snapshot))
    if found.snapshot.release:
        live = await find(d, found.snapshot.release)
        found.live_commit = live.commit if live is not None else ""
    await d.write()


async def find(d: Delivering, number: int) -> Release | None:
    """A release's record."""
    finding = FindReleaseInput(project=d.admitted.project, number=number)
    return await d.effects.run(STORE, ReleaseBook.find_release, finding)


async def assess(d: Delivering) -> Assessed:
    """What the release changes. Raises OlderRelease when production has all of it already, and more."""
    assessing = AssessInput(project=d.admitted.project, old=d.found.live_commit, new=d.found.commit)
    return await d.effects.run(WORKSPACE, Admission.assess_change, assessing)


async def build(d: Delivering) -> None:
    """The artefact, named by its digest. Raises ArtifactFailed, TooLarge, IsolationMissing."""
    await d.enter("artifact")
    d.found.environment = await _set_up(d)
    building = BuildArtifactInput(
        label=f"{d.name}/artifact/1",
        project=d.admitted.project,
        commit=d.found.commit,
        allow_missing=d.request.allow_missing,
        environment=d.found.environment,
    )
    policy = granting(SANDBOX, d.admitted.test_seconds)
    built = await d.effects.run(policy, Artifacts.build_artifact, building)
    d.found.artifact = built.artifact
    d.recorder.note("artifact.built", **row(built))
    await d.write()


async def _set_up(d: Delivering) -> str:
    """The key of the commit's environment. It was landed, or a person named it: its own manifests are trusted."""
    kit = Kit(
        project=d.admitted.project,
        sets_up=d.admitted.sets_up,
        setup_seconds=d.admitted.setup_seconds,
        test_seconds=d.admitted.test_seconds,
        allow_missing=d.request.allow_missing,
    )
    prepared = await prepare(kit, d.effects, d.recorder, label=f"{d.name}/artifact/1", commit=d.found.commit)
    return prepared.key


async def stage(d: Delivering) -> None:
    """The release runs on staging, and staging's traffic goes to it, seen so from outside."""
    await d.enter("staging")
    site = SiteInput(project=d.admitted.project, environment=STAGING)
    before = await d.effects.run(DEPLOY, Deploys.snapshot_site, site)
    await d.undoing("stage", environment=STAGING)
    started = await start(d, STAGING)
    d.found.config = started.config
    await d.undoing("switch", environment=STAGING, to=before.release)
    d.found.staging_url = await lead(d, STAGING, before.release)
    d.recorder.note("release.staged", release=d.found.release, url=d.found.staging_url, seconds=started.seconds)
    await d.recorder.flush(d.effects)


async def start(d: Delivering, environment: str) -> StartedUnit:
    """Start the release beside what serves there."""
    unit = UnitInput(
        project=d.admitted.project, environment=environment, release=d.found.release, artifact=d.found.artifact
    )
    return await d.effects.run(granting(DEPLOY, d.admitted.delivery.start_seconds), Deploys.start_unit, unit)


async def lead(d: Delivering, environment: str, before: int) -> str:
    """Lead the site's traffic to the release, to its end whatever is cancelled meanwhile; return the site's address.

    Raises Stopped when what answers is not the release.
    """
    switch = SwitchInput(project=d.admitted.project, environment=environment, to=d.found.release, expected=before)
    live = await d.effects.last(DEPLOY, Deploys.switch_traffic, switch)
    proof = await prove(d, environment, d.found.release)
    if not proof.ok:
        raise Stopped(
            "ReleaseSilent", f"{environment} does not answer with release {d.found.release}: {proof.sentence}"
        )
    return live.url


async def prove(d: Delivering, environment: str, release: int) -> Proof:
    """What is seen from outside."""
    unit = UnitInput(project=d.admitted.project, environment=environment, release=release)
    return await d.effects.run(DEPLOY, Deploys.prove_live, unit)


async def integrate(d: Delivering) -> None:
    """The project's integration tests against staging, from the sandbox. Raises Stopped when they are red."""
    if not d.admitted.delivery.integration:
        return
    await d.enter("integration")
    running = RunIntegrationInput(
        label=f"{d.name}/integration/1",
        project=d.admitted.project,
        commit=d.found.commit,
        url=d.found.staging_url,
        allow_missing=d.request.allow_missing,
        environment=d.found.environment,
    )
    policy = granting(SANDBOX, d.admitted.test_seconds)
    report = await d.effects.run(policy, Integration.run_integration, running)
    d.found.record["integration"] = row(report)
    d.recorder.note("integration.ran", **row(report))
    if not report.green:
        raise Stopped("IntegrationRed", f"the integration tests against staging are red: {report.reason}")


async def gather(d: Delivering, touched: Touched) -> Evidence:
    """Everything that is weighed."""
    counting = CountPastInput(project=d.admitted.project)
    past = await d.effects.run(STORE, ReleaseBook.count_past, counting)
    return Evidence(touched=touched, made=d.request.made, past=past)
