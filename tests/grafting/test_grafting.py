"""Who stands for a forked worker is given what it is given, and both end together, whichever of them is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import TemporalServer
from tests.e2e.workshop import wait_for
from tests.forks import nest
from tests.grafting import LAUNCH

CONFIGURED = "[temporal]\ntask_queue = 'grafted'\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mendwork.toml").write_text(CONFIGURED)
    return tmp_path


@contextmanager
def standing(folder: Path, name: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Who stands for the worker ``name``."""
    argv = [sys.executable, "-I", "-S", str(LAUNCH), nest("tests.grafting.nest"), "worker", name]
    given = {**environment, "MENDWORK_CONFIG": str(folder / "mendwork.toml")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=folder, env=given, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def writers(folder: Path, *, but: int) -> list[int]:
    """Who has the log open, which is how a fork is found, beside the process ``but``."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(place / "fd" / "1") == str(folder / "log") and int(place.name) != but:
                found.append(int(place.name))
        except OSError:
            continue  # it has ended
    return found


@contextmanager
def serving(folder: Path, temporal: TemporalServer) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Who stands for a worker that serves, and the pid of the worker."""
    with standing(folder, "sandbox", {"PATH": os.environ["PATH"], "HOME": str(folder), **temporal.environment}) as it:
        wait_for(lambda: b"serving grafted-sandbox" in (folder / "log").read_bytes(), why="a worker that serves")
        (worker,) = writers(folder, but=it.pid)
        yield it, worker


def test_its_words_and_its_exit_code_are_handed_on(folder: Path) -> None:
    with standing(folder, "nobody", {"PATH": os.environ["PATH"], "HOME": str(folder)}) as it:
        assert it.wait(60) == 1
    assert "mendwork worker: unknown worker 'nobody'" in (folder / "log").read_text()
    assert writers(folder, but=it.pid) == []


def test_sigterm_lets_the_worker_end_well(folder: Path, temporal: TemporalServer) -> None:
    with serving(folder, temporal) as (it, _):
        it.send_signal(signal.SIGTERM)
        assert it.wait(60) == 0
    assert writers(folder, but=it.pid) == []


def test_with_who_stands_for_it_the_worker_is_killed(folder: Path, temporal: TemporalServer) -> None:
    with serving(folder, temporal) as (it, worker):
        it.kill()
        assert it.wait(60) == -signal.SIGKILL
        wait_for(lambda: worker not in writers(folder, but=it.pid), why="the end of the worker")


def test_of_a_worker_that_is_killed_the_signal_is_told(folder: Path, temporal: TemporalServer) -> None:
    with serving(folder, temporal) as (it, worker):
        os.kill(worker, signal.SIGKILL)
        assert it.wait(60) == -signal.SIGKILL
