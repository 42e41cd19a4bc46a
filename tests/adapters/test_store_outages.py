"""PostgreSQL is cut, restarted and short of connections while all is written: nothing is lost, nothing is twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from adapters.compliance.calls import ANSWER, BOUND, CALL, KEY, PAYER, UNLIMITED, USAGE
from adapters.compliance.store import event, whole_build
from adapters.store import open_store
from domain.errors import Overtaken, Transient
from domain.money.accounts import accounts_of, day_of
from domain.money.budget import Spent
from domain.ports.language_model import CallKey
from domain.ports.store import Store, UndoRecord
from tests.postgres import Cluster, running_cluster

T = TypeVar("T")
TIGHT = "&pool_size=2&pool_overflow=1&pool_timeout=1"
PATIENCE = 60.0
ACCOUNTS = accounts_of(PAYER, day=day_of(CALL.at))


@dataclass(slots=True)
class Sagas:
    """What writes while the database suffers. Each does its next step until it is told that the storm is over; a step
    that met a Transient fault is done again from its start, as Temporal would."""

    store: Store
    over: asyncio.Event = field(default_factory=asyncio.Event)
    faults: list[Transient] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)

    async def again(self, step: Callable[[], Awaitable[T]]) -> T:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await step()
                except Transient as fault:
                    self.faults.append(fault)
                    await asyncio.sleep(0.01)

    async def append(self, build: str) -> int:
        number = 0
        while not self.over.is_set():
            batch = [event(number + n, build=build, task="one", n=number + n) for n in (1, 2, 3)]
            await self.again(lambda batch=batch: self.store.events.append(batch))  # type: ignore[misc]
            number += 3
        return number

    async def follow(self, build: str) -> list[int]:
        """What a person at the terminal sees, who is there from the first event on."""
        seen: list[int] = []
        position = 0

        async def step() -> None:
            nonlocal position
            await self.store.arrivals.wait(build, after=position, seconds=0.5)
            for at, each in await self.store.events.read(build, after=position):
                position = at
                seen.append(each.sequence)

        while not self.over.is_set():
            await self.again(step)
        return seen

    async def call_models(self) -> int:
        turn = 0
        while not self.over.is_set():
            turn += 1
            key = replace(KEY, turn=turn)
            await self.again(lambda key=key: self._call(key))  # type: ignore[misc]
        return turn

    async def _call(self, key: CallKey) -> None:
        """As the model activity does: look, begin, ask, end."""
        if await self.store.calls.find(key, request="r1") is not None:
            return
        number = await self.store.calls.begin(key, replace(CALL, budget=UNLIMITED))
        await self.store.calls.end(key, number, outcome=ANSWER)

    async def undo(self) -> int:
        number = 0
        while not self.over.is_set():
            number += 1
            key = f"build-a-1/step/{number}"
            record = UndoRecord(key=key, build="build-a-1", action="forget", data={"n": number})
            await self.again(lambda record=record: self.store.undo.register(record))  # type: ignore[misc]
            await self.again(lambda key=key: self.store.undo.close(key, outcome="undone"))  # type: ignore[misc]
        return number

    async def number(self) -> None:
        while not self.over.is_set():
            self.taken.append(await self.again(lambda: self.store.builds.reserve_number("a")))


async def storm(cluster: Cluster, url: str) -> None:
    """Connections are cut at many moments, and the server goes and comes, in order and at once."""
    name = url.partition("@/")[2].partition("?")[0]
    cut = f"DO $$ BEGIN PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'; END $$"
    for mode in ("fast", "immediate", "fast"):
        for cuts in range(8):
            await asyncio.to_thread(cluster.execute, cut)
            await asyncio.sleep(0.013 * cuts)
        await asyncio.to_thread(cluster.stop, mode=mode)
        await asyncio.to_thread(cluster.start)
        await asyncio.sleep(0.2)


@pytest.fixture(scope="module")
def fragile() -> Iterator[Cluster]:
    """One that tests stop and start, beside the one that all others share."""
    with running_cluster() as cluster:
        yield cluster


@pytest.mark.timeout(240)
async def test_what_is_written_through_cuts_restarts_and_shortage_is_there_once(fragile: Cluster) -> None:
    url = fragile.create()
    async with await open_store(url + TIGHT) as store, await open_store(url + TIGHT) as other:
        here, there = Sagas(store), Sagas(other)
        numbers = asyncio.gather(here.number(), there.number())
        work = asyncio.gather(here.append("build-a-1"), there.append("build-a-2"), here.call_models(), there.undo())
        follower = asyncio.create_task(there.follow("build-a-1"))
        await storm(fragile, url)
        here.over.set()
        there.over.set()
        first, second, calls, undone = await work
        seen = await follower
        await numbers
        assert here.faults, "the storm was felt"
        await log_is_whole(store, {"build-a-1": first, "build-a-2": second})
        assert seen == list(range(1, len(seen) + 1)), "a follower sees each once, in order"
        await money_adds_up(store, calls)
        assert list(await store.undo.open()) == []
        assert undone > 0
        taken = here.taken + there.taken
        assert len(set(taken)) == len(taken), "no build number is given twice"


async def log_is_whole(store: Store, lengths: dict[str, int]) -> None:
    for build, length in lengths.items():
        read = await store.events.read(build)
        assert [each.sequence for _, each in read] == list(range(1, length + 1))
        assert length > 0
        positions = [position for position, _ in read]
        assert positions == sorted(set(positions))


async def money_adds_up(store: Store, calls: int) -> None:
    """Each key is answered once, and every account is the sum of what each try counts for."""
    tries = await store.calls.tries(PAYER.build)
    answered = [each.key for each in tries if each.state == "answered"]
    assert sorted(answered) == sorted(str(replace(KEY, turn=turn)) for turn in range(1, calls + 1))
    lost = [each for each in tries if each.state == "unknown"]
    assert len(answered) + len(lost) == len(tries), "no try is running any more"
    assert USAGE.cost_micros is not None
    expected = Spent(settled=calls * USAGE.cost_micros, unknown=len(lost) * BOUND, calls=len(tries))
    for account in ACCOUNTS:
        assert await store.ledger.spent(account) == expected, account


@pytest.mark.timeout(240)
@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_server_that_goes_in_the_middle_of_one_append_leaves_it_out_or_in(mode: str, fragile: Cluster) -> None:
    events = [event(n, task="one", text="x" * 500) for n in range(1, 3000)]
    async with await open_store(fragile.create()) as store:
        await store.events.append(whole_build("build-a-2"))
        append = asyncio.create_task(store.events.append(events))
        await asyncio.wait([append], timeout=0.1)
        await asyncio.to_thread(fragile.stop, mode=mode)
        outcome = (await asyncio.gather(append, return_exceptions=True))[0]
        assert outcome == 2999 or isinstance(outcome, Transient)
        await asyncio.to_thread(fragile.start)
        there = len(await store.events.read("build-a-1"))
        assert there in (0, 2999)
        assert await store.events.append(events) == 2999 - there
        assert len(await store.events.read("build-a-1")) == 2999


async def test_an_answer_whose_acknowledgement_was_lost_is_settled_once(postgres_url: str) -> None:
    """The commit was done, the connection was cut before the word came: the activity does it all again."""
    async with await open_store(postgres_url) as store:
        number = await store.calls.begin(KEY, CALL)
        await store.calls.end(KEY, number, outcome=ANSWER)
        await store.calls.end(KEY, number, outcome=ANSWER)
        with pytest.raises(Overtaken):
            await store.calls.begin(KEY, CALL)
        assert await store.ledger.spent(ACCOUNTS[0]) == Spent(settled=8100, calls=1)
