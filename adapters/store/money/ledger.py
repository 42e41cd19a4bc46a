"""Sums over calls, and calls that were lost in flight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import Database
from adapters.store.money.accounts import FIELDS, locked, recharge
from adapters.store.money.rows import accounts_in, charge_in
from adapters.store.tables import accounts, calls
from domain.errors import KeyConflict, UnknownName
from domain.money.budget import Spent
from domain.money.charge import HELD, OPEN, SETTLED, UNKNOWN, WRITTEN_OFF, Charge
from domain.ports.ledger import COST_BY, CostLine, OpenCall

COLUMNS = {name: calls.c.user_name if name == "user" else calls.c[name] for name in COST_BY}


class SqlLedger:
    """``domain.ports.ledger.Ledger``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def spent(self, account: str) -> Spent:
        query = select(accounts).where(accounts.c.account == account)
        row = (await self._database.read(lambda connection: connection.execute(query))).first()
        return Spent() if row is None else Spent(**{name: getattr(row, name) for name in FIELDS})

    async def costs(self, by: str, *, build: str = "", project: str = "") -> Sequence[CostLine]:
        if by not in COLUMNS:
            raise UnknownName.among("grouping of costs", by, COLUMNS)
        unpriced = and_(calls.c.state == "answered", calls.c.cost_micros.is_(None))
        sums = [
            *(_bounds(money).label(money) for money in (HELD, UNKNOWN, WRITTEN_OFF)),
            _sum(calls.c.settled).label(SETTLED),
            func.count().label("calls"),
            _sum(calls.c.input_tokens).label("input_tokens"),
            _sum(calls.c.output_tokens).label("output_tokens"),
            _sum(case((unpriced, 1), else_=0)).label("unpriced"),
        ]
        query = select(COLUMNS[by].label("name"), *sums).group_by(COLUMNS[by])
        if build:
            query = query.where(calls.c.build == build)
        if project:
            query = query.where(calls.c.project == project)
        rows = await self._database.read(lambda connection: connection.execute(query))
        return sorted((_line(row) for row in rows), key=lambda line: line.name)

    async def open_calls(self, *, build: str = "") -> Sequence[OpenCall]:
        query = select(calls).where(calls.c.money.in_(OPEN), calls.c.money != SETTLED).order_by(calls.c.position)
        if build:
            query = query.where(calls.c.build == build)
        return [
            OpenCall(
                key=r.key, number=r.number, build=r.build, model=r.model, money=r.money, bound=r.bound or 0, at=r.at
            )
            for r in await self._database.read(lambda connection: connection.execute(query))
        ]

    async def lose(self, build: str) -> int:
        return await self._each(and_(calls.c.build == build, calls.c.state == "running"), Charge.lost)

    async def expire(self, *, before: int) -> int:
        old = and_(calls.c.money.in_((HELD, UNKNOWN)), calls.c.money != SETTLED, calls.c.at < before)
        return await self._each(old, Charge.expired)

    async def reconcile(self, key: str, number: int, *, micros: int) -> None:
        async def work(connection: AsyncConnection) -> None:
            query = select(calls).where(calls.c.key == key, calls.c.number == number)
            row = (await connection.execute(query)).first()
            charge = None if row is None else charge_in(row)
            if row is None or charge is None or charge.money not in (*OPEN, SETTLED):
                raise KeyConflict(f"call {key}, try {number}, is not one of those whose cost is unknown")
            if charge.money == SETTLED and charge.settled != micros:
                raise KeyConflict(f"call {key}, try {number}, is settled already, by another amount")
            await locked(self._database, connection, accounts_in(row))
            await recharge(connection, row, charge.billed(micros), {})

        await self._database.write(f"call {key}", work)

    async def _each(self, which: ColumnElement[bool], change: Callable[[Charge], Charge]) -> int:
        """Change the charge of every such call, each in a transaction of its own: its lock is the call's."""
        query = select(calls.c.key, calls.c.position).where(which).order_by(calls.c.position)
        found = (await self._database.read(lambda connection: connection.execute(query))).all()
        return sum([await self._change(row, which, change) for row in found])

    async def _change(
        self, found: Row[Any, Any], which: ColumnElement[bool], change: Callable[[Charge], Charge]
    ) -> bool:
        async def work(connection: AsyncConnection) -> bool:
            row = (await connection.execute(select(calls).where(which, calls.c.position == found.position))).first()
            if row is None:  # it ended meanwhile
                return False
            state = {"state": "unknown"} if row.state == "running" else {}
            await locked(self._database, connection, accounts_in(row))
            await recharge(connection, row, change(charge_in(row)), state)
            return True

        return await self._database.write(f"call {found.key}", work)


def _sum(what: Any) -> ColumnElement[int]:
    return func.coalesce(func.sum(what), 0)


def _bounds(money: str) -> ColumnElement[int]:
    return _sum(case((calls.c.money == money, func.coalesce(calls.c.bound, 0)), else_=0))


def _line(row: Row[Any]) -> CostLine:
    return CostLine(
        name=row.name,
        spent=Spent(**{name: int(getattr(row, name)) for name in FIELDS}),
        input_tokens=int(row.input_tokens),
        output_tokens=int(row.output_tokens),
        unpriced=int(row.unpriced),
    )
