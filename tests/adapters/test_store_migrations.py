"""The revisions and the tables that queries use are the same thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, TableClause, column, insert, inspect, make_url, table, text
from sqlalchemy.ext.asyncio import create_async_engine

import adapters.store
from adapters.compliance.calls import ANSWER, CALL
from adapters.store import open_store
from adapters.store.migrate import HEAD
from adapters.store.sql import DRIVERS
from adapters.store.tables import metadata
from domain.errors import InvalidInput
from domain.money.budget import Spent
from domain.ports.language_model import CallKey
from tests.postgres import Cluster

FOLDER = Path(adapters.store.__file__).parent


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that ``open_store`` migrated."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'mendwork.db'}"
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        url = cluster.create()
    async with await open_store(url):
        return url


async def on(url: str, work: object, *arguments: object) -> object:
    """Run ``work(connection, …)`` on a plain connection, committed."""
    parsed = make_url(url)
    engine = create_async_engine(parsed.set(drivername=DRIVERS[parsed.get_backend_name()]))
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(work, *arguments)  # type: ignore[arg-type]
    finally:
        await engine.dispose()


def differences(connection: Connection) -> object:
    return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)


def downgrade(connection: Connection) -> list[str]:
    move(connection, "base", command.downgrade)
    return inspect(connection).get_table_names()


def move(connection: Connection, revision: str, way: Callable[[Config, str], None]) -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER / "migrations"))
    config.set_main_option("version_locations", str(FOLDER / "versions"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    way(config, revision)


def claim_revision(connection: Connection, revision: str) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


async def test_the_revisions_make_the_tables_that_queries_use(url: str) -> None:
    assert await on(url, differences) == []


async def test_the_partial_indexes_are_there_and_unique_where_they_must_be(url: str) -> None:
    found = await on(url, lambda connection: {i["name"]: i["unique"] for i in inspect(connection).get_indexes("calls")})
    assert isinstance(found, dict)
    assert found["uq_calls_answered"]


async def test_all_revisions_can_be_taken_back(url: str) -> None:
    assert await on(url, downgrade) == ["alembic_version"]


def fill_the_first_revision(connection: Connection) -> None:
    move(connection, "0001", command.downgrade)
    build: dict[str, object] = {
        "build": "build-a-1",
        "project": "a",
        "title": "t",
        "phase": "plan",
        "status": "running",
        "damaged": "",
    }
    connection.execute(insert(columns("builds", *build, "started", "ended")), build | {"started": 1, "ended": 0})
    call: dict[str, object] = {
        "build": "build-a-1",
        "request": "r",
        "model": "m",
        "state": "failed",
        "fault": "Overtaken",
    }
    calls = [
        call | {"key": "k", "number": 1, "cost_micros": None},
        call | {"key": "k", "number": 2, "cost_micros": None, "state": "unknown", "fault": ""},
        call | {"key": "k", "number": 3, "cost_micros": 30},
        call | {"key": "l", "number": 1, "cost_micros": 7},
        call | {"key": "o", "number": 1, "cost_micros": 5, "build": "build-o-1"},
    ]
    connection.execute(insert(columns("calls", *calls[0])), calls)


def columns(name: str, *names: str) -> TableClause:
    return table(name, *(column(each) for each in names))


async def test_what_calls_cost_before_there_was_a_ledger_is_counted(url: str) -> None:
    await on(url, fill_the_first_revision)
    async with await open_store(url) as store:
        assert await store.ledger.spent("build:build-a-1") == Spent(settled=37, calls=4)
        assert await store.ledger.spent("project:a") == Spent(settled=37, calls=4)
        assert [(line.name, line.spent.settled) for line in await store.ledger.costs("project")] == [("", 5), ("a", 37)]
        states = [(call.state, call.charge.money) for call in await store.calls.tries("build-a-1")]
        assert states[1] == ("unknown", "settled"), "nothing was held for it then"
        key = CallKey(saga="build-a-1", step="plan", attempt=1)
        await store.calls.end(key, await store.calls.begin(key, CALL), outcome=ANSWER)
        assert await store.ledger.spent("project:a") == Spent(settled=37 + 8100, calls=5)


async def test_a_second_start_changes_nothing(url: str) -> None:
    async with await open_store(url) as store:
        await store.builds.reserve_number("a")
    async with await open_store(url) as store:
        assert await store.builds.reserve_number("a") == 2


async def test_a_database_of_a_later_version_is_refused_with_both_revisions(url: str) -> None:
    await on(url, claim_revision, "9999")
    with pytest.raises(InvalidInput, match=r"'9999'.*knows \['0004', '0003', '0002', '0001'\]"):
        await open_store(url)


def test_the_quick_check_knows_the_last_revision() -> None:
    heads = ScriptDirectory(str(FOLDER / "migrations"), version_locations=[str(FOLDER / "versions")]).get_heads()
    assert heads == [HEAD]
