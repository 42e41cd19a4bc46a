"""Judging a commit: read back by digest, checked for syntax, its tests run in the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from temporalio import activity

from activities.documents import read_json
from activities.sandboxed.baselines import (
    NO_COMMAND,
    NO_TESTS,
    judge_beside,
    keep_baseline,
    read_baseline,
    read_ended,
)
from activities.sandboxed.bench import Bench as Bench
from activities.sandboxed.bench import Ended as Ended
from activities.sandboxed.bench import Job as Job
from activities.sandboxed.bench import OnBench as OnBench
from activities.sandboxed.judging import REPORT_BYTES
from activities.sandboxed.judging import judge as judge
from activities.sandboxed.judging import read_back as read_back
from domain.build.project import Project
from domain.gates.comparing import Baseline
from domain.gates.judging import judge_base, needs_another
from domain.gates.reading import Run
from domain.gates.syntax import syntax_argv, syntax_reason
from domain.gates.telling import telling
from domain.gates.trimming import trim
from domain.gates.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGatesInput:
    """``written`` is the digest of a JSON object from path to SHA-256 ("" for what nobody wrote as it is), ``base_ran``
    the count of tests that may not shrink (None: nothing to compare with, -1 where the runner cannot count).

    ``baseline`` is the digest of what each test did before the change ("" where that cannot be told): with it the
    verdict is about new failures and lost tests only. ``environment`` is the key of the project's set-up, "" for none.
    """

    label: str
    project: str
    commit: str
    written: str = ""
    base_ran: int | None = None
    allow_missing: tuple[str, ...] = ()
    baseline: str = ""
    environment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureBaseInput:
    """Run the tests of ``commit`` twice, as nobody has changed it."""

    label: str
    project: str
    commit: str
    environment: str = ""
    allow_missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseReport:
    """What the base's own tests say. ``usable`` is whether changes can be judged on top of it: it is green, or each
    failing test can be told by its name. ``failing`` counts tests that failed both times, ``flaky`` those that did not
    agree. ``baseline`` is the digest of what each test did, "" where the runner does not tell; the other fields as in
    GateReport."""

    usable: bool
    green: bool
    reason: str
    ran: int
    failing: int
    flaky: int
    baseline: str
    log: str
    report: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """``ran`` counts the tests that really ran (-1: cannot be counted); ``log`` is the digest of the whole output,
    ``report`` of what matters of a red one ("" when green); ``seconds`` is wall time.

    ``baseline`` is the digest of what each test did, for the comparison with the next change ("" where it cannot be
    told). Beside the baseline of before: ``new`` tests fail now and did not, ``lost`` are gone or skipped now and
    passed, ``fixed`` pass now and failed, ``known`` fail as they did or are flaky.
    """

    green: bool
    reason: str
    ran: int
    log: str
    report: str
    seconds: float
    baseline: str = ""
    new: int = 0
    lost: int = 0
    fixed: int = 0
    known: int = 0


class Gates(OnBench):
    """What a commit's own tests say of it."""

    @activity.defn
    async def run_gates(self, request: RunGatesInput) -> GateReport:
        """Syntax, then the project's tests, on a fresh checkout.

        Raises DigestMismatch when a file is not what was written, IsolationMissing, ResourceShort, InvalidInput.
        """
        project = self._engine.project(request.project)
        written = await read_json(self._blobs, request.written) if request.written else {}
        async with self._workspaces.checkout(project.name, request.commit, label=request.label) as folder:
            await asyncio.to_thread(read_back, folder, written)
            syntax = await self._syntax(request, project, folder, tuple(sorted(written)))
            return syntax or await self._tests(request, project, folder)

    @activity.defn
    async def measure_base(self, request: MeasureBaseInput) -> BaseReport:
        """The base's own tests, run twice, so that what does not agree is known as flaky; once where that settles it.

        Raises IsolationMissing, ResourceShort, InvalidInput, SetupFailed.
        """
        project = self._engine.project(request.project)
        untested = bool(project.untested)
        if not project.test:
            return await self._without_tests(untested)
        runs: list[Run] = []
        outputs: list[Ended] = []
        async with self._workspaces.checkout(project.name, request.commit, label=request.label) as folder:
            while len(runs) < 2 and all(needs_another(run, untested=untested) for run in runs):
                outputs.append(await self._told(request, project, folder))
                runs.append(await asyncio.to_thread(read_ended, outputs[-1], project))
        base = judge_base(runs, untested=untested)
        red = next((ended for ended in outputs if ended.result.exit_code or ended.result.ended != "exited"), None)
        shown = await asyncio.to_thread(trim, red.text, runs[0].report.runner, limit=REPORT_BYTES) if red else ""
        return BaseReport(
            usable=base.usable,
            green=base.green,
            reason=base.reason,
            ran=base.ran,
            failing=base.failing,
            flaky=len(base.baseline.flaky) if base.baseline else 0,
            baseline=await keep_baseline(self._blobs, base.baseline),
            log=await self._blobs.put((red or outputs[-1]).output),
            report=await self._blobs.put(shown.encode(errors="replace")) if shown else "",
            seconds=round(sum(ended.result.seconds for ended in outputs), 3),
        )

    async def _without_tests(self, untested: bool) -> BaseReport:
        return BaseReport(
            usable=untested,
            green=untested,
            reason=NO_TESTS if untested else NO_COMMAND,
            ran=0,
            failing=0,
            flaky=0,
            baseline=await keep_baseline(self._blobs, Baseline(runner="other") if untested else None),
            log=await self._blobs.put(b""),
            report="",
            seconds=0.0,
        )

    async def _syntax(
        self, request: RunGatesInput, project: Project, folder: Path, paths: tuple[str, ...]
    ) -> GateReport | None:
        argv = syntax_argv(paths, test=project.test)
        if not argv:
            return None
        ended = await self._run(request, project, folder, argv)
        reason = syntax_reason(ended.text, ended.result.exit_code)
        if not reason:
            return None
        first = reason.splitlines()[0]
        return await self._report(ended, Verdict(green=False, reason=f"syntax: {first}"[:300]), ran=0, shown=reason)

    async def _tests(self, request: RunGatesInput, project: Project, folder: Path) -> GateReport:
        if not project.test:
            return await self._untried(request, bool(project.untested))
        if request.baseline:
            return await self._beside(request, project, folder)
        ended = await self._run(request, project, folder, project.test)
        # In a thread: a log of many megabytes would hold up the heartbeats of every activity here.
        judged, ran, shown = await asyncio.to_thread(judge, ended, test=project.test, base_ran=request.base_ran)
        return await self._report(ended, judged, ran=ran, shown=shown)

    async def _beside(self, request: RunGatesInput, project: Project, folder: Path) -> GateReport:
        before = await read_baseline(self._blobs, request.baseline)
        ended = await self._told(request, project, folder)
        beside = await asyncio.to_thread(judge_beside, ended, project, before, limit=REPORT_BYTES)
        ran = -1 if beside.run.report.ran is None else beside.run.report.ran
        report = await self._report(ended, beside.judged.verdict, ran=ran, shown=beside.shown)
        found = beside.judged.compared
        return replace(
            report,
            baseline=await keep_baseline(self._blobs, beside.next),
            new=len(found.new),
            lost=len(found.lost),
            fixed=len(found.fixed),
            known=len(found.known),
        )

    async def _untried(self, request: RunGatesInput, untested: bool) -> GateReport:
        reason = NO_TESTS if untested else NO_COMMAND
        log = await self._blobs.put(b"")
        kept = request.baseline if untested else ""
        return GateReport(green=untested, reason=reason, ran=0, log=log, report="", seconds=0.0, baseline=kept)

    async def _told(self, request: RunGatesInput | MeasureBaseInput, project: Project, folder: Path) -> Ended:
        """The tests' run, asked to say what each of them did."""
        argv, environment = telling(project.test)
        return await self._run(request, project, folder, argv, environment=environment)

    async def _run(
        self,
        request: RunGatesInput | MeasureBaseInput,
        project: Project,
        folder: Path,
        argv: tuple[str, ...],
        *,
        environment: Mapping[str, str] | None = None,
    ) -> Ended:
        job = Job(
            label=request.label,
            argv=argv,
            folder=folder,
            allow_missing=request.allow_missing,
            environment=environment or {},
            dependencies=request.environment,
        )
        async with self._bench.ran(project, job) as ended:
            return ended

    async def _report(self, ended: Ended, judged: Verdict, *, ran: int, shown: str) -> GateReport:
        return GateReport(
            green=judged.green,
            reason=judged.reason,
            ran=ran,
            log=await self._blobs.put(ended.output),
            report=await self._blobs.put(shown.encode(errors="replace")) if shown else "",
            seconds=round(ended.result.seconds, 3),
        )
