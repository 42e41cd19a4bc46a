"""What a later task, or another build, has to wait for: a file that somebody took, and a place among the project's."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.client import Client

from activities.accounts.money import Money, PlaceInput
from activities.repository.changes import AdvanceHeadInput
from adapters.store import open_store
from domain.build.project import Limits
from domain.errors import Busy
from tests.workflows.fakes import World
from tests.workflows.running import begin, serving, until
from tests.workflows.test_parallel import plan, task, tasks_of


@dataclass
class SlowMerges(World):
    """Some merges take until the test lets them, by the commit that becomes the head."""

    let: dict[str, asyncio.Event] = field(default_factory=dict)

    @activity.defn(name="advance_head")
    async def do_advance_head(self, request: AdvanceHeadInput) -> None:
        await World.do_advance_head(self, request)
        let = self.let.get(request.new)
        while let is not None and not let.is_set():
            activity.heartbeat()
            await asyncio.wait([asyncio.ensure_future(let.wait())], timeout=0.2)

    def heads(self) -> list[str]:
        """The heads that were begun, in order."""
        return [move.new for move in self.of("advance_head")]


@dataclass
class OneProject(World):
    """Places are those of a real store; ``places`` is what came of asking for them, in order."""

    money: Money | None = None
    places: list[tuple[str, str]] = field(default_factory=list)

    @activity.defn(name="take_place")
    async def do_take_place(self, request: PlaceInput) -> None:
        assert self.money is not None
        try:
            await self.money.take_place(request)
        except Busy:
            self.places.append(("turned away", request.holder))
            raise
        self.places.append(("took", request.holder))

    @activity.defn(name="give_place")
    async def do_give_place(self, request: PlaceInput) -> None:
        assert self.money is not None
        self.places.append(("gave", request.holder))
        await self.money.give_place(request)


async def test_a_file_that_nobody_declared_is_kept_from_later_tasks_until_who_took_it_is_merged(client: Client) -> None:
    world = SlowMerges(check=plan(task("a"), task("b"), task("c", "b")), hold=asyncio.Event())
    world.let = {"b-1": asyncio.Event(), "a-1@b-1": asyncio.Event()}
    world.held = lambda call: "-task-a" in call.key.saga
    world.touch = lambda request: ("a.py", "c.py") if request.task == "a" else (f"{request.task}.py",)
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue)
        await until(lambda: world.heads() == ["b-1"])  # the other merges wait for this one
        assert world.hold is not None
        world.hold.set()
        while (await handle.query("state"))["tasks"]["a"] != "written":  # noqa: ASYNC110 - the condition lies in the saga
            await asyncio.sleep(0.02)
        world.let["b-1"].set()
        await until(lambda: world.heads() == ["b-1", "a-1@b-1"])
        await until(lambda: any(e.kind == "snapshot.taken" and e.data["head"] == "b-1" for e in world.events))
        meanwhile = await handle.query("state")
        written = tasks_of(world, "render_change_prompt")
        world.let["a-1@b-1"].set()
        result = await handle.result()
    assert meanwhile["tasks"] == {
        "a": "written",
        "b": "merged",
        "c": "waiting",
    }  # though all that c depends on is there
    assert "c" not in written
    assert next(r.base for r in world.of("render_change_prompt") if r.task == "c") == "a-1@b-1"
    assert "task.waits" not in world.kinds()  # nobody was writing c.py when a took it
    assert (result["status"], result["commit"]) == ("succeeded", "c-1")


async def test_a_second_build_waits_for_a_place_of_its_project_and_then_goes_on_to_its_end(client: Client) -> None:
    queue = uuid.uuid4().hex
    first, second = f"build-notes-{queue}-1", f"build-notes-{queue}-2"
    world = OneProject(limits=Limits(project_parallel=1), hold=asyncio.Event())
    world.held = lambda call: call.key.step == "change" and call.key.saga.startswith(first)
    async with await open_store("memory:") as store, serving(client, world, queue), asyncio.timeout(90):
        world.money = Money(ledger=store.ledger, places=store.places)
        one = await begin(client, queue, name=first)
        await world.holding.wait()
        two = await begin(client, queue, name=second)
        await until(lambda: ("turned away", f"{second}-task-store") in world.places)
        asked = [call.key.saga for call in world.of("call_model") if call.key.step == "change"]
        assert world.hold is not None
        world.hold.set()
        ended = [(await handle.result())["status"] for handle in (one, two)]
    assert asked == [f"{first}-task-store"]
    assert ended == ["succeeded", "succeeded"]
    turns = [turn for turn in world.places if turn[0] != "turned away"]
    assert [what for what, _ in turns] == ["took", "gave"] * 4
    assert all(took == gave for (_, took), (_, gave) in zip(turns[::2], turns[1::2], strict=True))
