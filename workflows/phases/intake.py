"""Intake: the project from the allowlist, its base pinned, set up and measured; or a snapshot of an earlier build."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.context import Build
from workflows.faults import Stopped, last_fault
from workflows.lines.gating import SET_UP_FAILED, Kit, prepare
from workflows.policies import SANDBOX, WORKSPACE, granting
from workflows.resume.restoring import restore
from workflows.state import Head

with workflow.unsafe.imports_passed_through():
    from activities.gates import BaseReport, Gates, MeasureBaseInput
    from activities.intake import AdmitBuildInput, FetchBaseInput, Intake
    from activities.repository.landing import CompensateInput
    from domain.build.requests import title_of
    from domain.errors import BaseIsRed, InvalidInput


async def intake(build: Build) -> str:
    """Admit the build, fetch its base, set it up and measure what its own tests do. Raises BaseIsRed.

    A build that goes on from a snapshot has all that already.
    """
    build.state.started = build.state.started or int(workflow.now().timestamp())
    request = build.request
    build.recorder.note(
        "build.started",
        project=request.project,
        title=title_of(request),
        user=request.user,
        resume=request.resume,
        allow_missing=list(request.allow_missing),
        approved=list(request.approved),
        unattended=request.unattended,
    )
    if request.resume:
        return await restore(build)
    if request.models:
        raise InvalidInput("models can only be replaced where a build goes on from a snapshot (resume)")
    build.state.strategy = request.strategy
    await _admit(build)
    commit = await _fetch(build)
    await build.enter("base")
    report = await _measure(build, commit, await _set_up(build, commit))
    build.recorder.note("build.base", commit=commit, **asdict(report))
    if not report.usable:
        raise BaseIsRed(f"the project's own tests cannot be built on ({commit[:12]}): {report.reason}")
    build.state.base = build.state.head = Head(commit=commit, ran=report.ran, baseline=report.baseline)
    build.state.gates = {"green": report.green, "reason": report.reason, "ran": report.ran}
    return "plan"


async def _admit(build: Build) -> None:
    request = build.request
    asked = AdmitBuildInput(build=build.name, project=request.project, spec=request.spec)
    admitted = await build.effects.run(WORKSPACE, Intake.admit_build, asked)
    build.state.admitted = admitted
    build.effects.beat_every(timedelta(seconds=admitted.heartbeat))
    build.recorder.note("build.admitted", project=admitted.project, spec=admitted.spec)
    build.introduce()
    await build.enter("intake")


async def _fetch(build: Build) -> str:
    here = CompensateInput(project=build.admitted.project, build=build.name)
    await build.undo.register("fetch", "forget_build", here)
    await build.undo.register("places", "release_build", here)
    fetch = FetchBaseInput(build=build.name, project=build.admitted.project)
    return await build.effects.run(WORKSPACE, Intake.fetch_base, fetch)


async def _set_up(build: Build, commit: str) -> str:
    """The key of the base's environment. What its own manifests name is trusted: it is the user's."""
    label = f"{build.name}/base/1"
    try:
        prepared = await prepare(Kit.of(build), build.effects, build.recorder, label=label, commit=commit)
    except ActivityError as error:
        fault = last_fault(error)
        if fault.kind not in SET_UP_FAILED:
            raise
        raise Stopped(fault.kind, f"the base's dependencies ({commit[:12]}): {fault.sentence}") from error
    return prepared.key


async def _measure(build: Build, commit: str, environment: str) -> BaseReport:
    request = MeasureBaseInput(
        label=f"{build.name}/base/1",
        project=build.admitted.project,
        commit=commit,
        environment=environment,
        allow_missing=build.request.allow_missing,
    )
    policy = granting(SANDBOX, 2 * build.admitted.limits.test_seconds)
    return await build.effects.run(policy, Gates.measure_base, request, summary="the base's own tests, twice")
