"""SQLite through aiosqlite, with one turn of the connection's thread for each statement.

aiosqlite's own cursor takes four (open, execute, fetch, close), and each costs two switches of threads: most of what a
short transaction took. What a statement gives is small and is fetched at once here as there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Self

import aiosqlite
from sqlalchemy.dialects.sqlite.aiosqlite import dialect

Given = tuple[Any, int, int | None, list[Any]]


class _Connection(aiosqlite.Connection):
    """What SQLAlchemy takes for the driver's own."""

    def cursor(self) -> Any:
        return _Cursor(self)

    async def rollback(self) -> None:
        """The pool asks for one after every commit, too."""
        if self.in_transaction:
            await super().rollback()

    async def turn(self, function: Callable[..., Given], *given: Any) -> Given:
        """What ``function`` returns for SQLite's connection, in its thread."""
        run: Callable[..., Awaitable[Given]] = self._execute  # which has no public name
        return await run(function, self._conn, *given)


class _Cursor:
    """Has the rows of the last statement and what SQLite said about it; nothing is open in between."""

    description: Any = None
    rowcount = -1
    lastrowid: int | None = None
    arraysize = 1

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._rows: list[Any] = []

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Self:
        return await self._turn(_one, operation, parameters)

    async def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[Any]]) -> Self:
        return await self._turn(_many, operation, seq_of_parameters)

    async def fetchall(self) -> list[Any]:
        return self._rows

    async def close(self) -> None:
        """It is closed already."""

    async def _turn(self, function: Callable[..., Given], operation: str, parameters: Any) -> Self:
        given = await self._connection.turn(function, operation, parameters)
        self.description, self.rowcount, self.lastrowid, self._rows = given
        return self


def open_driver() -> Any:
    """The ``module`` for ``create_async_engine``: the dialect's own, on connections of ours."""
    module: Any = dialect.import_dbapi()
    module.connect = partial(module.connect, async_creator_fn=_open)
    return module


def _open(database: str, **options: Any) -> _Connection:
    """Not connected before it is awaited."""
    connection = _Connection(partial(sqlite3.connect, database, **options), iter_chunk_size=64)
    connection._thread.daemon = True  # as SQLAlchemy has it: one that nobody closed must not hold up the exit
    return connection


def _one(connection: sqlite3.Connection, operation: str, parameters: Sequence[Any]) -> Given:
    return _given(connection.cursor(), lambda cursor: cursor.execute(operation, parameters))


def _many(connection: sqlite3.Connection, operation: str, parameters: Sequence[Sequence[Any]]) -> Given:
    return _given(connection.cursor(), lambda cursor: cursor.executemany(operation, parameters))


def _given(cursor: sqlite3.Cursor, run: Callable[[sqlite3.Cursor], object]) -> Given:
    """In the connection's thread."""
    try:
        run(cursor)
        rows = cursor.fetchall() if cursor.description else []
        return cursor.description, cursor.rowcount, cursor.lastrowid, rows
    finally:
        cursor.close()
