"""SQLite through aiosqlite, with one turn of the connection's thread for each statement.

SQLAlchemy's own cursor takes four (open, execute, fetch, close), and each costs two switches of threads: most of what a
short transaction took. What a statement gives is small and is fetched at once here as there.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.dialects.sqlite.aiosqlite import (
    AsyncAdapt_aiosqlite_connection,
    AsyncAdapt_aiosqlite_cursor,
    AsyncAdapt_aiosqlite_dbapi,
)

Given = tuple[Any, int, int | None, list[Any]]


class _Cursor(AsyncAdapt_aiosqlite_cursor):
    """Has the rows of the last statement and what SQLite said about it; nothing is open in between."""

    __slots__ = ("_said",)

    def __init__(self, adapt_connection: AsyncAdapt_aiosqlite_connection) -> None:
        self._adapt_connection = adapt_connection
        self._connection = adapt_connection._connection
        self._rows = deque()
        self._said: tuple[Any, int, int | None] = (None, -1, None)

    @property
    def description(self) -> Any:
        return self._said[0]

    @property
    def rowcount(self) -> int:
        return self._said[1]

    @property
    def lastrowid(self) -> Any:
        return self._said[2]

    def close(self) -> None:
        self._rows.clear()

    async def _async_soft_close(self) -> None:
        """It is closed already."""

    async def _execute_async(self, operation: Any, parameters: Any) -> None:
        await self._turn(_one, operation, () if parameters is None else parameters)

    async def _executemany_async(self, operation: Any, seq_of_parameters: Any) -> None:
        await self._turn(_many, operation, seq_of_parameters)

    async def _turn(self, function: Callable[..., Given], operation: str, parameters: Any) -> None:
        async with self._adapt_connection._execute_mutex:
            connection = self._connection
            *said, rows = await connection._execute(function, connection._conn, operation, parameters)
        self._said = (said[0], said[1], said[2])
        self._rows = deque(rows)


class _Connection(AsyncAdapt_aiosqlite_connection):
    __slots__ = ()
    _cursor_cls: type[AsyncAdapt_aiosqlite_cursor] = _Cursor

    def rollback(self) -> None:
        """The pool asks for one after every commit, too."""
        if self._connection._conn.in_transaction:
            super().rollback()


class Driver(AsyncAdapt_aiosqlite_dbapi):
    """The ``module`` for ``create_async_engine``."""

    def connect(self, *arg: Any, **kw: Any) -> AsyncAdapt_aiosqlite_connection:
        return _Connection(self, super().connect(*arg, **kw)._connection)


def open_driver() -> Driver:
    """Import the driver now."""
    import aiosqlite

    return Driver(aiosqlite, sqlite3)


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
