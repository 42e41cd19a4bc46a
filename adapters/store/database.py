"""One engine for both databases: who may write, in which transaction, and what a driver's error means to us."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import URL, Connection, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from adapters.store.arrivals.bell import WORD
from adapters.store.arrivals.listening import CHANNEL
from adapters.store.driver.turns import open_driver
from adapters.store.faults import translated
from adapters.store.pool import Pool
from domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from psycopg import AsyncConnection as Apart

T = TypeVar("T")

BUSY_SECONDS = 20
READING = "mendwork_reading"


class Database:
    """Transactions on one URL. Raises our errors only; nothing of the URL's password or of a row is in them."""

    def __init__(self, url: URL, *, busy_seconds: float = BUSY_SECONDS, pool: Pool | None = None) -> None:
        self.name = url.difference_update_query(_SECRETS).render_as_string(hide_password=True)
        self._url = url
        self._sqlite = url.get_backend_name() == "sqlite"
        options = _lite(busy_seconds) if self._sqlite else _postgres(url, busy_seconds, pool)
        self._engine = create_async_engine(url, hide_parameters=True, **options)
        self._readers = self._engine.execution_options(**{READING: True})
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._admitted = False
        if self._sqlite:
            event.listen(self._engine.sync_engine, "connect", _tune_sqlite)
            event.listen(self._engine.sync_engine, "begin", _begin_sqlite)

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """What ``work`` returns, in a transaction that only reads: it never waits for a writer."""
        return await self._to_its_end(self._read(work))

    async def write(self, lock: str, work: Callable[[AsyncConnection], Awaitable[T]], *, tell: Iterable[str] = ()) -> T:
        """What ``work`` returns, in a transaction that writes: after every other one with the same ``lock`` has ended,
        and all of it or nothing. SQLite has one writer at a time anyway, so there the lock is the database's.
        Once it is committed, who waits for the builds ``tell`` is woken; on SQLite the file itself tells.
        """
        return await self._to_its_end(self._write(lock, work, sorted({build[:WORD] for build in tell})))

    async def _read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        with translated(self.name, admitted=self._admitted):
            async with self._readers.begin() as connection:
                return await work(connection)

    async def _write(self, lock: str, work: Callable[[AsyncConnection], Awaitable[T]], tell: list[str]) -> T:
        with translated(self.name, admitted=self._admitted):
            async with self._engine.begin() as connection:
                await self.lock(connection, lock, tell=tell)
                return await work(connection)

    async def lock(self, connection: AsyncConnection, name: str, *, tell: Sequence[str] = ()) -> None:
        """Take another lock for the rest of a transaction of ``write``; always after those that others take first.

        What is to be told goes with it, to save a round trip: PostgreSQL keeps it until the commit.
        """
        if self._sqlite:
            return
        given: dict[str, Any] = {"lock": f"mendwork {name}"}
        if tell:
            await connection.execute(_LOCK_AND_NOTIFY, given | {"channel": CHANNEL, "builds": list(tell)})
        else:
            await connection.execute(_ADVISORY_LOCK, given)

    @property
    def path(self) -> Path | None:
        """The file of SQLite; None for PostgreSQL."""
        return Path(self._url.database or "") if self._sqlite else None

    async def connect_apart(self) -> Apart[Any]:
        """A connection to PostgreSQL beside the pool, in autocommit. Raises psycopg.Error."""
        from psycopg import AsyncConnection as Connecting

        _, parameters = self._engine.dialect.create_connect_args(self._url)
        return await Connecting.connect(autocommit=True, **{**parameters, **_connecting(self._url, BUSY_SECONDS)})

    def insert(self, table: Any) -> Any:
        """The dialect's INSERT, which has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
        return sqlite.insert(table) if self._sqlite else postgresql.insert(table)

    def admit(self) -> None:
        """It let us in and has our tables. From now on a refusal is an outage: a password that is being changed, a
        database that is being restored. What runs waits for the end of that instead of failing."""
        self._admitted = True

    async def close(self) -> None:
        """End what runs, begin nothing more, close every connection. May be repeated."""
        self._closed = True
        while self._running:
            await asyncio.wait(self._running)
        await self._engine.dispose()

    async def _to_its_end(self, transaction: Coroutine[Any, Any, T]) -> T:
        """Finish the transaction also when the caller is cancelled: cut in the middle, aiosqlite would leave a
        connection that holds the write lock. Bounded, because every wait inside is."""
        if self._closed:
            transaction.close()
            raise StoreUnavailable(f"the store {self.name} was closed by this process")
        task = asyncio.create_task(transaction)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            while not task.done():
                with suppress(asyncio.CancelledError):  # asked again; raised below
                    await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # looked at: nobody is left to tell
            raise


_SECRETS = ["password", "sslpassword"]
"""What libpq takes as a query of its URL, too."""


def _lite(busy_seconds: float) -> dict[str, Any]:
    return {"connect_args": {"timeout": busy_seconds}, "module": open_driver()}


def _postgres(url: URL, busy_seconds: float, pool: Pool | None) -> dict[str, Any]:
    pool = pool or Pool()
    return {
        "connect_args": _connecting(url, busy_seconds),
        "max_overflow": pool.overflow,
        "pool_pre_ping": True,
        "pool_recycle": pool.recycle,
        "pool_size": pool.size,
        "pool_timeout": pool.timeout,
    }


def _connecting(url: URL, busy_seconds: float) -> dict[str, Any]:
    """What a connection needs so that every wait on it ends: for the server, for a lock, and of the server for us, when
    this host is lost inside a transaction. What the URL says itself comes before it."""
    waits = f"-c lock_timeout={round(busy_seconds * 1000)} -c idle_in_transaction_session_timeout=60000"
    given = url.query.get("options", "")
    own = {
        "connect_timeout": 10,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 60_000,
    }
    kept = {name: value for name, value in own.items() if name not in url.query}
    return kept | {"options": f"{waits} {given if isinstance(given, str) else ' '.join(given)}".strip()}


_ADVISORY_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:lock, 0))")
_LOCK_AND_NOTIFY = text(
    "SELECT pg_advisory_xact_lock(hashtextextended(:lock, 0)), pg_notify(:channel, build)"
    " FROM unnest(CAST(:builds AS text[])) AS build"
)


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
