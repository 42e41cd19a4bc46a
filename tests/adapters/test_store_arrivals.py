"""Being woken by what is appended, on every store: by the same process, by others, by one that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest

from adapters.compliance.store import event, whole_build
from adapters.compliance.waking.arrivals import AGES, LONG, ArrivalsCompliance, soon
from adapters.store import open_store
from adapters.store.arrivals import listening, watching
from adapters.store.arrivals.bell import Bell, until_there
from adapters.store.arrivals.memory import Told
from adapters.store.arrivals.watching import Watching
from domain.errors import StoreUnavailable
from domain.ports.store import Store
from tests.adapters.processes import start
from tests.adapters.store_writers import answer_each, die_inside_a_transaction
from tests.postgres import Cluster, running_cluster


@pytest.fixture(autouse=True)
def unrescued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is not woken is not helped by the next look either, as long as the news are thought to come."""
    monkeypatch.setattr(listening, "HEARD_SECONDS", 1000.0)
    monkeypatch.setattr(watching, "LOOK_SECONDS", 1000.0)


class TestMemory(ArrivalsCompliance):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        async with await open_store("memory:") as store:
            yield store


class TestSqlite(ArrivalsCompliance):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        async with await open_store(f"sqlite:///{tmp_path / 'mendwork.db'}") as store:
            yield store


class TestPostgres(ArrivalsCompliance):
    @pytest.fixture
    async def store(self, postgres_url: str) -> AsyncIterator[Store]:
        async with await open_store(postgres_url) as store:
            yield store


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        named: str = request.getfixturevalue("postgres_url")
        return named
    async with await open_store(f"sqlite:///{tmp_path / 'mendwork.db'}"):
        return f"sqlite:///{tmp_path / 'mendwork.db'}"


class TestLookListenLook:
    async def test_what_comes_while_a_look_is_under_way_is_looked_at_again(self) -> None:
        """The look read before the commit, and says so after it."""
        news, looks = Told(Bell()), 0

        async def look() -> bool:
            nonlocal looks
            looks += 1
            if looks == 1:
                news.bell.ring("build-a-1")
                await asyncio.sleep(0)
            return looks > 1

        async with asyncio.timeout(AGES):
            assert await until_there(news, look, build="build-a-1", seconds=1000)
        assert looks == 2

    async def test_a_ring_for_another_build_costs_no_look_and_one_for_everybody_does(self) -> None:
        news, looks = Told(Bell()), 0

        async def look() -> bool:
            nonlocal looks
            looks += 1
            return looks > 1

        waits = asyncio.create_task(until_there(news, look, build="build-a-1", seconds=1000))
        await asyncio.sleep(0.01)
        news.bell.ring("build-a-2")
        await asyncio.sleep(0.01)
        assert looks == 1
        news.bell.ring()
        assert await soon(waits)
        assert not news.bell.awaited, "nobody is remembered"


class TestProcesses:
    async def test_wake_each_other_again_and_again(self, url: str) -> None:
        other = start(answer_each, url, "build-b-1", "build-a-1", 15)
        after = 0
        async with await open_store(url) as store, asyncio.timeout(AGES):
            for number in range(1, 16):
                await store.events.append([event(number, task="one")])
                assert await store.arrivals.wait("build-b-1", after=after, seconds=LONG)
                after = (await store.events.read("build-b-1"))[-1][0]
        await asyncio.to_thread(other.join, 30)
        assert other.exitcode == 0

    async def test_that_die_inside_a_transaction_wake_nobody_and_the_next_one_does(self, url: str) -> None:
        async with await open_store(url) as store:
            waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=0, seconds=LONG))
            writer = start(die_inside_a_transaction, url, "build-a-1")
            await asyncio.to_thread(writer.join, 30)
            assert writer.exitcode == -signal.SIGKILL
            done, _ = await asyncio.wait([waits], timeout=0.3)
            assert not done
            other = start(answer_each, url, "build-a-1", "build-b-1", 1)
            await store.events.append([event(1, build="build-b-1", task="one")])
            assert await soon(waits)
            await asyncio.to_thread(other.join, 30)


async def eventually(condition: Callable[[], bool], *, why: str) -> None:
    """Without holding the loop up, on which the store listens."""
    until = time.monotonic() + 30
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < until, why
        await asyncio.to_thread(time.sleep, 0.02)


def listeners(cluster: Cluster, url: str) -> list[int]:
    """Server processes that wait for news of this database."""
    query = b"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    name = url.partition("@/")[2].partition("?")[0]
    with psycopg.connect(host=str(cluster.folder), user=cluster.user, dbname=name) as connection:
        return [row[0] for row in connection.execute(query)]


