"""One engine for both databases: who may write, in which transaction, and what a driver's error means to us."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from adapters.store.faults import translated

T = TypeVar("T")

BUSY_SECONDS = 20
READING = "mendwork_reading"


class Database:
    """Transactions on one URL. Raises our errors only; nothing of the URL's password or of a row is in them."""

    def __init__(self, url: URL, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.name = url.render_as_string(hide_password=True)
        self._sqlite = url.get_backend_name() == "sqlite"
        options: dict[str, Any] = {"connect_args": {"timeout": busy_seconds}} if self._sqlite else _POSTGRES
        self._engine = create_async_engine(url, hide_parameters=True, **options)
        self._readers = self._engine.execution_options(**{READING: True})
        if self._sqlite:
            event.listen(self._engine.sync_engine, "connect", _tune_sqlite)
            event.listen(self._engine.sync_engine, "begin", _begin_sqlite)

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """What ``work`` returns, in a transaction that only reads: it never waits for a writer."""
        return await _to_its_end(self._read(work))

    async def write(self, lock: str, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """What ``work`` returns, in a transaction that writes: after every other one with the same ``lock`` has ended,
        and all of it or nothing. SQLite has one writer at a time anyway, so there the lock is the database's.
        """
        return await _to_its_end(self._write(lock, work))

    async def _read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        with translated(self.name):
            async with self._readers.begin() as connection:
                return await work(connection)

    async def _write(self, lock: str, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        with translated(self.name):
            async with self._engine.begin() as connection:
                await self.lock(connection, lock)
                return await work(connection)

    async def lock(self, connection: AsyncConnection, name: str) -> None:
        """Take another lock for the rest of a transaction of ``write``; always after those that others take first."""
        if not self._sqlite:
            await connection.execute(_ADVISORY_LOCK, {"lock": f"mendwork {name}"})

    def insert(self, table: Any) -> Any:
        """The dialect's INSERT, which has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
        return sqlite.insert(table) if self._sqlite else postgresql.insert(table)

    async def close(self) -> None:
        await self._engine.dispose()


async def _to_its_end(transaction: Coroutine[Any, Any, T]) -> T:
    """Finish the transaction also when the caller is cancelled: cut in the middle, aiosqlite would leave a connection
    that holds the write lock. Bounded, because every wait inside is."""
    task = asyncio.create_task(transaction)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):  # asked again; raised below
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at: nobody is left to tell
        raise


_POSTGRES = {"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}}
_ADVISORY_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:lock, 0))")


def _tune_sqlite(connection: Any, _: ConnectionPoolEntry) -> None:
    """FULL, because an acknowledged event must survive a power cut too: a lost one is a gap, or a call paid twice."""
    connection.isolation_level = None  # the driver would open deferred transactions of its own
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """IMMEDIATE for writers: a deferred transaction that upgrades fails at once, whatever the busy timeout."""
    reading = connection.get_execution_options().get(READING, False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
