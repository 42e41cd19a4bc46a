"""Connections to PostgreSQL: how many, how patient, and what it says when there are no more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.compliance.store import event, whole_build
from adapters.store import open_store
from adapters.store.database import Database
from adapters.store.events import SqlEventLog
from adapters.store.pool import Pool, pool_of
from adapters.store.sql import DRIVERS
from domain.errors import InvalidInput, StoreUnavailable, Transient
from domain.ports.store import Store
from tests.postgres import Cluster

ROOMY = (
    "postgresql://ann@db.example/mendwork?pool_size=20&pool_overflow=0&pool_timeout=3&pool_recycle=60&sslmode=require"
)


def database(url: str, **options: Any) -> Database:
    parsed, pool = pool_of(make_url(url))
    return Database(parsed.set(drivername=DRIVERS["postgresql"]), pool=pool, **options)


@contextmanager
def session(cluster: Cluster, url: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's, inside a transaction."""
    name = url.partition("@/")[2].partition("?")[0]
    with psycopg.connect(host=str(cluster.folder), user=cluster.user, dbname=name) as connection:
        yield connection


def hold_appends(connection: psycopg.Connection[Any]) -> None:
    """As a worker does that stopped in the middle of an append."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('mendwork events', 0))")


class TestSettings:
    def test_are_told_by_the_url_and_taken_out_of_it(self) -> None:
        url, pool = pool_of(make_url(ROOMY))
        assert pool == Pool(size=20, overflow=0, timeout=3, recycle=60)
        assert dict(url.query) == {"sslmode": "require"}

    def test_have_defaults_that_two_hosts_of_workers_fit_into_a_server_with(self) -> None:
        _, pool = pool_of(make_url("postgresql://ann@db.example/mendwork"))
        assert pool == Pool()
        assert 2 * 2 * (pool.size + pool.overflow) < 100

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            ("pool_size=0", "pool_size is a whole number from 1 to 100000"),
            ("pool_size=five", "pool_size is a whole number"),
            ("pool_size=-1", "pool_size is a whole number"),
            ("pool_size=²", "pool_size is a whole number"),
            ("pool_size=" + "9" * 5000, "pool_size is a whole number"),
            ("pool_size=1&pool_size=2", "given once"),
            ("pool_timeout=0.5", "pool_timeout is a whole number from 1"),
            ("pool_overflow=x", "pool_overflow is a whole number from 0"),
            ("pool_max=5", "unknown setting 'pool_max' of its pool; known: pool_overflow, pool_recycle, pool_size"),
        ],
        ids=lambda value: value[:30],
    )
    async def test_that_cannot_be_are_refused_with_the_reason(self, words: str, sentence: str) -> None:
        with pytest.raises(InvalidInput, match=sentence) as caught:
            await open_store(f"postgresql://ann:hunter2@db.example/mendwork?{words}")
        assert "hunter2" not in str(caught.value)

    async def test_are_not_for_sqlite(self, tmp_path: Any) -> None:
        with pytest.raises(InvalidInput, match="a SQLite store is a file"):
            await open_store(f"sqlite:///{tmp_path}/mendwork.db?pool_size=5")

    def test_a_password_that_is_given_as_a_setting_is_in_no_name(self) -> None:
        named = database("postgresql://ann@db.example/mendwork?password=hunter2&sslpassword=hunter3").name
        assert "hunter" not in named
        assert "db.example/mendwork" in named


class TestConnections:
    async def test_are_never_more_than_was_said(self, postgres_url: str) -> None:
        held = database(f"{postgres_url}&pool_size=2&pool_overflow=1")
        pids = set()

        async def look(connection: AsyncConnection) -> None:
            pids.add(await connection.scalar(text("SELECT pg_backend_pid() FROM pg_sleep(0.02)")))

        await asyncio.gather(*(held.read(look) for _ in range(20)))
        await held.close()
        assert len(pids) <= 3

    async def test_that_are_old_are_replaced(self, postgres_url: str) -> None:
        held = database(f"{postgres_url}&pool_recycle=1")

        async def pid(connection: AsyncConnection) -> int:
            found: int = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()
            return found

        first = await held.read(pid)
        await asyncio.sleep(1.2)  # their age is what is tested
        second = await held.read(pid)
        await held.close()
        assert first != second

    async def test_keep_what_the_url_says_of_them_and_end_every_wait(self, postgres_url: str) -> None:
        held = database(f"{postgres_url}&application_name=night&options=-c%20work_mem%3D8MB")

        async def shown(connection: AsyncConnection) -> list[object]:
            names = ("application_name", "work_mem", "lock_timeout", "idle_in_transaction_session_timeout")
            return [(await connection.execute(text(f"SHOW {name}"))).scalar() for name in names]

        found = await held.read(shown)
        await held.close()
        assert found == ["night", "8MB", "20s", "1min"]


async def open_again(url: str) -> Store:
    """As soon as the server has noticed that the connection before was closed."""
    until = time.monotonic() + 30
    while True:
        try:
            return await open_store(url)
        except StoreUnavailable:
            assert time.monotonic() < until
            await asyncio.sleep(0.02)


class TestExhaustion:
    async def test_of_the_pool_is_transient_and_what_was_refused_can_be_appended_later(
        self, cluster: Cluster, postgres_url: str
    ) -> None:
        url = f"{postgres_url}&pool_size=1&pool_overflow=0&pool_timeout=1"
        async with await open_store(url) as store:
            with session(cluster, postgres_url) as other:
                hold_appends(other)
                appends = [asyncio.create_task(store.events.append([event(n, task="one")])) for n in range(1, 6)]
                waits = set(appends)
                while len(waits) > 1:  # one has the only connection, and waits for the lock
                    done, waits = await asyncio.wait(waits, timeout=30, return_when=asyncio.FIRST_COMPLETED)
                    assert done, "nobody waits for ever"
            refused = [each.exception() for each in appends if each not in waits]
            assert [type(each) for each in refused] == [StoreUnavailable] * 4
            assert "all connections of this process to the store" in str(refused[0])
            assert "pool_size" in str(refused[0])
            assert await waits.pop() == 1
            assert await store.events.append([event(n, task="one") for n in range(1, 6)]) == 4

    async def test_of_the_server_is_transient_and_ends_by_itself(self, cluster: Cluster, postgres_url: str) -> None:
        name = postgres_url.partition("@/")[2].partition("?")[0]
        cluster.execute(f"CREATE ROLE few_{name} LOGIN CONNECTION LIMIT 1")
        cluster.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO few_{name}", database=name)
        cluster.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO few_{name}", database=name)
        url = postgres_url.replace(f"{cluster.user}@", f"few_{name}@", 1)
        async with await open_store(url) as one:
            await one.builds.list()
            with pytest.raises(StoreUnavailable, match="too many connections"):
                await open_store(url)
            appends = [one.events.append([event(n, task="one")]) for n in range(1, 9)]
            outcomes = await asyncio.gather(*appends, return_exceptions=True)
            assert all(outcome == 1 or isinstance(outcome, Transient) for outcome in outcomes)
        async with await open_again(url) as later:
            await later.events.append([event(n, task="one") for n in range(1, 9)])
            assert len(await later.events.read("build-a-1")) == 8


async def test_a_worker_that_stopped_inside_an_append_holds_the_others_up_for_so_long_only(
    cluster: Cluster, postgres_url: str
) -> None:
    impatient = database(postgres_url, busy_seconds=0.2)
    with session(cluster, postgres_url) as other:
        hold_appends(other)
        with pytest.raises(StoreUnavailable, match="55P03"):
            await SqlEventLog(impatient).append(whole_build())
    assert await SqlEventLog(impatient).append(whole_build()) == 5
    await impatient.close()


async def test_a_worker_that_slept_inside_a_transaction_is_cut_off_and_told_to_try_again(postgres_url: str) -> None:
    sleepy = database(f"{postgres_url}&options=-c%20idle_in_transaction_session_timeout%3D100")

    async def sleep(connection: AsyncConnection) -> None:
        await connection.execute(text("SELECT 1"))
        await asyncio.sleep(0.5)  # the server's clock is what is tested
        await connection.execute(text("SELECT 2"))

    with pytest.raises(StoreUnavailable):
        await sleepy.write("events", sleep)
    await sleepy.close()
    async with await open_store(postgres_url) as store:
        assert await store.events.append(whole_build()) == 5, "it holds no lock any more"
