"""Our way through aiosqlite: one turn of the connection's thread a statement, and everything that a statement says."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import exc, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adapters.store.driver.turns import open_driver


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'a.db'}", module=open_driver())
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE)"))
    yield engine
    await engine.dispose()


class Counting:
    """What a connection's thread is given, counted on its way."""

    def __init__(self, queue: Any) -> None:
        self.given: list[Any] = []
        self._queue = queue

    def put_nowait(self, item: Any) -> None:
        self.given.append(item)
        self._queue.put_nowait(item)


async def turns(connection: AsyncConnection, statement: str) -> int:
    """How many things the connection's thread is given for one statement whose rows are read."""
    raw = await connection.get_raw_connection()
    thread: Any = raw.driver_connection
    queue = thread._tx
    counting = thread._tx = Counting(queue)
    try:
        result = await connection.execute(text(statement))
        if result.returns_rows:
            result.all()
    finally:
        thread._tx = queue
    return len(counting.given)


@pytest.mark.parametrize(
    "statement", ["INSERT INTO t (name) VALUES ('b')", "SELECT * FROM t", "DELETE FROM t RETURNING id"]
)
async def test_a_statement_takes_one_turn_of_the_thread(engine: AsyncEngine, statement: str) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("INSERT INTO t (name) VALUES ('a')"))
        assert await turns(connection, statement) == 1


async def test_a_connection_that_goes_back_after_its_commit_takes_no_turn_more(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        raw = await connection.get_raw_connection()
        thread: Any = raw.driver_connection
        await connection.execute(text("INSERT INTO t (name) VALUES ('a')"))
        await connection.commit()
        queue = thread._tx
        counting = thread._tx = Counting(queue)
    thread._tx = queue
    assert counting.given == []


async def test_what_is_not_committed_is_gone_when_its_connection_goes_back(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("INSERT INTO t (name) VALUES ('a')"))
    async with engine.begin() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM t"))).scalar_one() == 0


async def test_rows_keys_counts_and_new_ids_are_those_of_sqlite(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("INSERT INTO t (id, name) VALUES (:id, :name)"), [
            {"id": number, "name": f"n{number}"} for number in range(1, 4)
        ])  # fmt: skip
        new = await connection.execute(text("INSERT INTO t (name) VALUES ('four')"))
        assert new.lastrowid == 4
        assert (await connection.execute(text("UPDATE t SET name = name || '!' WHERE id > 2"))).rowcount == 2
        result = await connection.execute(text("SELECT id, name FROM t ORDER BY id"))
        assert list(result.keys()) == ["id", "name"]
        assert [tuple(row) for row in result] == [(1, "n1"), (2, "n2"), (3, "n3!"), (4, "four!")]
        gone = await connection.execute(text("DELETE FROM t WHERE id < 3 RETURNING id"))
        assert sorted(gone.scalars()) == [1, 2]
        nothing = await connection.execute(text("SELECT id FROM t WHERE id = 99"))
        assert (nothing.first(), list(nothing.keys())) == (None, ["id"])


async def test_two_results_of_one_connection_are_read_beside_each_other(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("INSERT INTO t (name) VALUES ('a'), ('b')"))
        first = await connection.execute(text("SELECT name FROM t ORDER BY name"))
        second = await connection.execute(text("SELECT name FROM t ORDER BY name DESC"))
        assert (first.scalars().all(), second.scalars().all()) == (["a", "b"], ["b", "a"])


async def test_an_error_of_sqlite_arrives_with_its_code_and_undoes_the_transaction(engine: AsyncEngine) -> None:
    async def twice() -> None:
        async with engine.begin() as connection:
            await connection.execute(text("INSERT INTO t (name) VALUES ('a')"))
            await connection.execute(text("INSERT INTO t (name) VALUES ('a')"))

    with pytest.raises(exc.IntegrityError) as caught:
        await twice()
    assert isinstance(caught.value.orig, sqlite3.IntegrityError)
    assert caught.value.orig.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_UNIQUE
    async with engine.begin() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM t"))).scalar_one() == 0
