"""Judging a commit: read back by digest, checked for syntax, its tests run in the sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from temporalio import activity

from activities.documents import read_json
from activities.intake import Engine
from domain.build.project import Project
from domain.errors import DigestMismatch
from domain.gates.report import runner_of
from domain.gates.syntax import syntax_argv, syntax_reason
from domain.gates.trimming import trim
from domain.gates.verdict import Verdict, read_report, verdict
from domain.ports.blobs import Blobs
from domain.ports.sandbox import Collect, Outlet, Sandbox, SandboxResult, SandboxRun
from domain.ports.workspace import Workspaces

REPORT_BYTES = 12_000
"""What a model is shown of a red run: enough for several failures, small beside the files."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A sandbox run, what it printed, and the tar that was taken out of it."""

    result: SandboxResult
    output: bytes
    collected: Path | None = None

    @property
    def text(self) -> str:
        """Undecodable bytes are replaced."""
        return self.output.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command on a checkout. ``reach`` is the one port of this machine's loopback that it may reach (0: none),
    ``collect`` the folder that is taken out of it ("": none)."""

    label: str
    argv: tuple[str, ...]
    folder: Path
    allow_missing: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    reach: int = 0
    collect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where runs happen: ``folder`` holds their output, ``toolchain`` tells what a project's test command needs."""

    sandbox: Sandbox
    folder: Path
    toolchain: Callable[[Project], tuple[Path, ...]]

    @asynccontextmanager
    async def ran(self, project: Project, job: Job) -> AsyncIterator[Ended]:
        """Run to the end, within the project's limits; what was collected is there as long as the context is open."""
        limits = project.limits
        with self._outputs(job.label) as outputs:
            log, tar = outputs / "log", outputs / "tar"
            result = await self.sandbox.run(
                SandboxRun(
                    label=f"{self.folder}:{job.label}",  # builds of two installations share names
                    argv=job.argv,
                    folder=job.folder,
                    log=log,
                    # Other commands of the project are looked up as its tests are.
                    toolchain=self.toolchain(replace(project, test=job.argv)),
                    environment=job.environment,
                    seconds=limits.test_seconds,
                    memory_bytes=limits.test_memory_bytes,
                    processes=limits.test_processes,
                    log_bytes=limits.test_log_bytes,
                    scratch_bytes=limits.test_scratch_bytes,
                    allow_missing=waived(project, job.allow_missing),
                    outlet=Outlet(port=job.reach, socket=outputs / "outlet") if job.reach else None,
                    collect=Collect(folder=job.collect, into=tar, most_bytes=limits.artifact_bytes)
                    if job.collect
                    else None,
                )
            )
            output = await asyncio.to_thread(log.read_bytes)
            yield Ended(result=result, output=output, collected=tar if result.collected else None)

    @contextmanager
    def _outputs(self, label: str) -> Iterator[Path]:
        """A private folder. What a killed try of the same label left is removed first: nobody else would."""
        self.folder.mkdir(parents=True, exist_ok=True)
        prefix = f"log-{hashlib.sha256(label.encode()).hexdigest()[:12]}-"
        for leftover in self.folder.glob(f"{prefix}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self.folder) as folder:
            yield Path(folder)


class OnBench:
    """Activities that run where model-written code runs, in a process without secrets."""

    def __init__(self, *, engine: Engine, workspaces: Workspaces, blobs: Blobs, bench: Bench) -> None:
        self._engine = engine
        self._workspaces = workspaces
        self._blobs = blobs
        self._bench = bench


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
        ended = await self._run(request, project, folder, project.test)
        # In a thread: a log of many megabytes would hold up the heartbeats of every activity here.
        judged, ran, shown = await asyncio.to_thread(judge, ended, test=project.test, base_ran=request.base_ran)
        return await self._report(ended, judged, ran=ran, shown=shown)

    async def _run(self, request: RunGatesInput, project: Project, folder: Path, argv: tuple[str, ...]) -> Ended:
        job = Job(label=request.label, argv=argv, folder=folder, allow_missing=request.allow_missing)
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


def waived(project: Project, allow_missing: Iterable[str]) -> frozenset[str]:
    """The isolations that a run may do without: for a project with a target never the closed network."""
    return frozenset(allow_missing) - ({"network"} if project.delivery else set())


def judge(ended: Ended, *, test: tuple[str, ...], base_ran: int | None) -> tuple[Verdict, int, str]:
    """The verdict, how many tests ran (-1: cannot be counted) and what of the output matters when it is red."""
    runner, code, text = runner_of(test), ended.result.exit_code, ended.text
    report = read_report(runner, text, code)
    judged = verdict(report, base_ran=base_ran, ended=ended.result.ended, exit_code=code)
    shown = "" if judged.green else trim(text, runner, limit=REPORT_BYTES)
    return judged, -1 if report.ran is None else report.ran, shown


def read_back(folder: Path, written: Mapping[str, str]) -> None:
    """Compare what the checkout holds with what the writer said. Raises DigestMismatch with the first that differs.

    "Done" is computed here, in another process than the one that wrote: a deleted file has to be gone.
    """
    for path, digest in sorted(written.items()):
        file = folder / path
        present = file.is_file() and not file.is_symlink()
        found = hashlib.sha256(file.read_bytes()).hexdigest() if present else ""
        if found != digest:
            raise DigestMismatch(
                f"{path} reads back as {found[:12] or 'nothing'}, written was {digest[:12] or 'nothing'}"
            )
