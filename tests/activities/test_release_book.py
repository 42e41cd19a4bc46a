"""The record of releases and the door of a lane, as sagas use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.delivery.lanes import JoinLaneInput, Lanes, LookInput, RecallInput
from activities.delivery.releases import (
    CountPastInput,
    FindReleaseInput,
    OpenReleaseInput,
    RecordReleaseInput,
    ReleaseBook,
)
from adapters.compliance.delivery.releases import PROMOTED_NOW, RELEASE
from adapters.store.delivery.memory import MemoryReleases
from adapters.temporal.connect import DATA_CONVERTER
from adapters.temporal.delivery.memory import MemoryLanes
from domain.delivery.lane import lane_id
from domain.delivery.lane_state import LaneState, Shipped
from domain.delivery.recalling import Recalled
from domain.errors import InvalidInput, KeyConflict
from domain.ports.releases import OPEN, ROLLED_BACK, Release
from domain.ports.sagas import RUNNING, STOPPED, Standing
from domain.risk.evidence import Past
from tests.domain.lanes import holder, joined, queue, rolled_back, words


class Standings:
    """Sagas that stand as they were put."""

    def __init__(self, **states: str) -> None:
        self.states = states

    async def standings(self, ids: Sequence[str]) -> Mapping[str, Standing]:
        return {name: Standing(state=self.states.get(name, STOPPED)) for name in ids}


async def run(method: Any, request: Any) -> Any:
    """As a worker does it: on the wire there and back."""
    (given,) = await DATA_CONVERTER.decode(await DATA_CONVERTER.encode([request]), [type(request)])
    assert given == request
    return await ActivityEnvironment().run(method, given)


async def wired(value: Any, kind: Any) -> Any:
    (back,) = await DATA_CONVERTER.decode(await DATA_CONVERTER.encode([value]), [kind])
    return back


class TestTheBook:
    async def test_a_release_is_opened_written_and_found(self) -> None:
        book = ReleaseBook(releases=MemoryReleases())
        opening = OpenReleaseInput(project="a", saga=RELEASE.saga)
        assert [await run(book.open_release, opening) for _ in range(2)] == [1, 1]
        for release in (RELEASE, PROMOTED_NOW, PROMOTED_NOW):
            await run(book.record_release, RecordReleaseInput(release=release))
        found = await run(book.find_release, FindReleaseInput(project="a", number=1))
        assert await wired(found, Release | None) == PROMOTED_NOW
        assert await run(book.find_release, FindReleaseInput(project="a", number=2)) is None
        assert await wired(None, Release | None) is None

    async def test_a_release_of_another_saga_is_refused(self) -> None:
        book = ReleaseBook(releases=MemoryReleases())
        await run(book.open_release, OpenReleaseInput(project="a", saga="x"))
        with pytest.raises(KeyConflict):
            await run(book.record_release, RecordReleaseInput(release=RELEASE))

    async def test_the_past_is_counted(self) -> None:
        releases = MemoryReleases()
        for number, status in enumerate((ROLLED_BACK, "promoted", OPEN), 1):
            await releases.record(replace(RELEASE, number=number, saga=f"s{number}", status=status))
        past = await run(ReleaseBook(releases=releases).count_past, CountPastInput(project="a"))
        assert await wired(past, Past) == Past(releases=2, failed=1)


class TestTheDoor:
    def door(self, lanes: MemoryLanes, releases: MemoryReleases | None = None, **states: str) -> Lanes:
        return Lanes(lanes=lanes, sagas=Standings(**states), releases=releases or MemoryReleases())

    def joining(self, saga: str, release: int, **changes: Any) -> JoinLaneInput:
        return JoinLaneInput(project="shop", environment="production", saga=saga, release=release, **changes)

    async def test_who_joins_starts_the_lane_or_waits_in_it_and_a_repeat_changes_nothing(self) -> None:
        lanes = MemoryLanes()
        door = self.door(lanes)
        for saga, release in (("one", 1), ("two", 2), ("two", 2)):
            await run(door.join_lane, self.joining(saga, release, by="ann", commit="c", lease=5.0))
        state = lanes.states[lane_id("shop", "production")]
        assert (holder(state), queue(state), state.lease) == ("one", ["two"], 5.0)
        assert state.queue[0].run, "a late repeat can be told from a new run"
        assert (state.queue[0].by, state.queue[0].commit) == ("ann", "c")

    async def test_lanes_of_two_environments_do_not_meet(self) -> None:
        lanes = MemoryLanes()
        door = self.door(lanes)
        for environment in ("production", "staging"):
            await run(door.join_lane, replace(self.joining("one", 1), environment=environment))
        assert sorted(lanes.states) == ["lane-shop-production", "lane-shop-staging"]

    async def test_a_lane_that_cannot_work_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="history_events"):
            await run(self.door(MemoryLanes()).join_lane, self.joining("one", 1, history_events=3))

    async def test_a_look_says_how_the_holder_stands(self) -> None:
        door = self.door(MemoryLanes(), one=RUNNING)
        assert await run(door.look_at_holder, LookInput(saga="one")) == RUNNING
        assert await run(door.look_at_holder, LookInput(saga="two")) == STOPPED

    async def test_a_new_lane_learns_what_production_runs_and_who_is_under_way(self) -> None:
        releases = MemoryReleases()
        await releases.record(PROMOTED_NOW)
        for number, saga in ((2, "dead"), (3, "alive")):
            await releases.record(replace(RELEASE, number=number, saga=saga, status=OPEN))
        found = await run(self.door(MemoryLanes(), releases, alive=RUNNING).recall_releases, RecallInput(project="a"))
        assert await wired(found, Recalled) == found
        assert found.current == Shipped(number=1, commit="c1", artifact="d1", config="e1", at=9_000)
        assert [place.saga for place in found.open] == ["alive"]


async def test_a_whole_lane_goes_over_the_wire_into_its_next_run() -> None:
    state = rolled_back(LaneState(project="shop", environment="production", ready=True), "one", 1, current=0)
    state = joined(joined(state, "back", 2, kind="rollback"), "two", 3)
    assert state.holder is not None
    assert words(state)
    assert await wired(state, LaneState) == state
