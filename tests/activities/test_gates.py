"""A commit is judged by what is on the disk and what the runner's run amounts to, not by what anybody claims."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.gates import Bench, GateReport, Gates, RunGatesInput, read_back
from activities.intake import Engine
from adapters.blobs.memory import MemoryBlobs
from domain.build.project import Project
from domain.errors import DigestMismatch, UnknownName
from domain.ports.sandbox import SandboxResult, SandboxRun
from domain.ports.workspace import Candidate, CommitRequest

PROJECT = Project(name="calc", repository="/r", branch="main", test=("python3", "-m", "unittest"))
GREEN = "...\n----\nRan 3 tests in 0.1s\n\nOK\n"
RED = (
    "F..\n======================================================================\n"
    "FAIL: test_add (test_calc.T.test_add)\n"
    "----------------------------------------------------------------------\n"
    "Traceback (most recent call last):\nAssertionError: 5 != 6\n\n"
    "----------------------------------------------------------------------\n"
    "Ran 3 tests in 0.1s\n\nFAILED (failures=1)\n"
)


class Folder:
    """Checks out the same files every time."""

    def __init__(self, root: Path, files: Mapping[str, str]) -> None:
        self._root = root
        self._files = files
        self.labels: list[str] = []

    @asynccontextmanager
    async def checkout(self, project: str, commit: str, *, label: str) -> AsyncIterator[Path]:
        self.labels.append(label)
        self._root.mkdir(exist_ok=True)
        for path, text in self._files.items():
            (self._root / path).write_text(text)
        yield self._root

    async def commit(self, request: CommitRequest) -> Candidate:
        raise NotImplementedError


class Said:
    """A sandbox whose runs print what they are told to, one after the other."""

    def __init__(self, *runs: tuple[str, int, str]) -> None:
        self._runs = list(runs)
        self.ran: list[SandboxRun] = []

    def missing(self) -> dict[str, str]:
        return {}

    async def run(self, run: SandboxRun) -> SandboxResult:
        self.ran.append(run)
        text, code, ended = self._runs.pop(0)
        run.log.write_text(text)
        return SandboxResult(exit_code=code, ended=ended, seconds=0.25, log_cut=False)


class At:
    """The activity on one folder and one sandbox."""

    def __init__(self, folder: Path, sandbox: Said, files: Mapping[str, str]) -> None:
        self.blobs = MemoryBlobs()
        self.folder = Folder(folder / "checkout", files)
        engine = Engine(projects={"calc": PROJECT}, reasoning=("m",), coding=("m",), heartbeat=5)
        bench = Bench(sandbox=sandbox, folder=folder / "logs", toolchain=lambda _: (Path("/opt/python"),))
        self._gates = Gates(engine=engine, workspaces=self.folder, blobs=self.blobs, bench=bench)

    async def judge(self, *, base_ran: int | None = 3, written: Mapping[str, str] | None = None) -> GateReport:
        listed = await self.blobs.put(json.dumps(written).encode()) if written else ""
        request = RunGatesInput(label="saga/gates/1", project="calc", commit="c", written=listed, base_ran=base_ran)
        report = await ActivityEnvironment().run(self._gates.run_gates, request)
        assert isinstance(report, GateReport)
        return report


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_a_green_run_has_its_count_and_its_whole_log(tmp_path: Path) -> None:
    at = At(tmp_path, Said((GREEN, 0, "exited")), {"a.txt": "x"})
    report = await at.judge()
    assert (report.green, report.ran, report.report, report.seconds) == (True, 3, "", 0.25)
    assert await at.blobs.get(report.log) == GREEN.encode()


async def test_a_red_run_has_what_matters_of_its_output(tmp_path: Path) -> None:
    at = At(tmp_path, Said((RED, 1, "exited")), {"a.txt": "x"})
    report = await at.judge()
    assert (report.green, report.ran, report.reason) == (False, 3, "1 of 3 tests failed")
    assert b"AssertionError: 5 != 6" in await at.blobs.get(report.report)


@pytest.mark.parametrize(
    ("text", "code", "ended", "base_ran", "reason"),
    [
        (GREEN, 0, "exited", 4, "only 3 tests ran"),
        ("\nRan 0 tests in 0.0s\n\nOK\n", 0, "exited", None, "no test ran"),
        ("Ran 0 tests in 0.0s\n\nNO TESTS RAN\n", 5, "exited", None, "no test ran"),
        ("all is well\n", 0, "exited", 3, "no summary"),
        (GREEN, 137, "timeout", 3, "did not end in time"),
        (GREEN, 137, "memory", 3, "more memory"),
    ],
)
async def test_a_run_that_proves_nothing_is_red(
    tmp_path: Path, text: str, code: int, ended: str, base_ran: int | None, reason: str
) -> None:
    report = await At(tmp_path, Said((text, code, ended)), {}).judge(base_ran=base_ran)
    assert not report.green
    assert reason in report.reason


async def test_a_syntax_error_is_told_before_any_test_runs(tmp_path: Path) -> None:
    sandbox = Said(("SYNTAX ./a.py:3: SyntaxError: invalid syntax\n", 1, "exited"))
    report = await At(tmp_path, sandbox, {"a.py": "x"}).judge(written={"a.py": digest("x")})
    assert (report.green, report.ran) == (False, 0)
    assert report.reason == "syntax: a.py:3: SyntaxError: invalid syntax"
    assert len(sandbox.ran) == 1


async def test_what_was_written_is_read_back_before_anything_runs(tmp_path: Path) -> None:
    sandbox = Said()
    with pytest.raises(DigestMismatch, match=r"a\.py reads back as"):
        await At(tmp_path, sandbox, {"a.py": "tampered"}).judge(written={"a.py": digest("x")})
    assert sandbox.ran == []


async def test_the_run_gets_the_projects_limits_toolchain_and_label(tmp_path: Path) -> None:
    sandbox = Said((GREEN, 0, "exited"))
    at = At(tmp_path, sandbox, {})
    await at.judge()
    run = sandbox.ran[0]
    assert (run.argv, run.toolchain) == (PROJECT.test, (Path("/opt/python"),))
    assert run.label == f"{tmp_path / 'logs'}:saga/gates/1"
    assert (run.seconds, run.memory_bytes) == (PROJECT.limits.test_seconds, PROJECT.limits.test_memory_bytes)
    assert at.folder.labels == ["saga/gates/1"]


async def test_no_output_file_stays_behind(tmp_path: Path) -> None:
    await At(tmp_path, Said((GREEN, 0, "exited")), {}).judge()
    assert list((tmp_path / "logs").iterdir()) == []


async def test_the_output_file_of_a_killed_try_goes_with_the_next_one(tmp_path: Path) -> None:
    sandbox = Said((GREEN, 0, "exited"), (GREEN, 0, "exited"))
    at = At(tmp_path, sandbox, {})
    await at.judge()
    left = sandbox.ran[0].log
    left.parent.mkdir()
    left.write_text("half of it")
    await at.judge()
    assert list((tmp_path / "logs").iterdir()) == []


class TestReadBack:
    def test_a_deleted_file_has_to_be_gone(self, tmp_path: Path) -> None:
        read_back(tmp_path, {"gone.py": ""})
        (tmp_path / "gone.py").write_text("")
        with pytest.raises(DigestMismatch, match="written was nothing"):
            read_back(tmp_path, {"gone.py": ""})

    def test_a_missing_file_is_no_written_file(self, tmp_path: Path) -> None:
        with pytest.raises(DigestMismatch, match="reads back as nothing"):
            read_back(tmp_path, {"a.py": digest("x")})

    def test_a_symlink_to_the_right_content_is_not_what_was_written(self, tmp_path: Path) -> None:
        (tmp_path / "real").write_text("x")
        (tmp_path / "a.py").symlink_to(tmp_path / "real")
        with pytest.raises(DigestMismatch):
            read_back(tmp_path, {"a.py": digest("x")})


def test_an_engine_knows_its_only_project_without_a_name() -> None:
    engine = Engine(projects={"calc": PROJECT}, reasoning=(), coding=(), heartbeat=5)
    assert engine.project("") is PROJECT
    with pytest.raises(UnknownName, match="known: calc"):
        engine.project("cal")
