"""The record of releases: its suite on every store, its table from the version before, several processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, inspect

from adapters.compliance.delivery.releases import RELEASE, ReleasesCompliance
from adapters.compliance.store import row, whole_build
from adapters.store import open_store
from domain.ports.releases import PROMOTED
from domain.ports.store import Store
from tests.adapters.processes import pipe, run_together
from tests.adapters.test_store_migrations import move, on
from tests.postgres import Cluster


class TestMemory(ReleasesCompliance):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        async with await open_store("memory:") as store:
            yield store


class TestSqlite(ReleasesCompliance):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        async with await open_store(f"sqlite:///{tmp_path / 'mendwork.db'}") as store:
            yield store


class TestPostgres(ReleasesCompliance):
    @pytest.fixture
    async def store(self, postgres_url: str) -> AsyncIterator[Store]:
        async with await open_store(postgres_url) as store:
            yield store


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with a build in it."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'mendwork.db'}"
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        url = cluster.create()
    async with await open_store(url) as store:
        await store.events.append(whole_build())
    return url


def back_to_the_version_before(connection: Connection) -> list[str]:
    move(connection, "0002", command.downgrade)
    return inspect(connection).get_table_names()


async def test_a_database_of_the_version_before_keeps_what_it_holds_and_takes_releases(url: str) -> None:
    tables = await on(url, back_to_the_version_before)
    assert isinstance(tables, list)
    assert "builds" in tables
    assert "releases" not in tables
    async with await open_store(url) as store:
        assert await store.builds.get("build-a-1") == row()
        await store.releases.record(RELEASE)
        assert await store.releases.get("a", 1) == RELEASE


async def test_going_back_to_the_version_before_forgets_releases_and_nothing_else(url: str) -> None:
    async with await open_store(url) as store:
        await store.releases.record(RELEASE)
    await on(url, back_to_the_version_before)
    async with await open_store(url) as store:
        assert list(await store.releases.list("a")) == []
        assert await store.builds.get("build-a-1") == row()


def deliver(url: str, name: str, count: int, sender: Any) -> None:
    """Reserve ``count`` releases and write each twice; every number is asked for twice."""

    async def main() -> None:
        numbers = []
        async with await open_store(url) as store:
            for n in range(count):
                saga = f"{name}-{n}"
                number = await store.releases.reserve("a", saga=saga)
                release = replace(RELEASE, number=number, saga=saga)
                await store.releases.record(release)
                await store.releases.record(replace(release, revision=2, status=PROMOTED))
                assert await store.releases.reserve("a", saga=saga) == number
                numbers.append(number)
        sender.send(numbers)

    asyncio.run(main())


async def test_processes_that_deliver_at_once_never_share_a_number(url: str) -> None:
    pipes = [pipe() for _ in range(4)]
    run_together([(deliver, (url, f"p{n}", 10, sender)) for n, (_, sender) in enumerate(pipes)])
    assert sorted(number for receiver, _ in pipes for number in receiver.recv()) == list(range(1, 41))
    async with await open_store(url) as store:
        releases = await store.releases.list("a", limit=100)
        assert [release.number for release in releases] == list(range(40, 0, -1))
        assert {release.status for release in releases} == {PROMOTED}
