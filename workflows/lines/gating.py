"""Judging commits: what they need is set up first, and a person allows what nobody has heard of."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.context import Build
from workflows.faults import last_fault
from workflows.policies import SANDBOX, Effects, granting
from workflows.recorder import Recorder
from workflows.state import Head

with workflow.unsafe.imports_passed_through():
    from activities.gates import GateReport, Gates, RunGatesInput
    from activities.sandboxed.environments import Environments, Prepared, PrepareInput

SET_UP_FAILED = ("SetupFailed",)
"""What is wrong with the change, not with the machine: its writer is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What every set-up and every gate of one saga is told; seconds. ``trusted`` is the commit whose manifests nobody
    has to allow."""

    project: str
    sets_up: bool
    setup_seconds: float
    test_seconds: float
    trusted: str = ""
    packages: tuple[str, ...] = ()
    allow_missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, build: Build) -> Kit:
        """As the build has it now."""
        admitted = build.admitted
        return cls(
            project=admitted.project,
            sets_up=admitted.sets_up,
            setup_seconds=admitted.limits.setup_seconds,
            test_seconds=admitted.limits.test_seconds,
            trusted=build.state.base.commit if build.state.base else "",
            packages=build.state.packages,
            allow_missing=build.request.allow_missing,
        )


async def prepare(kit: Kit, effects: Effects, recorder: Recorder, *, label: str, commit: str) -> Prepared:
    """The environment of ``commit``; an empty one where the project sets nothing up. Raises ActivityError."""
    if not kit.sets_up:
        return Prepared(key="")
    request = PrepareInput(
        label=f"{label}/setup",
        project=kit.project,
        commit=commit,
        base=kit.trusted,
        allowed=kit.packages,
        allow_missing=kit.allow_missing,
    )
    policy = granting(SANDBOX, kit.setup_seconds)
    prepared = await effects.run(policy, Environments.prepare_environment, request, summary="dependencies")
    if prepared.unknown:
        recorder.note("packages.unknown", commit=commit, names=list(prepared.unknown[:20]))
    elif prepared.built:
        recorder.note(
            "environment.built",
            key=prepared.key,
            commit=commit,
            seconds=prepared.seconds,
            bytes=prepared.bytes,
            log=prepared.log,
        )
    return prepared


async def gate(build: Build, *, commit: str, label: str, before: Head | None) -> GateReport:
    """The project's tests on a commit that nobody wrote as it is, beside those of ``before`` (None: no comparison)."""
    kit = Kit.of(build)
    try:
        prepared = await prepare(kit, build.effects, build.recorder, label=label, commit=commit)
    except ActivityError as error:
        fault = last_fault(error)
        if fault.kind not in SET_UP_FAILED:
            raise
        return red(fault.sentence)
    if prepared.unknown:
        return red(unknown(prepared.unknown))
    gates = RunGatesInput(
        label=label,
        project=kit.project,
        commit=commit,
        base_ran=before.ran if before else None,
        baseline=before.baseline if before else "",
        environment=prepared.key,
        allow_missing=kit.allow_missing,
    )
    policy = granting(SANDBOX, kit.test_seconds)
    return await build.effects.run(policy, Gates.run_gates, gates, summary="the merged tree's tests")


def red(sentence: str) -> GateReport:
    """A verdict on what could not even be tested."""
    return GateReport(green=False, reason=sentence, ran=0, log="", report="", seconds=0.0)


def unknown(names: tuple[str, ...]) -> str:
    """What a person is asked about packages that nobody knows."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    listed = ", ".join(names[:10])
    return f"it wants packages installed that no manifest of before and no list of known ones has: {listed}{more}"
