"""A build that goes on from a snapshot of another: its state as a value, its commits under a new name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from temporalio import workflow

from workflows.context import Build
from workflows.policies import STORE, WORKSPACE
from workflows.state import BuildState

with workflow.unsafe.imports_passed_through():
    from activities.repository.landing import CompensateInput
    from activities.repository.snapshots import (
        FindSnapshotInput,
        FoundSnapshot,
        RestoreSnapshotInput,
        SnapshotBook,
        Snapshots,
    )

OWN = ("book", "asked", "undo", "paused", "snapshots")
"""What belongs to this build alone, whatever a snapshot says."""


async def restore(build: Build) -> str:
    """The phase that the snapshot was taken before. Raises InvalidInput for a token that stands for nothing."""
    request = build.request
    find = FindSnapshotInput(token=request.resume, fork=request.fork)
    found = await build.effects.run(STORE, SnapshotBook.find_snapshot, find)
    here = CompensateInput(project=found.project, build=build.name)
    await build.undo.register("fetch", "forget_build", here)
    await build.undo.register("places", "release_build", here)
    _take(build.state, await _restored(build, found))
    state, admitted = build.state, build.admitted
    state.parent, state.carried_micros, state.carried_calls = found.token, found.spent, found.calls
    state.strategy = request.strategy or state.strategy
    build.effects.beat_every(timedelta(seconds=admitted.heartbeat))
    build.recorder.note("build.admitted", project=admitted.project, spec=admitted.spec)
    build.introduce()
    build.recorder.note(
        "build.restored",
        token=found.token,
        parent=found.build,
        phase=found.phase,
        head=found.head,
        base=found.base,
        plan=state.plan,
        tasks=[{"id": name, "status": task.status, "commit": task.commit} for name, task in state.tasks.items()],
        spent=found.spent,
        calls=found.calls,
    )
    await build.recorder.flush(build.effects)
    return found.phase


async def _restored(build: Build, found: FoundSnapshot) -> Mapping[str, Any]:
    restore = RestoreSnapshotInput(
        project=found.project,
        build=build.name,
        state=found.state,
        base=found.base,
        head=found.head,
        models=build.request.models,
    )
    return await build.effects.run(WORKSPACE, Snapshots.restore_snapshot, restore)


def _take(state: BuildState, carried: Mapping[str, Any]) -> None:
    """Everything of the snapshot but what is this build's own, decoded as the next run of a build decodes it."""
    converter = workflow.payload_converter()
    decoded: BuildState = converter.from_payloads(converter.to_payloads([dict(carried)]), [BuildState])[0]
    for field in fields(BuildState):
        if field.name not in OWN:
            setattr(state, field.name, getattr(decoded, field.name))
