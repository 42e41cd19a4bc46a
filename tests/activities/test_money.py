"""Places are shared by a project's builds; a build that ends lets go of places and calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.accounts.money import Money, PlaceInput, SpentInput
from activities.repository.landing import CompensateInput
from adapters.compliance.calls import ANSWER, BOUND, CALL, KEY
from adapters.store import open_store
from domain.errors import Busy
from domain.money.budget import Spent
from domain.ports.store import Store

PLACE = PlaceInput(project="a", build="build-a-1", holder="build-a-1-task-one", limit=1)
OTHER = PlaceInput(project="a", build="build-a-2", holder="build-a-2-task-one", limit=1)
ENDS = CompensateInput(project="a", build="build-a-1")


@dataclass(frozen=True, slots=True)
class Desk:
    """The activities on a store of their own."""

    store: Store
    money: Money

    async def run(self, activity: Any, request: Any) -> Any:
        return await ActivityEnvironment().run(activity, request)


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with await open_store("memory:") as store:
        yield Desk(store, Money(ledger=store.ledger, places=store.places))


async def test_a_task_and_its_build_are_counted_apart(at: Desk) -> None:
    await at.store.calls.end(KEY, await at.store.calls.begin(KEY, CALL), outcome=ANSWER)
    assert await at.run(at.money.count_spent, SpentInput(build="build-a-1")) == Spent(settled=8100, calls=1)
    assert await at.run(at.money.count_spent, SpentInput(build="build-a-1", task="one")) == Spent(settled=8100, calls=1)
    assert await at.run(at.money.count_spent, SpentInput(build="build-a-1", task="two")) == Spent()


async def test_a_place_is_one_for_all_builds_of_a_project_until_it_is_given_back(at: Desk) -> None:
    for _ in range(2):
        await at.run(at.money.take_place, PLACE)
    with pytest.raises(Busy):
        await at.run(at.money.take_place, OTHER)
    for _ in range(2):
        await at.run(at.money.give_place, PLACE)
    await at.run(at.money.take_place, OTHER)


async def test_a_build_that_ends_holds_no_place_and_no_running_call(at: Desk) -> None:
    await at.run(at.money.take_place, PLACE)
    await at.store.calls.begin(KEY, CALL)
    for _ in range(2):
        assert await at.run(at.money.release_build, ENDS) is True
    assert await at.run(at.money.count_spent, SpentInput(build="build-a-1")) == Spent(unknown=BOUND, calls=1)
    await at.run(at.money.take_place, OTHER)
