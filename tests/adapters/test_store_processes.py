"""The store under several processes: races, first starts, kill -9."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from adapters.compliance.store import row, whole_build
from adapters.store import open_store
from tests.adapters.processes import barrier, pipe, run_together, start
from tests.adapters.store_writers import (
    append_and_tell,
    append_rows,
    append_whole,
    die_inside_a_transaction,
    open_and_close,
    prepare_files,
    reserve,
    work_as_a_saga,
)
from tests.postgres import Cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state' / 'mendwork.db'}"
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.create()


@pytest.fixture
async def url(empty_url: str) -> str:
    """A database with Mendwork's tables."""
    async with await open_store(empty_url):
        return empty_url


async def test_six_processes_may_start_at_once_on_an_empty_database(empty_url: str) -> None:
    together = barrier(6)
    run_together([(open_and_close, (empty_url, together))] * 6)
    async with await open_store(empty_url) as store:
        assert await store.builds.list() == []


def test_processes_that_meet_on_new_files_wait_for_each_other(tmp_path: Path) -> None:
    together = barrier(6)
    run_together([(prepare_files, (tmp_path, 20, together))] * 6)


async def test_racing_processes_append_the_same_and_different_rows(url: str) -> None:
    builds = ["build-a-1", "build-a-1", "build-a-1", "build-a-2"]
    run_together([(append_whole, (url, build)) for build in builds])
    async with await open_store(url) as store:
        for build in ("build-a-1", "build-a-2"):
            assert [e for _, e in await store.events.read(build)] == whole_build(build)
            assert await store.builds.get(build) == row(build)


async def test_processes_that_write_heavily_never_see_a_locked_database(url: str) -> None:
    rows = [(append_rows, (url, f"build-a-{n}", 80)) for n in range(1, 4)]
    run_together([*rows, *((work_as_a_saga, (url, name, 20)) for name in ("b", "c"))])
    async with await open_store(url) as store:
        for number in range(1, 4):
            read = await store.events.read(f"build-a-{number}")
            assert [e.sequence for _, e in read] == list(range(1, 81))
        assert [len(await store.calls.tries(f"build-{name}-1")) for name in ("b", "c")] == [20, 20]
        assert list(await store.undo.open()) == []


async def test_numbers_are_unique_and_gap_free_under_eight_processes(url: str) -> None:
    pipes = [pipe() for _ in range(8)]
    run_together([(reserve, (url, 10, sender)) for _, sender in pipes])
    assert sorted(number for receiver, _ in pipes for number in receiver.recv()) == list(range(1, 81))


async def test_a_writer_killed_inside_a_transaction_leaves_no_half(url: str) -> None:
    writer = start(die_inside_a_transaction, url, "build-a-1")
    writer.join(30)
    assert writer.exitcode == -signal.SIGKILL
    async with await open_store(url) as store:
        assert list(await store.events.read("build-a-1")) == []
        assert await store.events.append(whole_build()) == 5


async def test_what_was_acknowledged_survives_the_writers_death_without_a_gap(url: str) -> None:
    receiver, sender = pipe()
    writer = start(append_and_tell, url, "build-a-1", sender)
    acknowledged = [receiver.recv() for _ in range(10)]
    writer.kill()
    writer.join(30)
    while receiver.poll():
        acknowledged.append(receiver.recv())
    async with await open_store(url) as store:
        sequences = [e.sequence for _, e in await store.events.read("build-a-1")]
    assert sequences == list(range(1, len(sequences) + 1))
    assert len(sequences) >= acknowledged[-1]
    assert len(sequences) % 3 == 0, "a batch is there or not"
