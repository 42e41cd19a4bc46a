"""The lane on a real server: serialised holders, the lease, the freeze, many runs, workers that die."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.delivery.lanes import Lanes
from adapters.store.delivery.memory import MemoryReleases
from adapters.temporal.delivery.lanes import TemporalLanes
from adapters.temporal.sagas import TemporalSagas
from domain.delivery.lane import lane_id
from domain.ports.releases import OPEN, PROMOTED, Release
from tests.workflows.guests import Guest
from workflows.delivery.lane import Lane

Handle = WorkflowHandle[Any, Any]


@dataclass
class Site:
    """Who works where, as production would see it."""

    inside: dict[str, list[str]] = field(default_factory=dict)
    log: list[tuple[str, int]] = field(default_factory=list)
    crowded: list[str] = field(default_factory=list)
    meeting: asyncio.Barrier | None = None

    @activity.defn(name="work")
    async def work(self, request: dict[str, Any]) -> None:
        project, saga = request["project"], request["saga"]
        here = self.inside.setdefault(project, [])
        here.append(saga)
        if len(here) > 1:
            self.crowded.append(f"{here} at once")
        self.log.append((project, request["release"]))
        if self.meeting is not None:
            async with asyncio.timeout(30):
                await self.meeting.wait()
        await asyncio.sleep(0.01)
        here.remove(saga)


class Scene:
    """Projects of the test's own on one queue, and a record of releases."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.queue = uuid.uuid4().hex
        self.project = f"shop-{self.queue[:12]}"
        self.site = Site()
        self.releases = MemoryReleases()

    def worker(self) -> Worker:
        lanes = TemporalLanes(self.client, task_queue=self.queue)
        door = Lanes(lanes=lanes, sagas=TemporalSagas(self.client), releases=self.releases)
        activities: list[Callable[..., Any]] = [
            door.join_lane,
            door.look_at_holder,
            door.recall_releases,
            self.site.work,
        ]
        return Worker(self.client, task_queue=self.queue, workflows=[Lane, Guest], activities=activities)

    @property
    def lane(self) -> Handle:
        return self.client.get_workflow_handle(lane_id(self.project, "production"))

    async def guest(self, release: int, **request: Any) -> Handle:
        """A delivery that has joined: the lane knows it."""
        handle = await self.start(release, **request)
        await self.until(lambda: heard(handle))
        return handle

    async def start(self, release: int, **request: Any) -> Handle:
        wanted = {"project": self.project, "release": release, "commit": f"c{release}", "lease": 60.0, **request}
        name = f"deliver-{wanted['project']}-{release}-{uuid.uuid4().hex[:6]}"
        return await self.client.start_workflow("Guest", wanted, id=name, task_queue=self.queue)

    async def state(self) -> dict[str, Any]:
        state: dict[str, Any] = await self.lane.query("state")
        return state

    async def until(self, what: Callable[[], Awaitable[Any]], *, seconds: float = 60) -> Any:
        """Wait for a true value of ``what``, and return it."""
        async with asyncio.timeout(seconds):
            while not (value := await what()):  # noqa: ASYNC110 - the condition lies on the server
                await asyncio.sleep(0.03)
            return value

    async def until_state(self, wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            state = await self.state()
            return state if wanted(state) else None

        found: dict[str, Any] = await self.until(look)
        return found

    async def granted(self, guest: Handle) -> None:
        async def look() -> bool:
            return any(word["granted"] for word in await heard(guest))

        await self.until(look)


async def heard(guest: Handle) -> list[dict[str, Any]]:
    words: list[dict[str, Any]] = await guest.query("heard")
    return words


async def result(guest: Handle) -> dict[str, Any]:
    async with asyncio.timeout(60):
        word: dict[str, Any] = await guest.result()
        return word


@pytest.fixture
async def scene(client: Client) -> AsyncIterator[Scene]:
    scene = Scene(client)
    async with scene.worker():
        yield scene


async def test_deliveries_of_a_project_are_serialised_in_order_and_those_of_others_do_not_wait(scene: Scene) -> None:
    scene.site.meeting = asyncio.Barrier(2)  # passed only while both projects have somebody inside
    other = f"{scene.project}-2"
    guests = []
    for release in range(1, 5):
        guests.append(await scene.guest(release, outcome="promoted"))
        guests.append(await scene.guest(release, outcome="promoted", project=other))
    words = [await result(guest) for guest in guests]
    assert scene.site.crowded == []
    for project in (scene.project, other):
        assert [release for p, release in scene.site.log if p == project] == [1, 2, 3, 4]
    assert all(word["granted"] for word in words)
    state = await scene.until_state(lambda state: state["holder"] is None)
    assert (state["current"]["number"], state["current"]["commit"]) == (4, "c4")
    assert [shipped["number"] for shipped in state["history"]] == [1, 2, 3, 4]


async def test_one_that_waits_hears_its_position_and_joining_again_changes_nothing(scene: Scene) -> None:
    first, second = await scene.guest(1), await scene.guest(2)
    assert (await heard(second))[0]["position"] == 1
    for guest, release in ((first, 1), (second, 2)):
        await scene.lane.signal("join", {"saga": guest.id, "release": release})
    state = await scene.until_state(lambda state: state["holder"])
    assert (state["holder"]["place"]["saga"], [place["saga"] for place in state["queue"]]) == (first.id, [second.id])
    await first.signal("go", {"outcome": "promoted"})
    await scene.granted(second)
    assert [word["current"] for word in await heard(second) if word["granted"]] == [1]


async def test_an_older_release_is_refused_and_a_rollback_is_let_in(scene: Scene) -> None:
    await result(await scene.start(5, outcome="promoted"))
    await scene.until_state(lambda state: state["current"])
    word = await result(await scene.start(4))
    assert word["refused"]
    assert "older than production's, which is 5" in word["reason"]
    assert (await result(await scene.start(3, kind="rollback", outcome="promoted")))["granted"]


async def test_a_holder_that_was_terminated_loses_the_lane_and_a_person_lets_the_next_one_in(scene: Scene) -> None:
    first = await scene.guest(1, lease=0.2)
    second = await scene.guest(2)
    await scene.granted(first)
    await first.terminate()
    state = await scene.until_state(lambda state: state["frozen"])
    assert state["holder"] is None
    assert (state["frozen"]["release"], state["frozen"]["outcome"]) == (1, "unclear")
    last = await scene.until(lambda: told_of_the_freeze(second))
    assert f"`mendwork lane {scene.project} --acknowledge --reason '…'`" in last["reason"]
    await scene.lane.signal("acknowledge", {"by": "ann", "reason": "looked: release 0 serves"})
    await scene.granted(second)
    state = await scene.state()
    assert (state["acknowledged"]["by"], state["acknowledged"]["release"]) == ("ann", 1)


async def told_of_the_freeze(guest: Handle) -> dict[str, Any] | None:
    return next((word for word in await heard(guest) if "frozen" in word["reason"]), None)


async def test_a_holder_that_runs_keeps_the_lane_over_many_leases(scene: Scene) -> None:
    guest = await scene.guest(1, lease=0.05)
    first = (await scene.until_state(lambda state: state["holder"]))["holder"]
    await scene.until_state(lambda state: state["holder"]["looked"] > first["since"] + 400)
    state = await scene.state()
    assert (state["holder"]["place"]["saga"], state["frozen"]) == (guest.id, None)


async def test_after_a_rollback_deliveries_wait_until_it_is_acknowledged_by_an_update(scene: Scene) -> None:
    first = await scene.guest(7)
    idle = await scene.lane.execute_update("acknowledge", {"by": "ann"})
    assert idle == {"outcome": "refused", "reason": "the lane is not frozen", "ask": ""}
    await first.signal("go", {"outcome": "rolled back", "sentence": "it was slow", "current": 6})
    await result(first)
    second = await scene.guest(8)
    assert "it was slow" in (await heard(second))[-1]["reason"]
    stale = await scene.lane.execute_update("acknowledge", {"by": "ann", "release": 3})
    assert stale["reason"] == "it is frozen by release 7"
    ruling = await scene.lane.execute_update("acknowledge", {"by": "ann", "reason": "an index was missing"})
    assert ruling["outcome"] == "accepted"
    await scene.granted(second)
    assert (await scene.state())["current"]["number"] == 6


async def test_one_that_is_gone_when_its_turn_comes_loses_its_place_and_freezes_nothing(scene: Scene) -> None:
    first, second, third = [await scene.guest(release) for release in (1, 2, 3)]
    await second.terminate()
    await first.signal("go", {"outcome": "untouched"})
    await scene.granted(third)
    state = await scene.state()
    assert (state["holder"]["place"]["saga"], state["frozen"], state["queue"]) == (third.id, None, [])
    assert any("was gone when it was told" in fact["sentence"] for fact in state["facts"])


async def test_what_cannot_be_read_is_a_fact_with_a_reason_and_the_lane_goes_on(scene: Scene) -> None:
    guest = await scene.guest(1)
    for signal, raw in (("join", "x"), ("leave", {"saga": guest.id, "outcome": "fine"}), ("acknowledge", [1])):
        await scene.lane.signal(signal, raw)
    await scene.lane.signal("join")
    ruling = await scene.lane.execute_update("acknowledge", {"by": 1})
    assert ruling["outcome"] == "refused"
    state = await scene.until_state(lambda state: len(state["facts"]) >= 5)
    assert state["holder"]["place"]["saga"] == guest.id
    assert [fact["sentence"].partition(":")[0] for fact in state["facts"]][:2] == ["join", "leave"]


@pytest.mark.parametrize("request_", [None, 7, {"project": "shop"}, {"project": "shop", "environment": 1}])
async def test_a_start_that_cannot_be_read_fails_typed_and_at_once(scene: Scene, request_: Any) -> None:
    handle = await scene.client.start_workflow("Lane", request_, id=uuid.uuid4().hex, task_queue=scene.queue)
    with pytest.raises(WorkflowFailureError) as caught:
        await result(handle)
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "InvalidInput"


async def test_under_load_it_goes_on_in_new_runs_and_loses_nobody(scene: Scene) -> None:
    guests = await asyncio.gather(*(scene.start(1, outcome="promoted", history_events=20) for _ in range(8)))
    words = await asyncio.gather(*map(result, guests))
    assert all(word["granted"] for word in words)
    assert scene.site.crowded == []
    assert len(scene.site.log) == 8
    described = await scene.lane.describe()
    first = await scene.client.get_workflow_handle(scene.lane.id, run_id=described.raw_info.first_run_id).describe()
    assert first.status is WorkflowExecutionStatus.CONTINUED_AS_NEW
    state = await scene.until_state(lambda state: state["holder"] is None)
    assert (state["queue"], state["current"]["number"], len(state["history"])) == ([], 1, 8)


async def test_holder_queue_and_freeze_go_on_in_a_new_run(scene: Scene) -> None:
    await result(await scene.start(1, outcome="promoted", history_events=20))
    await result(await scene.start(2, outcome="rolled back"))
    second = await scene.guest(3)
    run = (await scene.lane.describe()).run_id
    for _ in range(30):
        await scene.lane.signal("leave", {"saga": "nobody", "outcome": "untouched"})
    await scene.until(lambda: another_run(scene, run))
    state = await scene.state()
    assert (state["frozen"]["release"], [place["saga"] for place in state["queue"]]) == (2, [second.id])
    await scene.lane.execute_update("acknowledge", {"by": "ann"})
    await scene.granted(second)
    await second.signal("go", {"outcome": "promoted"})
    assert (await scene.until_state(lambda state: not state["holder"]))["current"]["number"] == 3


async def another_run(scene: Scene, run: str | None) -> bool:
    return (await scene.lane.describe()).run_id != run


async def test_a_worker_that_dies_takes_nothing_with_it(client: Client) -> None:
    scene = Scene(client)
    async with scene.worker():
        first, second = await scene.guest(1, lease=0.2), await scene.guest(2)
        await scene.granted(first)
    await first.terminate()  # while nobody serves the lane
    await scene.lane.signal("join", {"saga": first.id, "release": 1})
    async with scene.worker():
        state = await scene.until_state(lambda state: state["frozen"])
        assert state["frozen"]["saga"] == first.id
        await scene.lane.execute_update("acknowledge", {"by": "ann"})
        await scene.granted(second)


class TestALaneThatWasTerminated:
    def release(self, scene: Scene, guest: str, number: int, status: str) -> Release:
        return Release(
            project=scene.project,
            number=number,
            saga=guest,
            revision=1,
            kind="deliver",
            status=status,
            commit=f"c{number}",
        )

    async def test_starts_anew_with_what_the_store_knows(self, scene: Scene) -> None:
        await scene.releases.record(self.release(scene, "long-ago", 6, PROMOTED))
        word = await result(await scene.start(4))
        assert word["refused"]
        assert "which is 6" in word["reason"]
        await scene.lane.terminate()
        assert (await result(await scene.start(5)))["refused"]
        assert (await result(await scene.start(7, outcome="untouched")))["granted"]

    async def test_lets_nobody_in_beside_the_one_that_holds_and_forgets_nobody_who_waits(self, scene: Scene) -> None:
        guests = [await scene.guest(release) for release in (1, 2)]
        await scene.granted(guests[0])
        for number, guest in enumerate(guests, 1):
            await scene.releases.record(self.release(scene, guest.id, number, OPEN))
        await scene.lane.terminate()
        third = await scene.guest(3)
        state = await scene.state()
        assert state["holder"]["place"]["saga"] == guests[0].id
        assert [place["saga"] for place in state["queue"]] == [guests[1].id, third.id]
        for before, after in zip(guests, (guests[1], third), strict=True):
            await before.signal("go", {"outcome": "promoted"})
            await scene.granted(after)


async def test_ten_projects_that_deliver_at_once_do_not_meet(scene: Scene) -> None:
    scene.site.meeting = asyncio.Barrier(10)  # passed only while all ten are inside
    projects = [f"{scene.project}-{n}" for n in range(10)]
    guests = await asyncio.gather(*(scene.start(1, outcome="promoted", project=project) for project in projects))
    assert all(word["granted"] for word in await asyncio.gather(*map(result, guests)))
    assert scene.site.crowded == []
