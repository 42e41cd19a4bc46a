"""What every keeper of places must do. Subclass with a fixture ``store`` that gives an empty one."""

from __future__ import annotations

import asyncio

import pytest

from domain.errors import Busy
from domain.ports.store import Store


class PlacesCompliance:
    async def test_there_are_as_many_places_as_the_limit_says(self, store: Store) -> None:
        for holder in ("one", "two"):
            await store.places.take("a", holder, build="build-a-1", limit=2)
        with pytest.raises(Busy, match="all 2 places for tasks of project a are taken") as caught:
            await store.places.take("a", "three", build="build-a-2", limit=2)
        assert caught.value.retry_after == 1.0
        await store.places.take("a", "three", build="build-a-2", limit=3)

    async def test_a_repeat_holds_the_same_place_also_when_all_are_taken(self, store: Store) -> None:
        for _ in range(3):
            await store.places.take("a", "one", build="build-a-1", limit=1)
        await store.places.give("a", "one")
        await store.places.take("a", "two", build="build-a-1", limit=1)

    async def test_a_place_that_is_given_back_is_free_and_giving_it_again_is_fine(self, store: Store) -> None:
        await store.places.take("a", "one", build="build-a-1", limit=1)
        for _ in range(2):
            await store.places.give("a", "one")
        await store.places.take("a", "two", build="build-a-1", limit=1)

    async def test_projects_do_not_share_places(self, store: Store) -> None:
        for project in ("a", "b"):
            await store.places.take(project, "one", build=f"build-{project}-1", limit=1)
        await store.places.give("b", "one")
        with pytest.raises(Busy):
            await store.places.take("a", "two", build="build-a-1", limit=1)

    async def test_a_build_that_ends_gives_all_its_places_back(self, store: Store) -> None:
        for holder, build in (("one", "build-a-1"), ("two", "build-a-1"), ("three", "build-a-2")):
            await store.places.take("a", holder, build=build, limit=3)
        assert [await store.places.free("build-a-1") for _ in range(2)] == [2, 0]
        await store.places.take("a", "four", build="build-a-3", limit=2)
        with pytest.raises(Busy):
            await store.places.take("a", "five", build="build-a-3", limit=2)

    async def test_racing_tasks_get_no_more_places_than_there_are(self, store: Store) -> None:
        takes = [store.places.take("a", f"task-{n}", build="build-a-1", limit=3) for n in range(10)]
        outcomes = await asyncio.gather(*takes, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Busy"] * 7 + ["NoneType"] * 3
