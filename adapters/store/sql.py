"""The store on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import Self

from sqlalchemy import URL, exc, make_url

from adapters.store.arrivals.listening import Listening
from adapters.store.arrivals.sql import SqlArrivals
from adapters.store.arrivals.watching import Watching
from adapters.store.builds import SqlBuilds
from adapters.store.database import Database
from adapters.store.delivery.releases import SqlReleases
from adapters.store.events import SqlEventLog
from adapters.store.migrate import upgrade
from adapters.store.money.calls import SqlCalls
from adapters.store.money.ledger import SqlLedger
from adapters.store.money.places import SqlPlaces
from adapters.store.pool import pool_of
from adapters.store.references.sql import SqlReferences
from adapters.store.sqlite_file import prepare
from adapters.store.undo import SqlUndoLog
from domain.errors import InvalidInput

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg"}


class SqlStore:
    """The nine ports on one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.events = SqlEventLog(database)
        self.calls = SqlCalls(database)
        self.undo = SqlUndoLog(database)
        self.builds = SqlBuilds(database)
        self.ledger = SqlLedger(database)
        self.places = SqlPlaces(database)
        self.releases = SqlReleases(database)
        self.references = SqlReferences(database)
        news = Listening(database.connect_apart) if database.path is None else Watching(database.path)
        self.arrivals = SqlArrivals(database, news)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.arrivals.close()
        await self._database.close()


async def open_sql(url: str) -> SqlStore:
    """``sqlite:///path`` or ``postgresql://user@host/name``; the tables are brought up to date.

    PostgreSQL's URL may hold what libpq knows (``sslmode=verify-full``), and the pool's settings: see ``Pool``.

    Raises InvalidInput without the URL in it, CredentialsRefused, StoreUnavailable, ResourceShort.
    """
    parsed, pool = pool_of(_parsed(url))
    database = Database(parsed, pool=pool)
    try:
        if database.path is not None:
            await asyncio.to_thread(prepare, database.path, name=database.name)
        await upgrade(database)
        database.admit()
    except BaseException:
        await database.close()
        raise
    return SqlStore(database)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
        parsed = parsed.set(drivername=DRIVERS[parsed.get_backend_name()])
    except (exc.ArgumentError, KeyError, ValueError):
        raise InvalidInput("store: not a URL like sqlite:////folder/file.db or postgresql://user@host/name") from None
    if parsed.get_backend_name() == "sqlite" and (parsed.database in (None, "", ":memory:") or parsed.query):
        raise InvalidInput("store: a SQLite store is a file that several processes share: sqlite:////folder/file.db")
    return parsed
