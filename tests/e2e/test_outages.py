"""Workers and stores that go away and come back: builds go on by themselves, and end as if nothing had happened."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import select
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import pytest

from adapters.store import open_store
from adapters.temporal.environment import WORKERS
from domain.ports.store import Event
from domain.trace.lines import from_line
from tests.e2e.projects import (
    Scene,
    answered,
    begun,
    change,
    create,
    edit,
    events,
    plan,
    repository,
    serving,
    started,
    task,
    told,
    waiting,
)
from tests.e2e.test_temporal_cli import temporal
from tests.e2e.workshop import FILES, Workshop, git, wait_for
from tests.postgres import Cluster, running_cluster

ASKED = 'approve = ["change"]\nreview = false\n'
ONE = [plan(task("one", "one.py")), change("one", 1, create("one.py", "A = 1\n"))]
KEPT = Scene(name="kept", consent=ASKED, answers=ONE)
EXPIRING = Scene(name="expiring", consent=f"{ASKED}approval_seconds = 45\n", answers=ONE)
DIAMOND = Scene(
    name="diamond",
    builds=9,
    files={**FILES, "shared.py": "HEAD = 1\n\n\n\n\n\n\nFOOT = 1\n"},
    answers=[
        plan(
            task("top", "top.py"),
            task("left", "left.py", depends_on=["top"]),
            task("right", "right.py", depends_on=["top"]),
            task("end", "end.py", depends_on=["left", "right"]),
        ),
        change("top", 1, create("test_top.py", "import top\n")),
        change("top", 2, create("top.py", "T = 1\n")),
        change("left", 1, create("left.py", "L = 1\n"), edit("shared.py", "HEAD = 1", "HEAD = 2")),
        change("right", 1, create("right.py", "R = 1\n"), edit("shared.py", "FOOT = 1", "FOOT = 2")),
        change("end", 1, create("end.py", "E = 1\n"), faults=[{"kind": "slow", "seconds": 1}]),
    ],
)
SCENES = (KEPT, EXPIRING, DIAMOND)
SEED = 20_261_121
OUTAGE_SECONDS = 60


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with serving(tmp_path_factory.mktemp("outages"), [DIAMOND]) as at:
        yield at


@pytest.fixture(scope="module")
def undisturbed(at: Workshop) -> str:
    """The tree of a build that nothing happened to."""
    build = begun(at, DIAMOND)
    assert at.mendwork("watch", build, seconds=300).code == 0
    return tree(at, build)


def tree(at: Workshop, build: str) -> str:
    return git(repository(at, DIAMOND), "rev-parse", f"mendwork/{build}^{{tree}}").strip()


def stands(log: list[Event]) -> None:
    """Every run's rows are there from the first to the last, once."""
    ordered = sorted(log, key=lambda event: (event.first_run, event.run, event.sequence))
    for _, run in groupby(ordered, key=lambda event: (event.first_run, event.run)):
        numbers = [event.sequence for event in run]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert numbers[0] in (0, 1)


def after(seconds: float) -> None:
    """The time itself is what is waited for."""
    until = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > until, why=f"the end of {seconds} s")


@contextlib.contextmanager
def without_workers(at: Workshop) -> Iterator[None]:
    """All of them are killed, and nothing starts them again until the block ends; the server runs on."""
    supervisor = json.loads((at.state / "dev.json").read_text())["pid"]
    os.kill(supervisor, signal.SIGSTOP)
    try:
        for pid in at.pids().values():
            os.kill(pid, signal.SIGKILL)
        yield
    finally:
        os.kill(supervisor, signal.SIGCONT)


@dataclass(frozen=True, kw_only=True)
class Away:
    """All workers of a Mendwork of its own, gone since the monotonic time ``since`` until ``come_back`` is called. The
    asks are as they were opened before."""

    at: Workshop
    kept: str
    kept_ask: dict[str, Any]
    expiring: str
    expiring_ask: dict[str, Any]
    working: str
    since: float
    come_back: Callable[[], None]


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Away]:
    """It is a minute of waiting: the tests between its first and its last one need not wait for it."""
    with serving(tmp_path_factory.mktemp("away"), SCENES) as at, contextlib.ExitStack() as outage:
        kept = begun(at, KEPT)
        kept_ask = waiting(at, kept)
        expiring, working = begun(at, EXPIRING), begun(at, DIAMOND)
        wait_for(lambda: told(at, expiring, "ask.opened"), seconds=60, why="the approval that will expire")
        outage.enter_context(without_workers(at))
        yield Away(
            at=at,
            kept=kept,
            kept_ask=kept_ask,
            expiring=expiring,
            expiring_ask=told(at, expiring, "ask.opened")[0],
            working=working,
            since=time.monotonic(),
            come_back=outage.close,
        )


@pytest.mark.timeout(300)
def test_while_all_workers_are_away_an_answer_is_kept_and_nothing_is_decided(away: Away) -> None:
    at = away.at
    assert time.time() * 1000 < away.expiring_ask["deadline"], "the workers were to be gone before"
    sent = answered(at, "approve", away.kept, away.kept_ask["digest"], "--by", "ann")
    assert sent["outcome"] == "sent"  # nobody can rule on it now
    assert [told(at, build, "ask.closed") for build in (away.kept, away.expiring)] == [[], []]


