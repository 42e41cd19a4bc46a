"""Intake: the project from the allowlist, its base pinned and measured."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from temporalio import workflow

from workflows.context import Build
from workflows.policies import SANDBOX, WORKSPACE, granting
from workflows.state import Head

with workflow.unsafe.imports_passed_through():
    from activities.gates import Gates, RunGatesInput
    from activities.intake import AdmitBuildInput, FetchBaseInput, Intake
    from activities.repository.landing import CompensateInput
    from domain.build.requests import title_of
    from domain.errors import BaseIsRed


async def intake(build: Build) -> str:
    """Admit the build, fetch its base and run the base's own tests. Raises BaseIsRed."""
    await _admit(build)
    commit = await _fetch(build)
    await build.enter("base")
    gates = RunGatesInput(
        label=f"{build.name}/base/1",
        project=build.admitted.project,
        commit=commit,
        allow_missing=build.request.allow_missing,
    )
    policy = granting(SANDBOX, build.admitted.limits.test_seconds)
    report = await build.effects.run(policy, Gates.run_gates, gates, summary="the base's own tests")
    build.recorder.note("build.base", commit=commit, **asdict(report))
    if not report.green:
        raise BaseIsRed(f"the project's own tests are red before any change ({commit[:12]}): {report.reason}")
    build.state.base = build.state.head = Head(commit=commit, ran=report.ran)
    build.state.gates = {"green": True, "reason": report.reason, "ran": report.ran}
    return "plan"


async def _admit(build: Build) -> None:
    request = build.request
    build.recorder.note("build.started", project=request.project, title=title_of(request), user=request.user)
    asked = AdmitBuildInput(build=build.name, project=request.project, spec=request.spec)
    admitted = await build.effects.run(WORKSPACE, Intake.admit_build, asked)
    build.state.admitted = admitted
    build.effects.beat_every(timedelta(seconds=admitted.heartbeat))
    build.recorder.note("build.admitted", project=admitted.project, spec=admitted.spec)
    await build.enter("intake")


async def _fetch(build: Build) -> str:
    here = CompensateInput(project=build.admitted.project, build=build.name)
    await build.undo.register("fetch", "forget_build", here)
    await build.undo.register("places", "release_build", here)
    fetch = FetchBaseInput(build=build.name, project=build.admitted.project)
    return await build.effects.run(WORKSPACE, Intake.fetch_base, fetch)
