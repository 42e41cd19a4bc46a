"""Running totals, and the prices that they were reckoned with. Every function works inside its caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import Database
from adapters.store.money.rows import accounts_in, charge_in, charged
from adapters.store.tables import accounts, calls, prices, warned
from domain.money.budget import Spent
from domain.money.charge import Charge
from domain.money.usage import Quote

FIELDS = ("settled", "held", "unknown", "written_off", "calls")

# Built once: to build a statement costs more than SQLite needs to run it, and every model call runs these.
_NAMED = accounts.c.account.in_(bindparam("names", expanding=True))
_LOCKED = select(accounts).where(_NAMED).order_by(accounts.c.account).with_for_update()
_POSTED = update(accounts).where(_NAMED).values({name: accounts.c[name] + bindparam(f"by_{name}") for name in FIELDS})


async def locked(
    database: Database, connection: AsyncConnection, names: Iterable[str], *, made: bool = False
) -> dict[str, Spent]:
    """The accounts as they are, until the transaction ends. With ``made`` all are there: a call was charged to them.

    New ones are made before any is locked, and all are locked in sorted order: so none waits in a circle. SQLite has
    one writer at a time, so there it is enough to look.
    """
    ordered = sorted(set(names))
    if made or database.path is not None:
        found = await _spent(connection, ordered)
        if len(found) == len(ordered):
            return found
    these = accounts.c.account.in_(ordered)
    there = set(await connection.scalars(select(accounts.c.account).where(these)))
    rows = [{"account": name} | asdict(Spent()) for name in ordered if name not in there]
    if rows:
        insert = database.insert(accounts).on_conflict_do_nothing(index_elements=[accounts.c.account])
        await connection.execute(insert, rows)
    return await _spent(connection, ordered)


async def _spent(connection: AsyncConnection, ordered: Sequence[str]) -> dict[str, Spent]:
    rows = await connection.execute(_LOCKED, {"names": list(ordered)})
    return {row.account: Spent(**{name: getattr(row, name) for name in FIELDS}) for row in rows}


async def post(connection: AsyncConnection, names: Iterable[str], change: Spent) -> None:
    """Add the change of one call to each of its accounts. They are there, and locked by the caller."""
    added = {f"by_{name}": getattr(change, name) for name in FIELDS}
    await connection.execute(_POSTED, {"names": sorted(names), **added})


async def recharge(connection: AsyncConnection, row: Row[Any], charge: Charge, values: Mapping[str, Any]) -> None:
    """Give a call's row its new charge and other ``values``, and its locked accounts the difference."""
    change = charge.counted - charge_in(row).counted
    columns = {**values, **charged(charge)}
    await connection.execute(update(calls).where(calls.c.position == row.position).values(columns))
    if change != Spent():
        await post(connection, accounts_in(row), change)


async def first_warnings(database: Database, connection: AsyncConnection, limits: Mapping[str, int]) -> set[str]:
    """Those of the accounts that nobody was warned of at this limit."""
    rows = [{"account": account, "limit_micros": limit} for account, limit in sorted(limits.items())]
    if not rows:
        return set()
    insert = database.insert(warned).on_conflict_do_nothing().returning(warned.c.account)
    return {row.account for row in await connection.execute(insert, rows)}


async def price_version(database: Database, connection: AsyncConnection, model: str, quote: Quote | None) -> int:
    """The version of this price of the model, from 1; a price that is new becomes the next version. 0 for none."""
    if quote is None:
        return 0
    found = await _last_version(connection, model, quote)
    if found[1]:
        return found[0]
    await database.lock(connection, f"price {model}")
    found = await _last_version(connection, model, quote)
    if not found[1]:
        found = (found[0] + 1, True)
        await connection.execute(prices.insert().values(_price(quote) | {"model": model, "version": found[0]}))
    return found[0]


async def _last_version(connection: AsyncConnection, model: str, quote: Quote) -> tuple[int, bool]:
    """The last version, and whether it is this price."""
    query = select(prices).where(prices.c.model == model).order_by(prices.c.version.desc()).limit(1)
    row = (await connection.execute(query)).first()
    if row is None:
        return 0, False
    return row.version, all(getattr(row, name) == value for name, value in _price(quote).items())


def _price(quote: Quote) -> dict[str, int | str]:
    return {
        "input_micros": quote.price.input_micros_per_million,
        "output_micros": quote.price.output_micros_per_million,
        "source": quote.source,
    }
