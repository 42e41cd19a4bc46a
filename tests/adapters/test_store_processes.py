"""The store under several processes: races, first starts, kill -9."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command

from adapters.compliance.store import row, whole_build
from adapters.store import open_store
from adapters.store.migrate import HEAD, revision
from adapters.store.sqlite_file import prepare
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
from tests.adapters.test_store_migrations import move, on
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


async def test_a_first_start_waits_for_who_writes_to_the_new_file_already(tmp_path: Path) -> None:
    """SQLite's own patience does not hold for the change of mode: six that meet rarely show it, this does each time."""
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE first (number INTEGER)")
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO first VALUES (1)")
        prepared = asyncio.create_task(asyncio.to_thread(prepare, path, name="the test's store"))
        done, _ = await asyncio.wait([prepared], timeout=0.3)
        assert not done, "it neither failed nor went past the writer"
        other.execute("COMMIT")
        await prepared
    with closing(sqlite3.connect(path)) as afterwards:
        assert afterwards.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_five_workers_of_a_new_version_may_start_at_once_on_an_older_database(url: str) -> None:
    async with await open_store(url) as store:
        assert await store.builds.reserve_number("a") == 1
    await on(url, lambda connection: move(connection, "0002", command.downgrade))
    together = barrier(5)
    run_together([(open_and_close, (url, together))] * 5)
    assert await on(url, revision) == HEAD
    async with await open_store(url) as store:
        assert await store.builds.reserve_number("a") == 2


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