@pytest.mark.timeout(500)
def test_workers_that_are_killed_again_and_again_change_no_result(at: Workshop, undisturbed: str) -> None:
    chance = random.Random(SEED)
    builds = [begun(at, DIAMOND) for _ in range(3)]
    for worker in [worker for _ in range(3) for worker in chance.sample(WORKERS, len(WORKERS))]:
        wait_for(partial(_killed, at, worker), seconds=60, why=f"the death of {worker}")
        after(chance.uniform(0.3, 2.5))
    assert [at.mendwork("watch", build, seconds=300).code for build in builds] == [0, 0, 0]
    assert {tree(at, build) for build in builds} == {undisturbed}
    for build in builds:
        stands(events(at, build))
        assert len(told(at, build, "task.merged")) == 4  # each task once, whoever died


def _killed(at: Workshop, worker: str) -> bool:
    """Whether it ran and does not any more; one that died before is started again by and by."""
    try:
        at.kill(worker)
    except (KeyError, ProcessLookupError):
        return False
    return True


@pytest.mark.timeout(300)
def test_a_store_that_somebody_locks_is_waited_for(at: Workshop, undisturbed: str) -> None:
    """Another process, a backup say, holds it for longer than a statement waits."""
    build = begun(at, DIAMOND)
    wait_for(lambda: told(at, build, "attempt.started"), seconds=60, why="a task at work")
    with closing(sqlite3.connect(at.state / "mendwork.db", timeout=30, isolation_level=None)) as backup:
        backup.execute("BEGIN EXCLUSIVE")
        after(8)
        backup.execute("ROLLBACK")
    assert at.mendwork("watch", build, seconds=240).code == 0
    assert tree(at, build) == undisturbed
    stands(events(at, build))


@pytest.mark.timeout(300)
def test_a_damaged_row_marks_its_build_and_others_are_served(at: Workshop, undisturbed: str) -> None:
    first, second = begun(at, DIAMOND), begun(at, DIAMOND)
    assert [at.mendwork("watch", build, seconds=240).code for build in (first, second)] == [0, 0]
    with closing(sqlite3.connect(at.state / "mendwork.db", timeout=30)) as store, store:
        store.execute("UPDATE events SET data = '{\"cut' WHERE build = ? AND kind = 'task.merged'", (first,))
    shown = at.mendwork("status", first)
    assert (shown.code, "Traceback" in shown.err) == (1, False)
    assert "task.merged" in shown.err or first in shown.err
    assert at.mendwork("status", second).code == 0
    listed = {row["build"] for row in json.loads(at.mendwork("status", "--json").out)}
    assert {first, second} <= listed
    rebuilt = at.mendwork("events", "rebuild", first)
    assert rebuilt.code == 0, rebuilt.err
    assert at.status(first)["status"] == "succeeded"
    stands(events(at, first))
    assert tree(at, first) == undisturbed


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


def _asked(at: Workshop, least: int) -> bool:
    return len(at.billed()) >= least


async def _logged(url: str, build: str) -> list[Event]:
    async with await open_store(url) as store:
        return [event for _, event in await store.events.read(build)]


@pytest.mark.timeout(400)
def test_a_database_server_that_is_restarted_in_the_middle_loses_nothing(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, undisturbed: str
) -> None:
    url = f"{cluster.create()}&pool_size=2&pool_overflow=1&pool_timeout=5"
    folder = tmp_path_factory.mktemp("postgres")
    with serving(folder, [DIAMOND], environment={"MENDWORK_STORE": url}) as at:
        build = begun(at, DIAMOND)
        with started(at, "watch", build, "--json") as follower:
            assert follower.stdout
            line = follower.stdout.fileno()
            wait_for(lambda: select.select([line], [], [], 0)[0], why="what who follows is told first")
            for asked, mode in enumerate(("fast", "immediate", "fast"), 1):
                wait_for(partial(_asked, at, asked), seconds=60, why="the next call")
                cluster.stop(mode=mode)
                after(1)
                cluster.start()
            shown, said = follower.communicate(timeout=240)
        assert (follower.returncode, "Traceback" in said) == (0, False), said
        assert [from_line(json.loads(line)) for line in shown.splitlines()] == asyncio.run(_logged(url, build))
        assert tree(at, build) == undisturbed
        status = at.status(build)
        calls = len(at.billed())
        assert status["calls"] + status["calls_unknown"] >= calls >= 6


@pytest.mark.timeout(500)
def test_after_a_minute_without_workers_every_build_goes_on_and_an_expired_approval_is_no_yes(
    away: Away, undisturbed: str
) -> None:
    at, (kept, expiring, working) = away.at, (away.kept, away.expiring, away.working)
    wait_for(lambda: time.monotonic() > away.since + OUTAGE_SECONDS, seconds=90, why="the end of the outage")
    assert time.time() * 1000 > away.expiring_ask["deadline"]
    words = json.dumps({"digest": away.expiring_ask["digest"], "by": "too late"})
    late = temporal(at, "workflow", "signal", "-w", expiring, "--name", "approve", "--input", words)
    assert late.returncode == 0, late.stderr
    assert told(at, expiring, "ask.closed") == []
    away.come_back()
    codes = {name: at.mendwork("watch", name, seconds=240).code for name in (kept, expiring, working)}
    assert codes == {kept: 0, expiring: 8, working: 0}
    assert tree(at, working) == undisturbed
    assert [data["choice"] for data in told(at, expiring, "ask.closed")] == ["expired"]
    assert "expired" in told(at, expiring, "answer.refused")[0]["reason"]
    assert [data["by"] for data in told(at, kept, "ask.closed")] == ["ann"]
    for build in (kept, expiring, working):
        stands(events(at, build))
