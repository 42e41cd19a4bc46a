"""Places of a project's tasks."""

from __future__ import annotations

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.content import no_place
from adapters.store.database import Database
from adapters.store.tables import places


class SqlPlaces:
    """``domain.ports.ledger.Places``. Those who take one of a project come one after the other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, project: str, holder: str, *, build: str, limit: int) -> None:
        async def work(connection: AsyncConnection) -> bool:
            query = select(places.c.holder).where(places.c.project == project, places.c.holder == holder)
            if await connection.scalar(query) is not None:
                return True
            query = select(func.count()).select_from(places).where(places.c.project == project)
            if (await connection.scalar(query) or 0) >= limit:
                return False
            await connection.execute(places.insert().values(project=project, holder=holder, build=build))
            return True

        if not await self._database.write(f"places {project}", work):
            raise no_place(project, limit)

    async def give(self, project: str, holder: str) -> None:
        statement = delete(places).where(places.c.project == project, places.c.holder == holder)
        await self._database.write(f"places {project}", lambda connection: connection.execute(statement))

    async def free(self, build: str) -> int:
        statement = delete(places).where(places.c.build == build)
        done = await self._database.write(f"places of {build}", lambda connection: connection.execute(statement))
        return done.rowcount
