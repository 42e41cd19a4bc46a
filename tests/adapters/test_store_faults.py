"""What the store says when its database is damaged, full, locked, gone or not there."""

from __future__ import annotations

import asyncio
import logging
import resource
import sqlite3
import stat
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import psycopg.errors
import pytest
from sqlalchemy import URL, exc
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.compliance.store import event, row, whole_build
from adapters.store import open_store
from adapters.store.database import Database
from adapters.store.events import SqlEventLog
from adapters.store.faults import translated
from domain.errors import (
    Defect,
    EventConflict,
    EventUnreadable,
    InvalidInput,
    MendworkError,
    ResourceShort,
    StoreUnavailable,
    UnknownName,
)
from domain.ports.store import Store
from tests.postgres import Cluster, running_cluster


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "mendwork.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    async with await open_store(f"sqlite:///{path}") as store:
        yield store


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, timeout=20)) as connection, connection:
        connection.execute(statement)


def write_nonsense(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is a text file, and not a short one" * 100)


class TestDamage:
    async def test_a_damaged_event_is_named_its_build_marked_and_others_are_served(
        self, store: Store, path: Path
    ) -> None:
        await store.events.append([*whole_build("build-a-1"), *whole_build("build-a-2")])
        change(path, "UPDATE events SET data = '{\"phase\":\"done\"}' WHERE build = 'build-a-1' AND sequence = 2")
        with pytest.raises(EventUnreadable, match="run-build-a-1/run-build-a-1/2 of build build-a-1"):
            await store.events.read("build-a-1")
        assert await store.builds.get("build-a-1") == row(damaged="run-build-a-1/run-build-a-1/2")
        assert len(await store.events.read("build-a-2")) == 5
        assert await store.builds.get("build-a-2") == row("build-a-2")

    async def test_events_before_and_after_a_damaged_one_are_still_recorded(self, store: Store, path: Path) -> None:
        await store.events.append(whole_build()[:2])
        change(path, "UPDATE events SET kind = 'build.strange' WHERE sequence = 2")
        change(path, "UPDATE events SET data = 'no json' WHERE sequence = 1")
        await store.events.append(whole_build()[2:])
        found = await store.builds.get("build-a-1")
        assert found is not None
        assert found.damaged == "run-build-a-1/run-build-a-1/1"

    async def test_a_mark_stays_when_the_build_goes_on(self, store: Store, path: Path) -> None:
        await store.events.append(whole_build()[:3])
        change(path, "UPDATE events SET at = 1 WHERE sequence = 3")
        with pytest.raises(EventUnreadable):
            await store.events.read("build-a-1")
        await store.events.append(whole_build()[3:])
        assert await store.builds.get("build-a-1") == row(damaged="run-build-a-1/run-build-a-1/3")

    async def test_a_file_that_is_no_database_is_a_defect_with_a_sentence(self, path: Path) -> None:
        write_nonsense(path)
        with pytest.raises(Defect, match="damaged: file is not a database"):
            await open_store(f"sqlite:///{path}")


class TestShortage:
    async def test_a_full_disk_pauses_with_a_resource_error_and_no_half_batch(self, store: Store) -> None:
        await store.events.append(whole_build()[:1])
        large = [event(n, task="one", text="x" * 1000) for n in range(2, 600)]
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # files stop growing, as on a full disk
        try:
            with pytest.raises(ResourceShort, match="no room to write"):
                await store.events.append(large)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert len(await store.events.read("build-a-1")) == 1
        assert await store.events.append(large) == 598

    async def test_a_writer_that_holds_the_file_too_long_makes_the_store_unavailable(
        self, store: Store, path: Path
    ) -> None:
        impatient = Database(URL.create("sqlite+aiosqlite", database=str(path)), busy_seconds=0.05)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
                await SqlEventLog(impatient).append(whole_build())
            assert list(await SqlEventLog(impatient).read("build-a-1")) == [], "readers do not wait for writers"
            other.execute("ROLLBACK")
        assert await SqlEventLog(impatient).append(whole_build()) == 5
        await impatient.close()

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (psycopg.errors.DiskFull("x"), ResourceShort),
            (psycopg.errors.OutOfMemory("x"), ResourceShort),
            (psycopg.errors.TooManyConnections("x"), StoreUnavailable),
            (psycopg.errors.AdminShutdown("x"), StoreUnavailable),
            (psycopg.errors.DeadlockDetected("x"), StoreUnavailable),
            (psycopg.errors.ReadOnlySqlTransaction("x"), StoreUnavailable),
            (psycopg.errors.IdleInTransactionSessionTimeout("x"), StoreUnavailable),
            (psycopg.OperationalError("server closed the connection unexpectedly"), StoreUnavailable),
            (psycopg.errors.UndefinedTable("x"), Defect),
            (psycopg.errors.UniqueViolation("Key (key)=(contents of a row) already exists"), Defect),
            (sqlite3.OperationalError("near SELEC: syntax error"), Defect),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
    )
    def test_what_a_driver_raises_says_who_can_act(self, error: Exception, kind: type[MendworkError]) -> None:
        wrapped = exc.DBAPIError.instance("INSERT …", {}, error, Exception)
        with pytest.raises(kind) as caught, translated("postgresql://host/name"):
            raise wrapped
        assert type(caught.value) is kind
        assert "contents of a row" not in "".join(traceback.format_exception(caught.value))


PASSWORD = "hunter2"


