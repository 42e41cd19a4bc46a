"""The event log, and the rows of builds that follow from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, Update, delete, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.content import canonical, event_digest, event_key
from adapters.store.database import Database
from adapters.store.tables import builds
from adapters.store.tables import events as log
from domain.build.view import ROW_KINDS, fold_row
from domain.errors import EventConflict, EventUnreadable, InvalidInput
from domain.ports.store import Event
from domain.trace.rebuilding import Key, Rebuilt, compare

KEY = (log.c.first_run, log.c.run, log.c.sequence)
LOOKUP = 500  # keys a statement: databases limit its parameters


class SqlEventLog:
    """``domain.ports.store.EventLog``. Appends come one after the other, so positions ascend in the order of commit:
    a reader that goes on ``after`` the last position it saw misses nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, events: Sequence[Event]) -> int:
        rows = [_as_row(event) for event in events]
        if not rows:
            return 0

        async def work(connection: AsyncConnection) -> int:
            new = await self._insert(connection, rows)
            if len(new) < len(rows):
                await _compare(connection, rows)
            touched = {e.build for e in events if event_key(e) in new and not e.task and e.kind in ROW_KINDS}
            for build in sorted(touched):
                await self._refold(connection, build)
            return len(new)

        return await self._database.write("events", work, tell={event.build for event in events})

    async def read(self, build: str, *, after: int = 0) -> Sequence[tuple[int, Event]]:
        query = select(log).where(log.c.build == build, log.c.position > after).order_by(log.c.position)
        rows = (await self._database.read(lambda connection: connection.execute(query))).all()
        found, damaged = _readable(rows)
        if damaged:
            await self._database.write("events", lambda connection: connection.execute(_marking(build, damaged)))
            raise EventUnreadable(f"event {damaged} of build {build} is damaged: its content does not have its digest")
        return [(row.position, event) for row, event in zip(rows, found, strict=True)]

    async def rebuild(self, build: str, events: Sequence[Event], *, dry_run: bool = False) -> Rebuilt:
        given = _of_one_build(build, events)

        async def work(connection: AsyncConnection) -> Rebuilt:
            stored = await _stored(connection, build, list(given))
            digests = {key: row["digest"] for key, row in given.items()}
            found = compare(digests, {key: digest for key, (_, digest) in stored.items()})
            if not dry_run:
                await _remove(connection, [stored[key][0] for key in (*found.mended, *found.dropped)])
                missing = [given[key] for key in given if key in {*found.added, *found.mended}]
                if missing:
                    await self._insert(connection, missing)
                await connection.execute(delete(builds).where(builds.c.build == build))
                await self._refold(connection, build)
            return found

        return await self._database.write("events", work, tell=() if dry_run else [build])

    async def _insert(self, connection: AsyncConnection, rows: list[dict[str, Any]]) -> set[tuple[str, str, int]]:
        statement = self._database.insert(log).on_conflict_do_nothing(index_elements=KEY).returning(*KEY)
        return {(row[0], row[1], row[2]) for row in await connection.execute(statement, rows)}

    async def _refold(self, connection: AsyncConnection, build: str) -> None:
        query = select(log).where(log.c.build == build, log.c.task == "", log.c.kind.in_(ROW_KINDS))
        found, damaged = _readable((await connection.execute(query)).all())
        row = fold_row(found)
        if row is not None:
            values = asdict(row)
            insert = self._database.insert(builds).values(values)
            del values["damaged"]  # an earlier mark stays until the build is rebuilt
            await connection.execute(insert.on_conflict_do_update(index_elements=[builds.c.build], set_=values))
        if damaged:
            await connection.execute(_marking(build, damaged))


def _marking(build: str, damaged: str) -> Update:
    return update(builds).where(builds.c.build == build).values(damaged=damaged)


async def _compare(connection: AsyncConnection, rows: list[dict[str, Any]]) -> None:
    """Raise EventConflict for the first row whose key is there with another content."""
    for start in range(0, len(rows), LOOKUP):
        part = {(row["first_run"], row["run"], row["sequence"]): row for row in rows[start : start + LOOKUP]}
        query = select(*KEY, log.c.digest).where(tuple_(*KEY).in_(list(part)))
        stored = {(row[0], row[1], row[2]): row.digest for row in await connection.execute(query)}
        for row in rows[start : start + LOOKUP]:
            key = (row["first_run"], row["run"], row["sequence"])
            if stored.get(key) != row["digest"]:
                raise EventConflict(f"event {'/'.join(map(str, key))} is in the log with another content")


def _of_one_build(build: str, events: Sequence[Event]) -> dict[Key, dict[str, Any]]:
    """Rows by key, in the order in which things happened. Raises InvalidInput, EventConflict."""
    rows: dict[Key, dict[str, Any]] = {}
    for event in sorted(events, key=lambda e: (e.at, e.run, e.sequence)):
        row = _as_row(event)
        if event.build != build:
            raise InvalidInput(f"event {event.key} is of build {event.build}, not of {build}")
        if rows.setdefault(event_key(event), row) != row:
            raise EventConflict(f"event {event.key} is told with two contents")
    return rows


async def _stored(connection: AsyncConnection, build: str, keys: list[Key]) -> dict[Key, tuple[int, str]]:
    """Position and digest by key, of the build's rows and of those that have one of ``keys``; damaged ones have ""."""
    found = list((await connection.execute(select(log).where(log.c.build == build))).all())
    for start in range(0, len(keys), LOOKUP):
        part = tuple_(*KEY).in_(keys[start : start + LOOKUP])
        found += (await connection.execute(select(log).where(part, log.c.build != build))).all()
    stored = {}
    for row in found:
        event = _as_event(row)
        if event is not None and event.build != build:
            raise EventConflict(f"event {event.key} is in the log as one of build {event.build}")
        stored[row.first_run, row.run, row.sequence] = (row.position, row.digest if event is not None else "")
    return stored


async def _remove(connection: AsyncConnection, positions: list[int]) -> None:
    for start in range(0, len(positions), LOOKUP):
        part = positions[start : start + LOOKUP]
        await connection.execute(delete(log).where(log.c.position.in_(part)))


def _as_row(event: Event) -> dict[str, Any]:
    data = canonical(f"event {event.key}", dict(event.data))
    values = {name: getattr(event, name) for name in _FIELDS}
    return values | {"data": data, "digest": event_digest(event, data)}


_FIELDS = ("first_run", "run", "sequence", "build", "task", "attempt", "kind", "at")


def _as_event(row: Row[Any]) -> Event | None:
    """None when the row is not what was appended."""
    values = {name: getattr(row, name) for name in _FIELDS}
    if event_digest(Event(**values), row.data) != row.digest:
        return None
    return Event(**values, data=json.loads(row.data))


def _readable(rows: Sequence[Row[Any]]) -> tuple[list[Event], str]:
    """The events that are whole, and the key of the first that is not, or ""."""
    read = [(row, _as_event(row)) for row in rows]
    damaged = next((f"{row.first_run}/{row.run}/{row.sequence}" for row, event in read if event is None), "")
    return [event for _, event in read if event is not None], damaged
