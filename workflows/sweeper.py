"""Undoing builds that were terminated: a termination skips the saga's own compensation by nature.

A schedule starts ``Sweeper`` again and again; it starts one ``SweepBuild`` for each orphan, whose id lets only one of
them run for a build, however many sweepers there are.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, WorkflowAlreadyStartedError

from workflows.compensation import ACTIONS, close, compensate
from workflows.faults import failure, last_fault
from workflows.policies import STORE, Effects
from workflows.recorder import Recorder
from workflows.state import Undo

with workflow.unsafe.imports_passed_through():
    from activities.delivery.releases import RecordReleaseInput, ReleaseBook
    from activities.repository.landing import CompensateInput
    from activities.sweeping import ExamineBuildInput, ExpireHoldsInput, FindOrphansInput, OpenUndo, Orphan, Sweeping
    from domain.build.requests import decode
    from domain.errors import MendworkError
    from domain.ports.releases import ROLLED_BACK, UNCLEAR, UNDELIVERED, Release
    from domain.ports.sagas import sweep_id
    from domain.ports.target import PRODUCTION


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """Seconds. ``settle`` is how long a stopped build is left to its last activities, which have to notice that nobody
    waits for them; ``hold`` how long the money of a lost call is held before it is written off."""

    heartbeat: float = 5.0
    settle: float = 15.0
    hold: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBuildRequest:
    """``settle`` and ``heartbeat`` as in SweepRequest."""

    build: str
    heartbeat: float = 5.0
    settle: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """``builds`` are those whose undoing was started, ``expired`` how many holds were written off."""

    builds: tuple[str, ...]
    expired: int


@workflow.defn(failure_exception_types=[MendworkError])
class Sweeper:
    """One look. It waits for nothing that it starts: a build that cannot be undone now holds up no other."""

    @workflow.run
    async def run(self, request: Any = None) -> Swept:
        """Takes a SweepRequest as plain JSON."""
        wanted = decode(SweepRequest, {} if request is None else request)
        effects = Effects(heartbeat=timedelta(seconds=wanted.heartbeat))
        orphans = await effects.run(STORE, Sweeping.find_orphans, FindOrphansInput())
        started = [build for build in orphans if await self._start(build, wanted)]
        before = int((workflow.now().timestamp() - wanted.hold) * 1000)
        expired = await effects.run(STORE, Sweeping.expire_holds, ExpireHoldsInput(before=before))
        return Swept(builds=tuple(started), expired=expired)

    async def _start(self, build: str, wanted: SweepRequest) -> bool:
        request = SweepBuildRequest(build=build, heartbeat=wanted.heartbeat, settle=wanted.settle)
        try:
            await workflow.start_child_workflow(
                SweepBuild.run,
                asdict(request),
                id=sweep_id(build),
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                static_summary=f"undo {build}",
            )
        except WorkflowAlreadyStartedError:
            return False
        return True


@workflow.defn(failure_exception_types=[MendworkError])
class SweepBuild:
    """Undo one stopped build as its own saga would have, newest step first, and end it in the log."""

    @workflow.run
    async def run(self, request: Any = None) -> tuple[str, ...]:
        """Takes a SweepBuildRequest as plain JSON; returns a sentence for each step that could not be undone."""
        wanted = decode(SweepBuildRequest, request)
        self._effects = Effects(heartbeat=timedelta(seconds=wanted.heartbeat))
        await workflow.sleep(timedelta(seconds=wanted.settle))
        try:
            orphan = await self._effects.run(STORE, Sweeping.examine_build, ExamineBuildInput(build=wanted.build))
        except ActivityError as error:
            raise failure(last_fault(error)) from error
        if not orphan.how:
            return ()
        self._effects.shield()
        left = [sentence for record in orphan.undo for sentence in await self._undo(record)]
        if orphan.release is not None:
            await self._end_delivery(orphan, orphan.release, left)
        elif orphan.listed:
            await self._end(orphan, left)
        return tuple(left)

    async def _undo(self, record: OpenUndo) -> list[str]:
        try:
            undo = Undo(key=record.key, action=record.action, request=decode(CompensateInput, record.data))
        except MendworkError as error:
            return await self._give_up(record, str(error))
        if record.action not in ACTIONS:
            return await self._give_up(record, "this version does not know how")
        return await compensate(self._effects, undo)

    async def _give_up(self, record: OpenUndo, why: str) -> list[str]:
        undo = Undo(key=record.key, action=record.action, request=CompensateInput(project="", build=""))
        await close(self._effects, undo, f"failed: {record.action}: {why}")
        return [f"{record.action}: {why}"]

    async def _end_delivery(self, orphan: Orphan, release: Release, left: list[str]) -> None:
        """In the log of its case, and in the record of releases; its lane finds out by its lease, and freezes."""
        switched = any(u.action == "restore_traffic" and u.data.get("environment") == PRODUCTION for u in orphan.undo)
        status = UNCLEAR if left else ROLLED_BACK if switched else UNDELIVERED
        sentence = f"its delivery {orphan.how}; " + ("; ".join(left) or "what it had not made final is undone")
        recorder = Recorder(build=release.build or orphan.build)
        recorder.note(
            "delivery.ended",
            status=status,
            sentence=sentence[:1_000],
            release=release.number,
            residues=left,
            fault="Aborted",
        )
        await recorder.flush(self._effects)
        now = int(workflow.now().timestamp() * 1000)
        ended = replace(release, revision=release.revision + 1, status=status, ended=now, sentence=sentence[:1_000])
        await self._effects.run(STORE, ReleaseBook.record_release, RecordReleaseInput(release=ended))

    async def _end(self, orphan: Orphan, left: list[str]) -> None:
        recorder, why = Recorder(build=orphan.build), f"the build {orphan.how}"
        sentence = f"it {orphan.how}; "
        sentence += "could not be undone: " + "; ".join(left) if left else "what it had not made final is undone"
        for ask in orphan.asks:
            recorder.note(
                "ask.closed", task=ask.task, id=ask.id, about=ask.about, choice="superseded", by="", reason=why
            )
        for task in orphan.tasks:
            recorder.note("task.ended", task=task.id, attempt=task.attempt, status="aborted", sentence=why)
        recorder.note("build.ended", status="aborted", sentence=sentence, fault="Aborted", missing=[])
        await recorder.flush(self._effects)
