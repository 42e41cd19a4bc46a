"""Builds as people list them, and their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import Database
from adapters.store.tables import builds, numbers
from domain.ports.store import BuildRow


class SqlBuilds:
    """``domain.ports.store.Builds``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def reserve_number(self, project: str) -> int:
        insert = self._database.insert(numbers).values(project=project, last=1)
        reserve = insert.on_conflict_do_update(index_elements=[numbers.c.project], set_={"last": numbers.c.last + 1})

        async def work(connection: AsyncConnection) -> int:
            number: int = (await connection.execute(reserve.returning(numbers.c.last))).scalar_one()
            return number

        return await self._database.write(f"number {project}", work)

    async def list(self, *, project: str | None = None, limit: int = 50) -> Sequence[BuildRow]:
        query = select(builds).order_by(builds.c.started.desc(), builds.c.build.desc()).limit(limit)
        if project is not None:
            query = query.where(builds.c.project == project)
        rows = (await self._database.read(lambda connection: connection.execute(query))).mappings()
        return [BuildRow(**row) for row in rows]

    async def get(self, build: str) -> BuildRow | None:
        query = select(builds).where(builds.c.build == build)
        row = (await self._database.read(lambda connection: connection.execute(query))).mappings().first()
        return None if row is None else BuildRow(**row)
