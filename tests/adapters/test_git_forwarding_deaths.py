"""Two processes that forward at once, and one that is killed at any of its gits."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import GitPorts
from tests.adapters.git_forwarding import forward_beside, forward_to_its_death
from tests.adapters.processes import barrier, pipe, run_together, start
from tests.adapters.test_git_forwarding import everything, made, ports, user
from tests.adapters.test_git_processes import running

__all__ = ["ports", "user"]  # fixtures


async def test_of_two_racing_processes_one_wins(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    news, jobs, pipes, both = [], [], [], barrier(2)
    for name in ("one", "two"):
        base, new = await made(ports, user, name=name)
        receiver, sender = pipe()
        news.append(new)
        pipes.append(receiver)
        jobs.append((forward_beside, (sender, both, str(tmp_path / "state"), str(user.path), base, new)))
    run_together(jobs)
    ends = [receiver.recv() for receiver in pipes]
    assert sorted(ends) == ["Overtaken", "moved"]
    assert user.refs()["refs/heads/main"] == news[ends.index("moved")]


@pytest.mark.parametrize("how", ["before", "during", "together"])
async def test_a_forward_that_is_killed_at_any_git_leaves_the_old_or_the_new(
    ports: GitPorts, user: UserRepository, tmp_path: Path, how: str
) -> None:
    base, new = await made(ports, user)
    mine = (".git/refs/heads/main", ".git/logs/refs/heads/main")
    before = everything(user, *mine)
    deaths = 0
    while True:
        receiver, sender = pipe()
        words = (str(tmp_path / "state"), str(user.path), base, new)
        process = start(forward_to_its_death, sender, deaths + 1, how, *words)
        process.join(60)
        if receiver.poll():
            assert (receiver.recv(), process.exitcode) == ("moved", 0)
            break
        assert process.exitcode == -signal.SIGKILL
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
