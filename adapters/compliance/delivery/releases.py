"""What every record of releases must do. Subclass with a fixture ``store`` that gives an empty one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from domain.errors import InvalidInput, KeyConflict, UnknownName
from domain.ports.releases import OPEN, PROMOTED, ROLLED_BACK, Release
from domain.ports.store import Store

RELEASE = Release(
    project="a",
    number=1,
    saga="build-a-1-release",
    revision=1,
    kind="deliver",
    status=OPEN,
    commit="c1",
    build="build-a-1",
    artifact="d1",
    config="e1",
    previous=0,
    started=1_000,
    sentence="",
    record={"windows": [{"number": 1, "p95": 12.5}], "approved": None},
)
PROMOTED_NOW = replace(RELEASE, revision=2, status=PROMOTED, ended=9_000, sentence="it serves")


async def recorded(store: Store, number: int, **changes: Any) -> Release:
    """The ``number``-th release of project a, reserved and written."""
    release = replace(RELEASE, number=number, saga=f"build-a-{number}-release", **changes)
    assert await store.releases.reserve(release.project, saga=release.saga) == number
    await store.releases.record(release)
    return release


class ReleasesCompliance:
    async def test_numbers_count_from_one_in_each_project_and_a_saga_gets_its_own_again(self, store: Store) -> None:
        asked = [("a", "x"), ("a", "y"), ("b", "x"), ("a", "x"), ("a", "z")]
        assert [await store.releases.reserve(project, saga=saga) for project, saga in asked] == [1, 2, 1, 1, 3]

    async def test_a_number_that_is_only_reserved_is_no_release(self, store: Store) -> None:
        await store.releases.reserve("a", saga="x")
        assert await store.releases.get("a", 1) is None
        assert list(await store.releases.list("a")) == []

    async def test_what_was_recorded_comes_back_whole(self, store: Store) -> None:
        release = await recorded(store, 1)
        assert await store.releases.get("a", 1) == release
        assert await store.releases.get("b", 1) is None
        assert await store.releases.get("a", 2) is None

    async def test_the_newest_write_stays_in_any_order_and_repeats_change_nothing(self, store: Store) -> None:
        await store.releases.reserve("a", saga=RELEASE.saga)
        for release in (RELEASE, PROMOTED_NOW, RELEASE, PROMOTED_NOW):
            await store.releases.record(release)
        assert await store.releases.get("a", 1) == PROMOTED_NOW

    async def test_another_content_under_one_revision_fails_loudly(self, store: Store) -> None:
        await recorded(store, 1)
        with pytest.raises(KeyConflict, match="release 1 of a is there in revision 1 with another content"):
            await store.releases.record(replace(RELEASE, status=ROLLED_BACK))
        assert await store.releases.get("a", 1) == RELEASE

    async def test_a_release_belongs_to_its_saga(self, store: Store) -> None:
        await store.releases.reserve("a", saga="x")
        with pytest.raises(KeyConflict, match="belongs to x, not to build-a-1-release"):
            await store.releases.record(RELEASE)
        with pytest.raises(KeyConflict, match="cannot be x's, whose release is 1"):
            await store.releases.record(replace(RELEASE, number=2, saga="x"))
        assert list(await store.releases.list("a")) == []

    async def test_a_release_that_was_written_without_a_reservation_has_its_number(self, store: Store) -> None:
        await store.releases.record(replace(RELEASE, number=4))
        assert await store.releases.reserve("a", saga="x") == 5
        assert await store.releases.reserve("a", saga=RELEASE.saga) == 4

    async def test_releases_are_listed_newest_first_by_project_up_to_a_limit(self, store: Store) -> None:
        releases = [await recorded(store, number) for number in range(1, 13)]
        await store.releases.record(replace(RELEASE, project="b"))
        assert list(await store.releases.list("a")) == releases[::-1]
        assert [release.number for release in await store.releases.list("a", limit=2)] == [12, 11]
        assert list(await store.releases.list("none")) == []

    async def test_any_text_comes_back_as_it_was(self, store: Store) -> None:
        release = replace(RELEASE, sentence="\0 \ud800 ü 😀 \x1b[31m", record={"log": "\0\ud800", "deep": {"b": [1]}})
        await store.releases.record(release)
        assert await store.releases.get("a", 1) == release

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"status": "fine"}, UnknownName),
            ({"number": 0}, InvalidInput),
            ({"revision": -1}, InvalidInput),
            ({"saga": ""}, InvalidInput),
            ({"record": {"p95": float("nan")}}, InvalidInput),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    async def test_what_is_no_release_is_refused(self, store: Store, changes: dict[str, Any], error: Any) -> None:
        with pytest.raises(error):
            await store.releases.record(replace(RELEASE, **changes))
        assert list(await store.releases.list("a")) == []

    async def test_racing_sagas_get_numbers_without_a_gap_and_each_the_same_every_time(self, store: Store) -> None:
        sagas = [f"saga-{n % 10}" for n in range(30)]
        taken = await asyncio.gather(*(store.releases.reserve("a", saga=saga) for saga in sagas))
        assert sorted(set(taken)) == list(range(1, 11))
        assert len(set(zip(sagas, taken, strict=True))) == 10

    async def test_racing_writes_of_one_release_leave_the_newest(self, store: Store) -> None:
        writes = [replace(RELEASE, revision=n, sentence=f"write {n}") for n in (3, 1, 5, 2, 4, 5, 1)]
        await asyncio.gather(*(store.releases.record(write) for write in writes))
        assert await store.releases.get("a", 1) == writes[2]
