"""A build that waits for a person outlives everything that runs: server and workers, stopped in order or killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.people import people
from tests.chaos.playing import BUILD, trees_of
from tests.chaos.scenes import SCENES, TARGET, Stage
from tests.e2e.workshop import DEV, wait_for
from tests.invariants import check_invariants

pytestmark = pytest.mark.timeout(300)  # a Mendwork is started three times

THREE_DAYS = 72 * 3600 * 1000


def stage(folder: Path) -> Stage:
    return Stage(folder, SCENES["approved"])


@contextmanager
def living(at: Stage) -> Iterator[subprocess.Popen[bytes]]:
    """``mendwork dev`` once more, on the database of before, until all four workers are there."""
    before = _served(at)
    with at.spawned(DEV, log="dev.log") as process:
        wait_for(lambda: _served(at) == before + 4, seconds=90, why="four workers that poll")
        yield process


def _served(at: Stage) -> int:
    """How many workers have begun to poll, over all lives."""
    return sum(log.read_text().count("serving ") for log in (at.state / "logs").glob("worker-*.log"))


def patience(at: Stage) -> int:
    """The seconds that an approval may take: forty, and more where starting a command alone takes long."""
    begun = time.monotonic()
    assert at.mendwork("--version").code == 0
    return max(40, round(40 * (time.monotonic() - begun)))


def waiting(at: Stage) -> dict[str, Any]:
    """The one ask that is open, as the command line shows it."""

    def shown() -> list[dict[str, Any]]:
        ran = at.mendwork("pending", BUILD, "--json")
        assert ran.code == 0, ran.err
        listed: list[dict[str, Any]] = json.loads(ran.out)
        return listed

    (ask,) = wait_for(shown, seconds=60, why="an ask")
    return dict(ask)


def test_an_approval_counts_after_server_and_workers_were_restarted_twice(tmp_path: Path) -> None:
    at = stage(tmp_path / "w")
    with at.provider() as base_url:
        at.configure(base_url=base_url, consent=at.scene.consent + f"approval_seconds = {patience(at)}\n")
        with living(at) as process:
            assert at.mendwork("build", "spec.md", "--detach").code == 0
            asked = waiting(at)
            process.kill()  # the server and the workers die with it
        with living(at):
            assert waiting(at) == asked
        with living(at):
            assert waiting(at) == asked
            approved = at.mendwork("approve", BUILD, asked["digest"][:8])
            assert approved.code == 0, approved.err
            assert at.mendwork("watch", BUILD).code == 0
            check_invariants(at, BUILD)
    assert trees_of(at)[f"refs/heads/{TARGET}"] == trees_of(at)[f"refs/heads/mendwork/{BUILD}"]


def test_a_build_may_wait_for_three_days_and_outlives_the_death_of_the_server(tmp_path: Path) -> None:
    at = stage(tmp_path / "w")
    before, untouched = at.refs(), at.untouched()
    with at.running(dev=DEV):
        assert at.mendwork("build", "spec.md", "--detach").code == 0
        server = _server(at)
        wait_for(lambda: at.billed(), seconds=60, why="the first call")
        os.kill(server, signal.SIGKILL)
        asked = waiting(at)
        assert _server(at) != server
        assert asked["deadline"] - asked["opened"] == THREE_DAYS
        seen = check_invariants(at, BUILD)
        assert [ask.id for ask in seen.details.open_asks()] == [asked["id"]], "it is pending, and may be for long"
        assert asyncio.run(_pending(at)) == [asked["id"]], "Temporal's own query says the same"
        assert at.mendwork("abort", BUILD, "--reason", "the test ends").code == 0
        assert at.mendwork("watch", BUILD).code == 3
        check_invariants(at, BUILD)
    assert (at.refs(), at.untouched()) == (before, untouched)


async def _pending(at: Stage) -> list[str]:
    async with people(at, BUILD) as crowd:
        listed: list[dict[str, Any]] = await crowd.saga.query("pending")
    return [ask["id"] for ask in listed]


def _server(at: Stage) -> int:
    pid: int = wait_for(lambda: json.loads((at.state / "dev.json").read_text())["server_pid"], why="a server")
    return pid
