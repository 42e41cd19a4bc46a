"""The reference table on every store, and what happens when rows or the table itself are damaged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, make_url, update
from sqlalchemy.ext.asyncio import create_async_engine

from adapters.compliance.house.references import BEGUN, SPEC, TAKEN, ReferencesCompliance, found, named
from adapters.store import open_store
from adapters.store.sql import DRIVERS
from adapters.store.tables import blob_holders, blob_references, events
from domain.errors import DigestMismatch, EventUnreadable
from domain.ports.store import Store


class TestMemory(ReferencesCompliance):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        async with await open_store("memory:") as store:
            yield store


class TestSqlite(ReferencesCompliance):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        async with await open_store(f"sqlite:///{tmp_path / 'mendwork.db'}") as store:
            yield store


class TestPostgres(ReferencesCompliance):
    @pytest.fixture
    async def store(self, postgres_url: str) -> AsyncIterator[Store]:
        async with await open_store(postgres_url) as store:
            yield store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'mendwork.db'}"


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with await open_store(url) as store:
        await store.events.append([*BEGUN, TAKEN])
        for holder in await store.references.holders():
            await store.references.record(holder, await store.references.named(holder))
        yield store


async def on(url: str, statement: object) -> None:
    engine = create_async_engine(make_url(url).set(drivername=DRIVERS["sqlite"]))
    async with engine.begin() as connection:
        await connection.execute(statement)  # type: ignore[call-overload]
    await engine.dispose()


DAMAGES = {
    "a reference is lost": delete(blob_references).where(blob_references.c.digest == SPEC),
    "a reference is another": update(blob_references).where(blob_references.c.digest == SPEC).values(digest="0" * 64),
    "one too many": insert(blob_references).values(holder="build-a-1", digest="1" * 64, what=""),
    "the holder is lost": delete(blob_holders).where(blob_holders.c.holder == "build-a-1"),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_table_is_said_with_its_cure_and_can_be_made_again(store: Store, url: str, damage: str) -> None:
    await on(url, DAMAGES[damage])
    holder = (await found(store))["build-a-1"]
    with pytest.raises(DigestMismatch, match="build-a-1 does not add up; `mendwork gc --afresh`"):
        await store.references.recorded(holder)
    await store.references.forget()
    assert await store.references.recorded(holder) is None
    assert SPEC in await store.references.named(holder)


async def test_damaged_rows_are_not_read_as_naming_nothing(store: Store, url: str) -> None:
    await on(url, update(events).where(events.c.kind == "build.admitted").values(data="{}"))
    with pytest.raises(EventUnreadable, match="build-a-1"):
        await named(store, "build-a-1")


async def test_a_damaged_snapshot_is_no_snapshot_less(store: Store, url: str) -> None:
    await on(url, update(events).where(events.c.kind == "snapshot.taken").values(data="{}"))
    with pytest.raises(EventUnreadable, match="build-a-1"):
        await store.references.holders()
