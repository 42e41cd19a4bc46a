"""Turns at the providers: who waits is called in order, who cannot wait comes again, and no turn is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from activities.accounts import turns
from activities.accounts.turns import Away, Turnstile
from domain.errors import Crowded
from domain.flow.turns import Room

ROOM = Room(slots=4, lobby=4)
PROVIDERS = {"coder": "one", "planner": "one", "reviewer": "other"}


class Crowd:
    """Calls at a turnstile; each is made until it is told to end."""

    def __init__(self, room: Room = ROOM) -> None:
        self.turnstile = Turnstile(room, providers=PROVIDERS)
        self.made: list[str] = []
        self.away: dict[str, float] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def comes(self, *names: str, model: str = "coder") -> None:
        """Each name's first letter is its project."""
        for name in names:
            self.tasks[name] = asyncio.create_task(self._call(name, model))
            await self.settles()

    async def ends(self, name: str) -> None:
        self._ends[name].set()
        await self.settles()

    async def settles(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def _call(self, name: str, model: str) -> None:
        try:
            async with self.turnstile.turn(name, project=name[0], model=model):
                self.made.append(name)
                await self._ends.setdefault(name, asyncio.Event()).wait()
        except Crowded as error:
            self.away[name] = error.retry_after or 0


@asynccontextmanager
async def crowd(room: Room = ROOM) -> AsyncIterator[Crowd]:
    at = Crowd(room)
    yield at
    for task in at.tasks.values():
        task.cancel()
    await asyncio.gather(*at.tasks.values(), return_exceptions=True)
    assert at.turnstile.inside == {}


async def test_who_waits_is_called_in_the_order_in_which_they_came() -> None:
    async with crowd() as at:
        await at.comes("a1", "a2", "a3", "a4")
        assert at.made == ["a1", "a2"]
        await at.ends("a2")
        await at.ends("a1")
        assert at.made == ["a1", "a2", "a3", "a4"]


async def test_a_later_project_is_not_kept_waiting_by_those_who_wait() -> None:
    async with crowd() as at:
        await at.comes("a1", "a2", "a3", "a4", "b1", "c1")
        assert at.made == ["a1", "a2", "b1", "c1"]
        await at.ends("a1")
        assert at.made[4:] == []  # others have taken slots meanwhile: one of two is what the project may have now


async def test_who_cannot_wait_comes_again_the_later_the_more_there_are() -> None:
    async with crowd() as at:
        await at.comes(*(f"a{number}" for number in range(304)))
        assert len(at.made) == 2
        assert len(at.away) == 300
        assert at.away["a4"] < 2
        assert at.away["a303"] > 14
        await at.comes("b1")
        assert at.made[-1] == "b1"


async def test_who_waits_too_long_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LOBBY_SECONDS", 0.01)
    async with crowd() as at:
        await at.comes("a1", "a2", "a3")
        async with asyncio.timeout(20):
            await at.tasks["a3"]
        assert list(at.away) == ["a3"]
        await at.ends("a1")
        await at.comes("a4")
        assert at.made == ["a1", "a2", "a4"]


async def test_a_call_that_is_cancelled_gives_its_turn_to_the_next_whether_it_waited_or_not() -> None:
    async with crowd() as at:
        await at.comes("a1", "a2", "a3", "a4")
        at.tasks["a3"].cancel()
        at.tasks["a1"].cancel()
        await at.settles()
        assert at.made == ["a1", "a2", "a4"]


async def test_a_call_that_is_cancelled_as_it_is_called_gives_its_turn_on() -> None:
    async with crowd() as at:
        await at.comes("a1", "a2", "a3", "a4")
        at.tasks["a1"].cancel()
        await asyncio.sleep(0)  # its turn has gone to a3, which has not gone on yet
        at.tasks["a3"].cancel()
        await at.settles()
        assert at.made[-1] == "a4"


async def test_another_provider_is_reached_while_one_hangs_for_everybody() -> None:
    async with crowd(Room(slots=4, lobby=4, provider_share=0.75)) as at:
        await at.comes("a1", "b1", "c1", "d1")
        assert at.made == ["a1", "b1", "c1"]
        await at.comes("e1", model="reviewer")
        assert at.made[-1] == "e1"


async def test_one_project_that_is_away_does_not_make_another_wait_longer() -> None:
    away = Away()
    for number in range(500):
        away.send("a", f"a{number}")
    assert away.send("a", "more") > 20
    assert away.send("b", "b1") <= 1.5


async def test_who_came_back_is_not_counted_any_more() -> None:
    away = Away()
    for number in range(500):
        away.send("a", f"a{number}")
        away.back("a", f"a{number}")
    assert away.send("a", "last") <= 1.5
