"""Releases in a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import Database
from adapters.store.delivery.content import check_owner, is_newer, read, written
from adapters.store.tables import releases
from domain.ports.releases import Release


class SqlReleases:
    """``domain.ports.releases.Releases``. ``content`` is "" while a number is only reserved."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def reserve(self, project: str, *, saga: str) -> int:
        async def work(connection: AsyncConnection) -> int:
            number = await _number(connection, project, saga)
            if not number:
                last = await connection.scalar(select(func.max(releases.c.number)).where(_of(project)))
                number = (last or 0) + 1
                row = {"project": project, "number": number, "saga": saga, "revision": 0, "content": ""}
                await connection.execute(releases.insert().values(row))
            return number

        return await self._database.write(_lock(project), work)

    async def record(self, release: Release) -> None:
        content = written(release)
        this = _of(release.project) & (releases.c.number == release.number)
        values = {"revision": release.revision, "content": content}
        key = {"project": release.project, "number": release.number, "saga": release.saga}

        async def work(connection: AsyncConnection) -> None:
            row = (await connection.execute(select(releases).where(this))).first()
            owned = await _number(connection, release.project, release.saga)
            check_owner(release, owner=row.saga if row else "", owned=owned)
            if row is None:
                await connection.execute(releases.insert().values(key | values))
            elif is_newer(release, content, there=row.content):
                await connection.execute(update(releases).where(this).values(values))

        await self._database.write(_lock(release.project), work)

    async def get(self, project: str, number: int) -> Release | None:
        query = select(releases.c.content).where(_of(project), releases.c.number == number)

        async def work(connection: AsyncConnection) -> str:
            return await connection.scalar(query) or ""

        return read(await self._database.read(work))

    async def list(self, project: str, *, limit: int = 50) -> Sequence[Release]:
        query = select(releases.c.content).where(_of(project), releases.c.content != "")
        query = query.order_by(releases.c.number.desc()).limit(limit)
        contents = await self._database.read(lambda connection: connection.scalars(query))
        return [release for content in contents if (release := read(content)) is not None]


def _of(project: str) -> Any:
    return releases.c.project == project


def _lock(project: str) -> str:
    return f"releases {project}"


async def _number(connection: AsyncConnection, project: str, saga: str) -> int:
    """The saga's release number, 0 when it has none."""
    query = select(releases.c.number).where(_of(project), releases.c.saga == saga)
    return await connection.scalar(query) or 0
