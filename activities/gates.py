"""Judging a commit: read back by digest, checked for syntax, its tests run in the sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
from domain.ports.sandbox import Sandbox, SandboxResult, SandboxRun
from domain.ports.workspace import Workspaces

REPORT_BYTES = 12_000
"""What a model is shown of a red run: enough for several failures, small beside the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGatesInput:
    """``written`` is the digest of a JSON object from path to SHA-256 ("" for a base), ``base_ran`` the count of tests
    that may not shrink (None for a base, -1 where the runner cannot count)."""

    label: str
    project: str
    commit: str
    written: str = ""
    base_ran: int | None = None
    allow_missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """``ran`` counts the tests that really ran (-1: cannot be counted); ``log`` is the digest of the whole output,
    ``report`` of what matters of a red one ("" when green); ``seconds`` is wall time."""

    green: bool
    reason: str
    ran: int
    log: str
    report: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A sandbox run and what it printed."""

    result: SandboxResult
    output: bytes

    @property
    def text(self) -> str:
        """Undecodable bytes are replaced."""
        return self.output.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where runs happen: ``folder`` holds their output files, ``toolchain`` tells what a project's command needs."""

    sandbox: Sandbox
    folder: Path
    toolchain: Callable[[Project], tuple[Path, ...]]


class Gates:
    """Runs where model-written code runs, in a process without secrets."""

    def __init__(self, *, engine: Engine, workspaces: Workspaces, blobs: Blobs, bench: Bench) -> None:
        self._engine = engine
        self._workspaces = workspaces
        self._blobs = blobs
        self._bench = bench

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
        limits = project.limits
        with self._log_file(request.label) as log:
            result = await self._bench.sandbox.run(
                SandboxRun(
                    label=f"{self._bench.folder}:{request.label}",  # builds of two installations share names
                    argv=argv,
                    folder=folder,
                    log=log,
                    toolchain=self._bench.toolchain(project),
                    seconds=limits.test_seconds,
                    memory_bytes=limits.test_memory_bytes,
                    processes=limits.test_processes,
                    log_bytes=limits.test_log_bytes,
                    scratch_bytes=limits.test_scratch_bytes,
                    allow_missing=frozenset(request.allow_missing),
                )
            )
            return Ended(result=result, output=await asyncio.to_thread(log.read_bytes))

    async def _report(self, ended: Ended, judged: Verdict, *, ran: int, shown: str) -> GateReport:
        return GateReport(
            green=judged.green,
            reason=judged.reason,
            ran=ran,
            log=await self._blobs.put(ended.output),
            report=await self._blobs.put(shown.encode(errors="replace")) if shown else "",
            seconds=round(ended.result.seconds, 3),
        )

    @contextmanager
    def _log_file(self, label: str) -> Iterator[Path]:
        """What a killed try of the same label left is removed first: nobody else would."""
        self._bench.folder.mkdir(parents=True, exist_ok=True)
        prefix = f"log-{hashlib.sha256(label.encode()).hexdigest()[:12]}-"
        for leftover in self._bench.folder.glob(f"{prefix}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self._bench.folder) as folder:
            yield Path(folder) / "log"


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
