"""A build's rows written again: on every store, from a damaged, a holed and an empty log."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.store import open_store
from domain.build.view import fold_row
from domain.errors import EventConflict, EventUnreadable, InvalidInput
from domain.ports.store import Event, Store
from domain.trace.order import key_of
from tests.domain.trace_stories import BUILD, reset, whole


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    urls = {"memory": "memory:", "sqlite": f"sqlite:///{tmp_path / 'mendwork.db'}"}
    url = urls.get(request.param) or request.getfixturevalue("postgres_url")
    async with await open_store(url) as store:
        yield store


async def rows(store: Store, build: str = BUILD) -> list[Event]:
    return sorted((event for _, event in await store.events.read(build)), key=key_of)


def in_keys(events: Sequence[Event]) -> list[Event]:
    return sorted(events, key=key_of)


def elsewhere(events: Sequence[Event], build: str) -> list[Event]:
    return [replace(event, build=build, first_run=f"{build}-{event.first_run}") for event in events]


class TestOnEveryStore:
    async def test_an_empty_log_is_filled_and_its_build_is_listed_as_before(self, store: Store) -> None:
        done = await store.events.rebuild(BUILD, reset())
        assert (done.same, len(done.added), done.kept) == (0, len(reset()), ())
        assert await rows(store) == in_keys(reset())
        assert await store.builds.get(BUILD) == fold_row(e for e in reset() if not e.task)

    async def test_a_whole_log_stays_as_it_is_to_the_position(self, store: Store) -> None:
        await store.events.append(whole())
        before = await store.events.read(BUILD)
        done = await store.events.rebuild(BUILD, whole())
        assert (done.same, done.changes) == (len(whole()), False)
        assert await store.events.read(BUILD) == before

    async def test_holes_are_filled(self, store: Store) -> None:
        await store.events.append(whole()[::2])
        done = await store.events.rebuild(BUILD, whole())
        assert set(done.added) == {key_of(event) for event in whole()[1::2]}
        assert await rows(store) == in_keys(whole())

    async def test_a_row_that_tells_something_else_is_what_its_history_says(self, store: Store) -> None:
        forged = [replace(event, data={**event.data, "status": "aborted"}) for event in whole()]
        await store.events.append(forged)
        done = await store.events.rebuild(BUILD, whole())
        assert len(done.mended) == len(forged)
        row = await store.builds.get(BUILD)
        assert row is not None
        assert row.status == "succeeded"
        assert await rows(store) == in_keys(whole())

    async def test_a_row_that_no_history_explains_stays_and_is_named(self, store: Store) -> None:
        await store.events.append(whole())
        done = await store.events.rebuild(BUILD, whole()[:-3])
        assert set(done.kept) == {key_of(event) for event in whole()[-3:]}
        assert await rows(store) == in_keys(whole())

    async def test_a_dry_run_says_the_same_and_changes_nothing(self, store: Store) -> None:
        await store.events.append(whole()[3:9])
        before = (await store.events.read(BUILD), await store.builds.get(BUILD))
        told = await store.events.rebuild(BUILD, whole()[:8], dry_run=True)
        assert (await store.events.read(BUILD), await store.builds.get(BUILD)) == before
        assert await store.events.rebuild(BUILD, whole()[:8]) == told

    async def test_other_builds_are_left_alone(self, store: Store) -> None:
        await store.events.append(elsewhere(whole(), "build-calc-2"))
        before = await store.events.read("build-calc-2")
        await store.events.rebuild(BUILD, whole())
        assert await store.events.read("build-calc-2") == before

    async def test_a_repeat_changes_nothing(self, store: Store) -> None:
        await store.events.rebuild(BUILD, [*whole(), *whole()])
        assert not (await store.events.rebuild(BUILD, whole())).changes

    @pytest.mark.parametrize(
        ("events", "error"),
        [
            ([*whole(), replace(whole()[0], at=7)], EventConflict),
            (elsewhere(whole(), "build-calc-2"), InvalidInput),
            ([replace(whole()[0], data={"n": float("nan")})], InvalidInput),
        ],
        ids=["two contents", "another build", "no JSON"],
    )
    async def test_what_cannot_be_is_refused_and_changes_nothing(
        self, store: Store, events: list[Event], error: type[Exception]
    ) -> None:
        await store.events.append(whole()[:5])
        with pytest.raises(error):
            await store.events.rebuild(BUILD, events)
        assert await rows(store) == in_keys(whole()[:5])

    async def test_the_key_of_another_builds_row_is_refused(self, store: Store) -> None:
        await store.events.append(whole())
        stolen = [replace(event, build="build-calc-2") for event in whole()]
        with pytest.raises(EventConflict, match="of build build-calc-1"):
            await store.events.rebuild("build-calc-2", stolen)

    async def test_thousands_of_rows_are_one_rebuild(self, store: Store) -> None:
        many = [replace(whole()[0], sequence=n, kind="task.waits", task="t", data={"n": n}) for n in range(2, 1800)]
        await store.events.append(many[::3])
        await store.events.rebuild(BUILD, [*whole()[:1], *many])
        assert len(await store.events.read(BUILD)) == len(many) + 1


class TestDamage:
    """On SQLite, where a test can reach the file."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "mendwork.db"

    @pytest.fixture
    async def store(self, path: Path) -> AsyncIterator[Store]:
        async with await open_store(f"sqlite:///{path}") as store:
            await store.events.append(whole())
            yield store

    def damage(self, path: Path, change: str, where: str) -> None:
        with sqlite3.connect(path) as connection:
            assert connection.execute(f"UPDATE events SET {change} WHERE {where}").rowcount == 1  # noqa: S608 - ours
        connection.close()

    @pytest.mark.parametrize(
        "change",
        ["data = '{}'", "kind = 'x'", "task = 'nobody'", "sequence = 99", "build = 'build-calc-7'", "digest = ''"],
    )
    async def test_a_damaged_row_is_mended_wherever_it_is_damaged(self, store: Store, path: Path, change: str) -> None:
        self.damage(path, change, "kind = 'build.planned'")
        done = await store.events.rebuild(BUILD, whole())
        assert len(done.added) + len(done.mended) == 1
        assert await rows(store) == in_keys(whole())

    async def test_the_mark_goes_and_the_build_can_be_read_again(self, store: Store, path: Path) -> None:
        self.damage(path, "data = '{'", "kind = 'build.ended'")
        with pytest.raises(EventUnreadable):
            await store.events.read(BUILD)
        marked: Any = await store.builds.get(BUILD)
        assert marked.damaged
        await store.events.rebuild(BUILD, whole())
        assert await rows(store) == in_keys(whole())
        mended: Any = await store.builds.get(BUILD)
        assert (mended.damaged, mended.status) == ("", "succeeded")

    async def test_a_damaged_row_that_no_history_explains_goes_and_is_named(self, store: Store, path: Path) -> None:
        self.damage(path, "data = '[]'", "kind = 'build.ended'")
        done = await store.events.rebuild(BUILD, whole()[:-1])
        assert done.dropped == (key_of(whole()[-1]),)
        assert await rows(store) == in_keys(whole()[:-1])
