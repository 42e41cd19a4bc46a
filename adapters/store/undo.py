"""How to undo what was done outside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Update, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.content import canonical, check_outcome
from adapters.store.database import Database
from adapters.store.tables import undo
from domain.errors import KeyConflict
from domain.ports.store import UndoRecord


def _reopened(key: str) -> Update:
    return update(undo).where(undo.c.key == key).values(outcome="")


class SqlUndoLog:
    """``domain.ports.store.UndoLog``. ``outcome`` is "" while a record is open."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(self, record: UndoRecord) -> None:
        data = canonical(f"undo record {record.key}", dict(record.data))
        values = {"key": record.key, "build": record.build, "action": record.action, "data": data}
        insert = self._database.insert(undo).values(values | {"outcome": ""})

        async def work(connection: AsyncConnection) -> Row[Any]:
            await connection.execute(insert.on_conflict_do_nothing(index_elements=[undo.c.key]))
            return (await connection.execute(select(undo).where(undo.c.key == record.key))).one()

        stored = await self._database.write(f"undo {record.key}", work)
        if any(getattr(stored, name) != value for name, value in values.items()):
            raise KeyConflict(f"undo record {record.key} is there with another content")
        if stored.outcome:
            await self._database.write(
                f"undo {record.key}", lambda connection: connection.execute(_reopened(record.key))
            )

    async def close(self, key: str, *, outcome: str) -> None:
        async def work(connection: AsyncConnection) -> None:
            before = await connection.scalar(select(undo.c.outcome).where(undo.c.key == key))
            if check_outcome(key, before=before, after=outcome):
                await connection.execute(update(undo).where(undo.c.key == key).values(outcome=outcome))

        await self._database.write(f"undo {key}", work)

    async def open(self) -> Sequence[UndoRecord]:
        query = select(undo).where(undo.c.outcome == "").order_by(undo.c.position)
        rows = await self._database.read(lambda connection: connection.execute(query))
        return [UndoRecord(key=r.key, build=r.build, action=r.action, data=json.loads(r.data)) for r in rows]
