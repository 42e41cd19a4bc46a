"""Snapshots: what a build carries is kept after every phase, and now and then while its tasks are merged."""

from __future__ import annotations

import math

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.context import Build
from workflows.faults import last_fault
from workflows.policies import WORKSPACE
from workflows.state import carried

with workflow.unsafe.imports_passed_through():
    from activities.repository.snapshots import PinSnapshotInput, Snapshots
    from domain.flow.board import MERGED
    from domain.replay.snapshots import token_of

MOST_AMONG_TASKS = 10
"""A plan's tasks are snapshots so often at most: what a build carries grows with its tasks, and its history may not."""


async def snapshot(build: Build, *, after: str) -> None:
    """Keep the state as it is now. A snapshot that cannot be had is a row in the log, and holds up nothing."""
    state = build.state
    state.snapshots += 1
    number = state.snapshots
    spent = await build.spent()
    kept, base, head = carried(state), build.base.commit, build.head.commit  # others merge, and snapshot, meanwhile
    pin = PinSnapshotInput(
        project=build.admitted.project, build=build.name, number=number, state=kept, commits=(base, head)
    )
    try:
        digest = await build.effects.run(WORKSPACE, Snapshots.pin_snapshot, pin, summary=f"a snapshot after {after}")
    except ActivityError as error:
        sentence = last_fault(error).sentence[:300]
        build.recorder.note("snapshot.skipped", number=number, after=after, sentence=sentence)
        return
    build.recorder.note(
        "snapshot.taken",
        token=token_of(build.name, number),
        number=number,
        after=after,
        phase=kept["phase"],
        state=digest,
        base=base,
        head=head,
        plan=kept["plan"],
        spent=spent.lasting + state.carried_micros,
        calls=spent.calls + state.carried_calls,
    )


async def snapshot_among_tasks(build: Build) -> None:
    """After a merge, where enough of the plan has been merged since the last one."""
    states = build.state.tasks.values()
    merged = sum(task.status == MERGED for task in states)
    if merged < len(states) and merged % math.ceil(len(states) / MOST_AMONG_TASKS) == 0:
        await snapshot(build, after="tasks")