class TestAddress:
    @pytest.mark.parametrize("url", ["mysql://root@host/x", "", "mendwork.db", "oracle+driver://host"])
    async def test_an_unknown_scheme_lists_the_known_ones(self, url: str) -> None:
        with pytest.raises(UnknownName, match="known: memory, postgresql, sqlite"):
            await open_store(url)

    @pytest.mark.parametrize(
        "url",
        [
            "sqlite://",
            "sqlite:///:memory:",
            "sqlite:///file:x.db?uri=true",
            "postgresql://u:hunter2@host:port/x",
            "postgresql:hunter2",
        ],
    )
    async def test_a_url_that_cannot_work_is_refused_without_repeating_it(self, url: str) -> None:
        with pytest.raises(InvalidInput, match=r"^store: ") as caught:
            await open_store(url)
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))

    async def test_a_password_is_in_no_error_and_no_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        with pytest.raises(StoreUnavailable, match=r"mendwork:\*\*\*@127.0.0.1:1/x cannot be reached") as caught:
            await open_store(f"postgresql://mendwork:{PASSWORD}@127.0.0.1:1/x")
        assert PASSWORD not in "".join(traceback.format_exception(caught.value)) + caplog.text

    async def test_a_folder_that_cannot_be_made_is_a_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StoreUnavailable, match=r"cannot be created: (Not a directory|File exists)"):
            await open_store(f"sqlite:///{tmp_path / 'file' / 'mendwork.db'}")

    async def test_the_file_and_its_folder_are_for_their_owner_alone(self, store: Store, path: Path) -> None:
        await store.events.append(whole_build())
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (path.parent, *path.parent.iterdir())}
        assert modes == {"state": 0o700, "mendwork.db": 0o600, "mendwork.db-wal": 0o600, "mendwork.db-shm": 0o600}

    async def test_sqlite_syncs_every_commit_and_keeps_a_log_beside(self, path: Path, store: Store) -> None:
        database = Database(URL.create("sqlite+aiosqlite", database=str(path)))

        async def pragmas(connection: AsyncConnection) -> list[object]:
            names = ("journal_mode", "synchronous", "busy_timeout")
            return [(await connection.exec_driver_sql(f"PRAGMA {name}")).scalar() for name in names]

        found = await database.read(pragmas)
        await database.close()
        assert found == ["wal", 2, 20_000]


async def test_a_cancelled_append_is_whole_or_nothing_and_the_store_goes_on(store: Store) -> None:
    for number in range(60):
        build = f"build-a-{number}"
        append = asyncio.create_task(store.events.append(whole_build(build)))
        await asyncio.wait([append], timeout=number * 0.0002)  # over the loop, at every point of a transaction
        append.cancel()
        await asyncio.gather(append, return_exceptions=True)
        assert len(await store.events.read(build)) in (0, 5)
        await store.events.append(whole_build(build))
        assert await store.builds.get(build) == row(build)


async def test_a_cancelled_reader_holds_nothing(store: Store, path: Path) -> None:
    await store.events.append(whole_build())
    for number in range(60):
        read = asyncio.create_task(store.events.read("build-a-1"))
        await asyncio.wait([read], timeout=number * 0.0001)
        read.cancel()
        await asyncio.gather(read, return_exceptions=True)
    with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as other:
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "a reader is still there"


async def test_a_database_that_restarts_is_unavailable_and_then_works_again() -> None:
    with running_cluster() as cluster:
        async with await open_store(cluster.create()) as store:
            await store.events.append(whole_build()[:2])
            cluster.stop(mode="immediate")
            with pytest.raises(StoreUnavailable):
                await store.events.append(whole_build())
            with pytest.raises(StoreUnavailable):
                await store.builds.list()
            cluster.start()
            assert await store.events.append(whole_build()) == 3
            assert await store.builds.get("build-a-1") == row()


async def test_a_connection_cut_inside_an_append_leaves_it_out_or_in(cluster: Cluster, postgres_url: str) -> None:
    events = [event(n, task="one", text="x" * 500) for n in range(1, 3000)]
    async with await open_store(postgres_url) as store:
        append = asyncio.create_task(store.events.append(events))
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}' AND query LIKE 'INSERT%'"
        name = postgres_url.partition("@/")[2].partition("?")[0]
        while not append.done():
            await asyncio.to_thread(cluster.execute, cut.format(name))
        outcome = (await asyncio.gather(append, return_exceptions=True))[0]
        assert outcome == 2999 or isinstance(outcome, StoreUnavailable)
        assert len(await store.events.read("build-a-1")) in (0, 2999)
        await store.events.append(events)
        assert len(await store.events.read("build-a-1")) == 2999


async def test_a_conflict_is_found_by_a_worker_that_overtook(postgres_url: str) -> None:
    async with await open_store(postgres_url) as one, await open_store(postgres_url) as other:
        outcomes = await asyncio.gather(
            one.events.append([event(1, n=1)]), other.events.append([event(1, n=2)]), return_exceptions=True
        )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == [EventConflict.__name__, "int"]


def test_a_process_ends_by_itself_once_the_store_is_closed(path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom adapters.store import open_store\n"
        "async def main():\n    async with await open_store(sys.argv[1]) as store:\n"
        "        print(await store.builds.reserve_number('a'))\nasyncio.run(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"sqlite:///{path}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)


def test_the_registry_imports_no_database() -> None:
    program = (
        "import sys, adapters.store, adapters.blobs; print([m for m in ('sqlalchemy', 'alembic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
