"""``domain.ports.kept.arrivals.Arrivals`` on a database."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import select

from adapters.store.arrivals.bell import News, until_there
from adapters.store.database import Database
from adapters.store.tables import events as log


class ClosingNews(News, Protocol):
    """News that hold a connection."""

    async def close(self) -> None: ...


class SqlArrivals:
    """A look is one row of an index, in a transaction that only reads."""

    def __init__(self, database: Database, news: ClosingNews) -> None:
        self._database = database
        self._news = news

    async def wait(self, build: str, *, after: int, seconds: float) -> bool:
        query = select(log.c.position).where(log.c.build == build, log.c.position > after).limit(1)

        async def look() -> bool:
            return await self._database.read(lambda connection: connection.scalar(query)) is not None

        return await until_there(self._news, look, build=build, seconds=seconds)

    async def close(self) -> None:
        """End every wait and release what brings the news. May be repeated."""
        await self._news.close()
