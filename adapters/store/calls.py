"""Calls of models, by logical attempt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.content import canonical
from adapters.store.database import Database
from adapters.store.tables import calls
from domain.errors import KeyConflict, Overtaken
from domain.money.usage import Usage
from domain.ports.language_model import CallKey
from domain.ports.store import CallTry, RecordedCall


class SqlCalls:
    """``domain.ports.store.Calls``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, key: CallKey, *, request: str) -> RecordedCall | None:
        row = await self._database.read(lambda connection: _first(connection, _answered(key)))
        if row is None:
            return None
        if row.request != request:
            raise KeyConflict(f"call {key} has answered another request")
        return _recorded(row)

    async def begin(self, key: CallKey, *, build: str, request: str, model: str) -> int:
        begun = {"key": str(key), "build": build, "request": request, "model": model, "state": "running", "fault": ""}

        async def work(connection: AsyncConnection) -> int:
            if await _first(connection, _answered(key)) is not None:
                raise Overtaken(f"call {key} was answered meanwhile")
            running = and_(calls.c.key == str(key), calls.c.state == "running")
            await connection.execute(update(calls).where(running).values(state="unknown"))
            last = await connection.scalar(select(func.max(calls.c.number)).where(calls.c.key == str(key)))
            number: int = (last or 0) + 1
            await connection.execute(insert(calls).values(begun | {"number": number}))
            return number

        return await self._database.write(f"call {key}", work)

    async def end(self, key: CallKey, number: int, *, outcome: RecordedCall | str) -> None:
        if await self._database.write(f"call {key}", lambda connection: _end(connection, key, number, outcome)):
            raise Overtaken(f"call {key} was answered by another try before try {number}")

    async def tries(self, build: str) -> Sequence[CallTry]:
        query = select(calls).where(calls.c.build == build).order_by(calls.c.position)
        return [_try(row) for row in await self._database.read(lambda connection: connection.execute(query))]


async def _end(connection: AsyncConnection, key: CallKey, number: int, outcome: RecordedCall | str) -> bool:
    """Whether another try has answered: then this one is kept for its usage alone."""
    this = and_(calls.c.key == str(key), calls.c.number == number)
    row = await _first(connection, this)
    if row is None:
        raise KeyConflict(f"call {key} has no try {number}")
    if isinstance(outcome, RecordedCall) and outcome.request != row.request:
        raise KeyConflict(f"call {key}, try {number}, answers another request than it began")
    values = _ended(outcome)
    overtaken = isinstance(outcome, RecordedCall) and await _taken(connection, key, number)
    if overtaken:
        values |= {"state": "failed", "fault": Overtaken.__name__, "answer": None, "value": None, "problems": None}
    if row.state in ("running", "unknown"):
        await connection.execute(update(calls).where(this).values(values))
    elif any(getattr(row, name) != value for name, value in values.items()):
        raise KeyConflict(f"call {key}, try {number}, has ended otherwise")
    return overtaken


def _answered(key: CallKey) -> ColumnElement[bool]:
    return and_(calls.c.key == str(key), calls.c.state == "answered")


async def _first(connection: AsyncConnection, which: ColumnElement[bool]) -> Row[Any] | None:
    return (await connection.execute(select(calls).where(which))).first()


async def _taken(connection: AsyncConnection, key: CallKey, number: int) -> bool:
    return await _first(connection, and_(_answered(key), calls.c.number != number)) is not None


def _ended(outcome: RecordedCall | str) -> dict[str, Any]:
    if isinstance(outcome, str):
        return {"state": "failed", "fault": outcome}
    return {
        "state": "answered",
        "fault": "",
        "model": outcome.model,
        "answer": outcome.answer,
        "value": outcome.value,
        "problems": canonical("problems", list(outcome.problems)),
        "input_tokens": outcome.usage.input_tokens,
        "output_tokens": outcome.usage.output_tokens,
        "cost_micros": outcome.usage.cost_micros,
    }


def _recorded(row: Row[Any]) -> RecordedCall:
    usage = Usage(input_tokens=row.input_tokens, output_tokens=row.output_tokens, cost_micros=row.cost_micros)
    return RecordedCall(
        request=row.request,
        model=row.model,
        answer=row.answer,
        value=row.value,
        problems=tuple(json.loads(row.problems)),
        usage=usage,
    )


def _try(row: Row[Any]) -> CallTry:
    usage = None
    if row.input_tokens is not None:
        usage = Usage(input_tokens=row.input_tokens, output_tokens=row.output_tokens, cost_micros=row.cost_micros)
    return CallTry(
        key=row.key,
        build=row.build,
        number=row.number,
        model=row.model,
        state=row.state,
        fault=row.fault,
        usage=usage,
    )
