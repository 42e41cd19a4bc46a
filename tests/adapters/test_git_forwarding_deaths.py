"""Two processes that forward at once, and one that is killed at any of its gits."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import GitPorts
from tests.adapters.test_git_forwarding import everything, made, ports, user
from tests.adapters.test_git_processes import running

__all__ = ["ports", "user"]  # fixtures
ROOT = Path(__file__).parents[2]
Started = list[subprocess.Popen[str]]


@pytest.fixture
def started() -> Iterator[Started]:
    """Processes that forward, ended after the test."""
    processes: Started = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def begin(processes: Started, *arguments: str) -> None:
    """A process that waits for one line before it forwards."""
    words = (sys.executable, "-m", "tests.adapters.git_forwarding", *arguments)
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    processes.append(process)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def end(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.read().strip()


async def test_of_two_racing_processes_one_wins(
    ports: GitPorts, user: UserRepository, tmp_path: Path, started: Started
) -> None:
    news = []
    for name in ("one", "two"):
        base, new = await made(ports, user, name=name)
        news.append(new)
        begin(started, str(tmp_path / "state"), str(user.path), base, new)
    for process in started:
        go(process)
    ends = [end(process) for process in started]
    assert sorted(ends) == ["Overtaken", "moved"]
    assert user.refs()["refs/heads/main"] == news[ends.index("moved")]


@pytest.mark.parametrize("how", ["before", "during", "together"])
async def test_a_forward_that_is_killed_at_any_git_leaves_the_old_or_the_new(
    ports: GitPorts, user: UserRepository, tmp_path: Path, started: Started, how: str
) -> None:
    base, new = await made(ports, user)
    mine = (".git/refs/heads/main", ".git/logs/refs/heads/main")
    before = everything(user, *mine)
    deaths = 0
    while True:
        begin(started, str(tmp_path / "state"), str(user.path), base, new, str(deaths + 1), how)
        go(started[-1])
        if (said := end(started[-1])) == "moved":
            break
        assert (said, started[-1].wait()) == ("", -signal.SIGKILL)
        deaths += 1
        await until_gone(str(user.path / ".git"))
        assert user.refs()["refs/heads/main"] in (base, new)
        (user.path / ".git" / "refs" / "heads" / "main.lock").unlink(missing_ok=True)  # as its owner would
        assert await ports.landing.rewind(user.project(), old=base, new=new)
        assert everything(user, *mine) == before
    assert deaths >= 10
    assert user.refs()["refs/heads/main"] == new
    user.git("fsck", "--full", "--strict")


async def until_gone(marker: str) -> None:
    """Wait for the gits that their worker left behind; they are no children of ours."""
    while running(marker):  # noqa: ASYNC110  /proc has no event to wait for
        await asyncio.sleep(0.01)
