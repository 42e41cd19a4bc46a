"""Calls of models, by logical attempt, and what each holds or has cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, bindparam, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.content import canonical
from adapters.store.database import Database
from adapters.store.money.accounts import first_warnings, locked, post, price_version, recharge
from adapters.store.money.rows import (
    accounts_in,
    begun,
    charge_in,
    ended,
    limits_in,
    recorded_in,
    try_in,
    warnings_in,
)
from adapters.store.tables import calls
from domain.errors import BudgetExhausted, Busy, KeyConflict, Overtaken
from domain.money.accounts import accounts_of, day_of
from domain.money.budget import Spent
from domain.money.charge import Charge
from domain.money.reserving import admission, warnings
from domain.money.usage import Quote
from domain.ports.language_model import CallKey
from domain.ports.store import BegunCall, CallTry, FailedCall, RecordedCall

_TRIES = select(calls).where(calls.c.key == bindparam("of")).order_by(calls.c.number)
"""Built once: every model call runs it three times."""


class SqlCalls:
    """``domain.ports.store.Calls``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._prices: dict[tuple[str, Quote], int] = {}

    async def find(self, key: CallKey, *, request: str) -> RecordedCall | None:
        row = _answer(await self._database.read(lambda connection: _tries(connection, key)))
        if row is None:
            return None
        if row.request != request:
            raise KeyConflict(f"call {key} has answered another request")
        return recorded_in(row)

    async def begin(self, key: CallKey, call: BegunCall) -> int:
        begun = await self._database.write(f"call {key}", lambda connection: self._begin(connection, key, call))
        if not isinstance(begun, int):  # raised outside, so that what was lost before is recorded all the same
            raise begun
        return begun

    async def end(self, key: CallKey, number: int, *, outcome: RecordedCall | FailedCall) -> tuple[str, ...]:
        told = await self._database.write(f"call {key}", lambda connection: self._end(connection, key, number, outcome))
        if told is None:
            raise Overtaken(f"call {key} was answered by another try before try {number}")
        return told

    async def tries(self, build: str) -> Sequence[CallTry]:
        query = select(calls).where(calls.c.build == build).order_by(calls.c.position)
        return [try_in(row) for row in await self._database.read(lambda connection: connection.execute(query))]

    async def _begin(self, connection: AsyncConnection, key: CallKey, call: BegunCall) -> int | BudgetExhausted | Busy:
        rows = await _tries(connection, key)
        if _answer(rows) is not None:
            raise Overtaken(f"call {key} was answered meanwhile")
        names, bound = accounts_of(call.payer, day=day_of(call.at)), call.bound or 0
        spent = await self._without_lost(connection, names, [row for row in rows if row.state == "running"])
        refused = admission(spent, call.payer, call.budget, bound=bound, at=call.at)
        if refused is not None:
            return refused
        number = len(rows) + 1
        price = await self._price(connection, call)
        await connection.execute(insert(calls).values(begun(key, call) | {"number": number, "price": price}))
        await post(connection, names, Charge(bound=bound).counted)
        return number

    async def _without_lost(
        self, connection: AsyncConnection, names: Sequence[str], running: Sequence[Row[Any]]
    ) -> Mapping[str, Spent]:
        """The accounts, once the tries of this call that never ended are counted as lost: whoever made them is dead, or
        will find itself overtaken."""
        theirs = [account for row in running for account in accounts_in(row)]
        spent = await locked(self._database, connection, [*names, *theirs])
        for row in running:
            await recharge(connection, row, charge_in(row).lost(), {"state": "unknown"})
        return await locked(self._database, connection, names, made=True) if running else spent

    async def _price(self, connection: AsyncConnection, call: BegunCall) -> int:
        """The version of the price; one that this process has seen is not looked for again."""
        if call.quote is None:
            return 0
        seen = (call.model, call.quote)
        if seen not in self._prices:
            self._prices[seen] = await price_version(self._database, connection, call.model, call.quote)
        return self._prices[seen]

    async def _end(
        self, connection: AsyncConnection, key: CallKey, number: int, outcome: RecordedCall | FailedCall
    ) -> tuple[str, ...] | None:
        """None when another try has answered: then this one is kept for its usage alone."""
        rows = await _tries(connection, key)
        row = next((row for row in rows if row.number == number), None)
        if row is None:
            raise KeyConflict(f"call {key} has no try {number}")
        if isinstance(outcome, RecordedCall) and outcome.request != row.request:
            raise KeyConflict(f"call {key}, try {number}, answers another request than it began")
        overtaken = isinstance(outcome, RecordedCall) and _answer(rows) not in (None, row)
        values, told = ended(outcome, overtaken=overtaken), warnings_in(row)
        if row.state in ("running", "unknown"):
            told = await self._settle(connection, row, charge_in(row).ended(outcome.bill), values)
        elif any(getattr(row, name) != value for name, value in values.items()):
            raise KeyConflict(f"call {key}, try {number}, has ended otherwise")
        return None if overtaken else told

    async def _settle(
        self, connection: AsyncConnection, row: Row[Any], charge: Charge, values: dict[str, Any]
    ) -> tuple[str, ...]:
        """What nobody has been told of the limits that an answer's settlement comes near to."""
        spent = await locked(self._database, connection, accounts_in(row), made=True)
        told: tuple[str, ...] = ()
        if values["state"] == "answered":
            change, limits = charge.counted - charge_in(row).counted, limits_in(row)
            near = warnings({account: state + change for account, state in spent.items()}, limits)
            new = await first_warnings(self._database, connection, {account: limits[account] for account in near})
            told = tuple(sentence for account, sentence in near.items() if account in new)
        await recharge(connection, row, charge, values | {"warnings": canonical("warnings", list(told))})
        return told


async def _tries(connection: AsyncConnection, key: CallKey) -> Sequence[Row[Any]]:
    """Every try of one call, by number."""
    return (await connection.execute(_TRIES, {"of": str(key)})).all()


def _answer(rows: Sequence[Row[Any]]) -> Row[Any] | None:
    return next((row for row in rows if row.state == "answered"), None)
