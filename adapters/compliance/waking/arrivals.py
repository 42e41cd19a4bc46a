"""What waiting for a build's next event must do. Subclass with a fixture ``store`` that gives an empty one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

import pytest

from adapters.compliance.store import event, whole_build
from domain.errors import StoreUnavailable
from domain.ports.store import Store

AGES = 60.0
"""Longer than a test may take: who is not woken by then fails."""
LONG = 600.0
"""How long is waited for, so that the look at its end comes too late to help."""


async def soon(waits: Awaitable[bool]) -> bool:
    """What it says, before the fallback or its end could."""
    async with asyncio.timeout(AGES):
        return await waits


class ArrivalsCompliance:
    """Rounds that are won by the fallback only, seconds later each, would together take longer than ``AGES``."""

    async def test_what_is_there_already_is_not_waited_for(self, store: Store) -> None:
        await store.events.append(whole_build())
        assert await store.arrivals.wait("build-a-1", after=0, seconds=LONG)

    async def test_no_seconds_are_one_look(self, store: Store) -> None:
        assert not await store.arrivals.wait("build-a-1", after=0, seconds=0)
        await store.events.append(whole_build())
        assert await store.arrivals.wait("build-a-1", after=0, seconds=0)
        last = (await store.events.read("build-a-1"))[-1][0]
        assert not await store.arrivals.wait("build-a-1", after=last, seconds=0)

    async def test_nothing_new_is_waited_for_as_long_as_was_asked(self, store: Store) -> None:
        started = time.monotonic()
        assert not await store.arrivals.wait("build-a-1", after=0, seconds=0.3)
        assert time.monotonic() - started >= 0.3

    async def test_two_sides_wake_each_other_again_and_again(self, store: Store) -> None:
        async with asyncio.timeout(AGES):
            await store.events.append([event(1, build="build-b-1", task="start")])
            await asyncio.gather(
                _answer(store, "build-a-1", "build-b-1", first=1), _answer(store, "build-b-1", "build-a-1", first=2)
            )
        assert len(await store.events.read("build-a-1")) == 15

    async def test_no_moment_between_a_look_and_its_end_loses_an_event(self, store: Store) -> None:
        async def write() -> None:
            for number in range(1, 61):
                await store.events.append([event(number, task="one")])
                for _ in range(number % 7):
                    await asyncio.sleep(0)

        async def follow() -> list[int]:
            seen: list[tuple[int, int]] = []
            while len(seen) < 60:
                assert await store.arrivals.wait("build-a-1", after=seen[-1][0] if seen else 0, seconds=LONG)
                found = await store.events.read("build-a-1", after=seen[-1][0] if seen else 0)
                seen += [(position, each.sequence) for position, each in found]
            return [sequence for _, sequence in seen]

        async with asyncio.timeout(AGES):
            seen, _ = await asyncio.gather(follow(), write())
        assert seen == list(range(1, 61))

    async def test_an_event_of_another_build_ends_no_wait(self, store: Store) -> None:
        waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=0, seconds=0.5))
        await store.events.append(whole_build("build-a-2"))
        assert not await waits

    async def test_everybody_who_waits_is_woken(self, store: Store) -> None:
        builds = [f"build-a-{number}" for number in range(1, 21)]
        waits = [asyncio.create_task(store.arrivals.wait(name, after=0, seconds=LONG)) for name in builds * 2]
        await asyncio.sleep(0)
        await store.events.append([event(1, build=name, task="one") for name in builds])
        async with asyncio.timeout(AGES):
            assert await asyncio.gather(*waits) == [True] * 40

    async def test_a_log_that_was_rebuilt_wakes(self, store: Store) -> None:
        await store.events.append(whole_build()[:2])
        last = (await store.events.read("build-a-1"))[-1][0]
        waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=last, seconds=LONG))
        await store.arrivals.wait("build-none-1", after=0, seconds=0.5)  # by now it is listened
        await store.events.rebuild("build-a-1", whole_build())
        assert await soon(waits)

    async def test_a_name_of_any_length_and_script_is_waited_for(self, store: Store) -> None:
        name = "build-ä'\"\\-" + "x" * 9000
        waits = asyncio.create_task(store.arrivals.wait(name, after=0, seconds=LONG))
        await asyncio.sleep(0)
        await store.events.append([event(1, build=name, task="one")])
        assert await soon(waits)

    async def test_who_is_cancelled_while_waiting_leaves_nothing_and_can_come_back(self, store: Store) -> None:
        for steps in range(30):
            waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=0, seconds=LONG))
            for _ in range(steps):
                await asyncio.sleep(0)
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
        waits = asyncio.create_task(store.arrivals.wait("build-a-1", after=0, seconds=LONG))
        await store.events.append(whole_build())
        assert await soon(waits)

    async def test_a_store_that_is_closed_ends_every_wait_with_an_error(self, store: Store) -> None:
        waits = [asyncio.create_task(store.arrivals.wait(f"build-{n}", after=0, seconds=LONG)) for n in range(5)]
        await store.arrivals.wait("build-none-1", after=0, seconds=0.3)  # by now it is listened
        await store.close()
        async with asyncio.timeout(AGES):
            outcomes = await asyncio.gather(*waits, return_exceptions=True)
        assert [type(each) for each in outcomes] == [StoreUnavailable] * 5
        assert "closed" in str(outcomes[0])

    async def test_a_store_that_is_closed_in_the_middle_of_anything_ends_it(self, store: Store) -> None:
        """At many points of a look, of an append, and before either has begun."""
        waits = [asyncio.create_task(store.arrivals.wait("build-none-1", after=0, seconds=LONG))]
        for number in range(1, 40):
            waits.append(asyncio.create_task(store.arrivals.wait("build-none-1", after=number, seconds=LONG)))
            await asyncio.sleep(0)
        await store.close()
        async with asyncio.timeout(AGES):
            outcomes = await asyncio.gather(*waits, return_exceptions=True)
        assert {type(each) for each in outcomes} == {StoreUnavailable}

    async def test_a_closed_store_is_waited_for_no_more(self, store: Store) -> None:
        await store.events.append(whole_build())
        await store.close()
        await store.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.arrivals.wait("build-a-1", after=0, seconds=LONG)


async def _answer(store: Store, build: str, other: str, *, first: int) -> None:
    """Append one event to ``build``'s log for each of the first 15 of ``other``, numbered from ``first``."""
    after = 0
    for number in range(first, first + 15):
        assert await store.arrivals.wait(other, after=after, seconds=LONG)
        after = (await store.events.read(other, after=after))[0][0]
        await store.events.append([event(number, build=build, task="one")])