class TestListening:
    async def test_takes_one_connection_for_all_who_wait_and_gives_it_back(
        self, cluster: Cluster, postgres_url: str
    ) -> None:
        async with await open_store(postgres_url) as store:
            assert listeners(cluster, postgres_url) == [], "nobody has waited yet"
            waits = [asyncio.create_task(store.arrivals.wait(f"b{n}", after=0, seconds=LONG)) for n in range(20)]
            await eventually(lambda: bool(listeners(cluster, postgres_url)), why="it listens")
            assert len(listeners(cluster, postgres_url)) == 1
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        await eventually(lambda: not listeners(cluster, postgres_url), why="it was closed")

    async def test_that_is_cut_again_and_again_loses_nothing_and_comes_back(
        self, cluster: Cluster, postgres_url: str
    ) -> None:
        async with await open_store(postgres_url) as store:
            after = 0
            for number in range(1, 7):
                waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=after, seconds=LONG))
                await eventually(lambda: bool(listeners(cluster, postgres_url)), why="it listens again")
                for pid in listeners(cluster, postgres_url):
                    cluster.execute(f"SELECT pg_terminate_backend({pid})")
                await store.events.append([event(number, task="one")])
                assert await soon(waits)
                after = (await store.events.read("build-a-1"))[-1][0]
            assert [each.sequence for _, each in await store.events.read("build-a-1")] == [1, 2, 3, 4, 5, 6]

    async def test_that_a_pooler_swallows_is_made_up_for_by_looking_again(
        self, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(listening, "CHANNEL", "nobody_speaks_here")
        monkeypatch.setattr(listening, "HEARD_SECONDS", 0.1)
        async with await open_store(postgres_url) as store:
            waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=0, seconds=LONG))
            done, _ = await asyncio.wait([waits], timeout=0.5)
            assert not done
            await store.events.append(whole_build())
            assert await soon(waits)

    async def test_a_server_that_restarts_is_told_and_then_listened_to_again(self) -> None:
        with running_cluster() as cluster:
            url = cluster.create()
            async with await open_store(url) as store:
                waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=0, seconds=LONG))
                await eventually(lambda: bool(listeners(cluster, url)), why="it listens")
                cluster.stop(mode="immediate")
                with pytest.raises(StoreUnavailable):
                    await waits
                cluster.start()
                waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=0, seconds=LONG))
                await eventually(lambda: bool(listeners(cluster, url)), why="it listens again")
                await store.events.append(whole_build())
                assert await soon(waits)


def opened(file: Path) -> list[str]:
    """What of the database this process holds open."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was the listing's own
            links.append(os.readlink(descriptor))
    return [link for link in links if link.startswith(str(file))]


class TestWatching:
    async def test_a_file_that_cannot_be_asked_is_news_at_every_tick(self, tmp_path: Path) -> None:
        news = Watching(tmp_path / "none" / "mendwork.db")
        with news.bell.heard("build-a-1") as rung:
            for _ in range(3):
                rung.clear()
                news.attend()
                async with asyncio.timeout(AGES):
                    await rung.wait()
        await news.close()
        await news.close()
        assert os.listdir(tmp_path) == [], "it makes no file"

    async def test_a_store_that_is_closed_after_a_wait_was_broken_off_holds_nothing_open(self, tmp_path: Path) -> None:
        file = tmp_path / "mendwork.db"
        store = await open_store(f"sqlite:///{file}")
        waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=0, seconds=LONG))
        await eventually(lambda: bool(opened(file)), why="it watches the file")
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        await store.close()
        await store.close()
        assert opened(file) == []

    async def test_a_store_that_is_closed_while_somebody_waits_is_not_opened_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(watching, "LOOK_SECONDS", 0.02)
        file = tmp_path / "mendwork.db"
        store = await open_store(f"sqlite:///{file}")
        waits = [asyncio.create_task(store.arrivals.wait("build-a-1", after=n, seconds=LONG)) for n in range(20)]
        reads = [asyncio.create_task(store.events.read("build-a-1")) for _ in range(20)]
        await eventually(lambda: bool(opened(file)), why="it watches the file")
        await store.close()
        assert opened(file) == [], "what was under way has ended"
        with pytest.raises(StoreUnavailable, match=r"mendwork\.db was closed"):
            await store.events.append(whole_build())
        assert {type(each) for each in await asyncio.gather(*waits, return_exceptions=True)} == {StoreUnavailable}
        assert await asyncio.gather(*reads) == [[]] * 20, "what had begun was finished"
        await asyncio.sleep(0.1)  # five looks, had anybody gone on
        assert opened(file) == []
