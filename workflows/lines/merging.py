"""One task's green work becomes the build's head: on top of what was merged before, gated again, one at a time."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.context import Build
from workflows.faults import last_fault
from workflows.lines.gating import gate
from workflows.policies import WORKSPACE
from workflows.state import Head

with workflow.unsafe.imports_passed_through():
    from activities.repository.changes import AdvanceHeadInput, Changes
    from activities.repository.merging import Merging, RebasedCommit, RebaseInput, TakeCommitInput
    from domain.build.requests import TaskOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Commits from ``base`` to ``commit`` that wait for their merge. ``ran`` counts the tests that passed on them, None
    when nothing was run; ``baseline`` is what each of them did, ``diff`` a digest."""

    task: str
    base: str
    commit: str
    ran: int | None
    diff: str
    model: str = ""
    baseline: str = ""

    @classmethod
    def of(cls, outcome: TaskOutcome) -> Work:
        """A task's green result."""
        return cls(
            task=outcome.task,
            base=outcome.base,
            commit=outcome.commit,
            ran=outcome.ran,
            diff=outcome.diff,
            model=outcome.model,
            baseline=outcome.baseline,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBack:
    """Why work was refused after all: ``why`` is conflict or red; ``report`` and ``change`` are digests."""

    why: str
    sentence: str
    report: str
    change: str


class Merger:
    """Serialises the merges of one build."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._lock = asyncio.Lock()
        self._gated = 0

    async def merge(self, work: Work) -> SentBack | None:
        """Move the build's head onto the work, or say why not."""
        async with self._lock:
            await self._build.effects.clear()
            return await self._merge(work)

    async def taken(self, task: str, name: str) -> Work | str:
        """A person's commit as a task's work, or the sentence that refuses it."""
        build = self._build
        take = TakeCommitInput(project=build.admitted.project, build=build.name, onto=build.head.commit, name=name)
        try:
            taken = await build.effects.run(WORKSPACE, Merging.take_commit, take)
        except ActivityError as error:
            return last_fault(error).sentence
        build.recorder.note("build.taken", task=task, commit=taken.commit)
        return Work(task=task, base=taken.base, commit=taken.commit, ran=None, diff=taken.diff)

    async def _merge(self, work: Work) -> SentBack | None:
        build, head = self._build, self._build.head
        if work.base == head.commit and work.ran is not None:
            await self._advance(work, Head(commit=work.commit, ran=work.ran, baseline=work.baseline))
            return None
        rebased = await rebase(build, onto=head.commit, base=work.base, head=work.commit)
        build.recorder.note("merge.tried", task=work.task, onto=head.commit, **asdict(rebased))
        if rebased.conflicts:
            paths = ", ".join(rebased.conflicts[:5])
            sentence = f"it conflicts in {paths} with what was merged meanwhile: write it again on top of that"
            return SentBack(why="conflict", sentence=sentence, report=rebased.report, change=work.diff)
        self._gated += 1
        label = f"{build.name}/merge/{work.task}/{build.state.tasks[work.task].attempt}/{self._gated}"
        report = await gate(build, commit=rebased.commit, label=label, before=head)
        build.recorder.note("gates.ran", task=work.task, label="merge", **asdict(report))
        if not report.green:
            sentence = f"together with what was merged meanwhile the tests are red: {report.reason}"
            return SentBack(why="red", sentence=sentence, report=report.report, change=work.diff)
        await self._advance(work, Head(commit=rebased.commit, ran=report.ran, baseline=report.baseline))
        return None

    async def _advance(self, work: Work, new: Head) -> None:
        build = self._build
        if new.commit != build.head.commit:
            move = AdvanceHeadInput(
                project=build.admitted.project, build=build.name, old=build.head.commit, new=new.commit
            )
            await build.effects.run(WORKSPACE, Changes.advance_head, move)
        build.state.head = new
        reason = f"{new.ran} tests passed" if new.ran >= 0 else "the test command exited with 0"
        build.state.gates = {"green": True, "ran": new.ran, "reason": reason}
        build.state.tasks[work.task].commit = new.commit
        if work.model and work.model not in build.state.authors:
            build.state.authors.append(work.model)
        build.recorder.note("task.merged", task=work.task, commit=new.commit, ran=new.ran)
        await build.recorder.flush(build.effects)


async def rebase(build: Build, *, onto: str, base: str, head: str) -> RebasedCommit:
    """The commits from ``base`` to ``head`` on top of ``onto``."""
    request = RebaseInput(project=build.admitted.project, build=build.name, onto=onto, base=base, head=head)
    return await build.effects.run(WORKSPACE, Merging.rebase_commits, request)
