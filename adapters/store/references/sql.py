"""The reference table in a database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Select, delete, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.builds import SqlBuilds
from adapters.store.content import event_digest
from adapters.store.database import Database
from adapters.store.delivery.content import read as read_release
from adapters.store.events import SqlEventLog
from adapters.store.references.reading import (
    TAKEN,
    Seen,
    build_holder,
    damaged,
    names_of_build,
    names_of_release,
    release_holder,
    snapshot_holder,
)
from adapters.store.tables import blob_holders, blob_references, calls, releases, undo
from adapters.store.tables import events as log
from domain.errors import EventUnreadable
from domain.keeping.holders import BUILD, RELEASE, Holder
from domain.keeping.references import checksum, named_in
from domain.ports.releases import Release
from domain.ports.store import BuildRow, Event, UndoRecord

LOCK = "references"
EVERY_BUILD = 10_000_000
AT_ONCE = 500  # rows a statement: databases limit its parameters


class SqlReferences:
    """``domain.ports.kept.keeping.References``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events = SqlEventLog(database)
        self._builds = SqlBuilds(database)

    async def holders(self) -> Sequence[Holder]:
        rows = {row.build: row for row in await self._builds.list(limit=EVERY_BUILD)}
        seen = await self._seen()
        builds = [build_holder(build, seen[build], rows.get(build)) for build in sorted(seen)]
        return [*builds, *await self._snapshots(rows), *map(release_holder, await self._releases())]

    async def named(self, holder: Holder) -> Mapping[str, str]:
        if holder.kind == RELEASE:
            query = _contents().where(releases.c.project == holder.project, releases.c.number == holder.number)
            return {} if not (found := await self._read_releases(query)) else names_of_release(found[0])
        events = [event for _, event in await self._events.read(holder.owner)]
        if holder.kind == BUILD:
            return names_of_build(events, await self._answers(holder.name), await self._undo(holder.name))
        taken = [event for event in events if event.kind == TAKEN and event.data.get("token") == holder.name]
        return named_in([dict(event.data) for event in taken])

    async def recorded(self, holder: Holder) -> Mapping[str, str] | None:
        async def work(connection: AsyncConnection) -> tuple[Any, list[Any]]:
            query = select(blob_holders).where(blob_holders.c.holder == holder.name)
            names = select(blob_references).where(blob_references.c.holder == holder.name)
            return (await connection.execute(query)).first(), list(await connection.execute(names))

        row, listed = await self._database.read(work)
        names = {each.digest: each.what for each in listed}
        if row is None and not names:
            return None
        if row is None or row.checksum != checksum(names):
            raise damaged(holder.name)
        return names if row.state == holder.state else None

    async def record(self, holder: Holder, names: Mapping[str, str]) -> None:
        rows = [{"holder": holder.name, "digest": digest, "what": names[digest]} for digest in sorted(names)]
        row = {"holder": holder.name, "state": holder.state, "checksum": checksum(names)}

        async def work(connection: AsyncConnection) -> None:
            await _forget(connection, [holder.name])
            await connection.execute(blob_holders.insert().values(row))
            if rows:
                await connection.execute(blob_references.insert(), rows)

        await self._database.write(LOCK, work)

    async def forget(self, holders: Sequence[str] = ()) -> None:
        async def work(connection: AsyncConnection) -> None:
            await _forget(connection, holders)

        await self._database.write(LOCK, work)

    async def _seen(self) -> dict[str, Seen]:
        """Every build that anything tells of. ``events rebuild`` writes its rows at new positions."""
        logged, called, registered = [
            {row.build: row for row in await self._rows(query)} for query in (_LOGGED, _CALLED, _REGISTERED)
        ]
        found: dict[str, Seen] = {}
        for build in {*logged, *called, *registered}:
            rows = [part.get(build) for part in (logged, called, registered)]
            times = [time for row in rows[:2] if row for time in (row.first, row.last)] or [0]
            state = "/".join(":".join(map(str, row[3:])) if row else "" for row in rows)
            found[build] = Seen(first=min(times), last=max(times), state=state)
        return found

    async def _snapshots(self, rows: Mapping[str, BuildRow]) -> list[Holder]:
        holders = []
        for row in await self._rows(select(log).where(log.c.kind == TAKEN).order_by(log.c.position)):
            event = _whole(row)
            project = rows[event.build].project if event.build in rows else ""
            holders.append(snapshot_holder(event, project=project, state=row.digest))
        return holders

    async def _releases(self) -> list[Release]:
        return await self._read_releases(_contents().order_by(releases.c.project, releases.c.number))

    async def _read_releases(self, query: Select[Any]) -> list[Release]:
        contents = [row.content for row in await self._rows(query)]
        return [release for content in contents if (release := read_release(content)) is not None]

    async def _answers(self, build: str) -> list[tuple[str, str]]:
        rows = await self._rows(select(calls.c.answer, calls.c.value).where(calls.c.build == build))
        return [(row.answer or "", row.value or "") for row in rows]

    async def _undo(self, build: str) -> list[UndoRecord]:
        rows = await self._rows(select(undo).where(undo.c.build == build))
        return [UndoRecord(key=r.key, build=r.build, action=r.action, data=json.loads(r.data)) for r in rows]

    async def _rows(self, query: Select[Any]) -> list[Any]:
        async def work(connection: AsyncConnection) -> list[Any]:
            return list(await connection.execute(query))

        return await self._database.read(work)


def _counted(table: Any, *more: Any, at: Any) -> Select[Any]:
    """A row a build: its first and last time, and what changes when any of its rows does."""
    times = (func.min(at).label("first"), func.max(at).label("last"))
    counts = (func.count(), func.max(table.c.position), *more)
    return select(table.c.build, *times, *counts).group_by(table.c.build)


_LOGGED = _counted(log, at=log.c.at)
_CALLED = _counted(calls, func.count(calls.c.answer), func.count(calls.c.value), at=calls.c.at)
_REGISTERED = _counted(undo, at=literal(0))


def _contents() -> Select[Any]:
    return select(releases.c.content).where(releases.c.content != "")


def _whole(row: Any) -> Event:
    """Raises EventUnreadable when the row is not what was appended."""
    fields = ("first_run", "run", "sequence", "build", "task", "attempt", "kind", "at")
    event = Event(**{name: getattr(row, name) for name in fields})
    if event_digest(event, row.data) != row.digest:
        raise EventUnreadable(f"event {event.key} of build {event.build} is damaged")
    return replace(event, data=json.loads(row.data))


async def _forget(connection: AsyncConnection, holders: Sequence[str]) -> None:
    for table in (blob_references, blob_holders):
        if not holders:
            await connection.execute(delete(table))
        for start in range(0, len(holders), AT_ONCE):
            part = table.c.holder.in_(holders[start : start + AT_ONCE])
            await connection.execute(delete(table).where(part))
