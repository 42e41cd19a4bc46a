"""Whatever happens to calls, in any order: an account is their sum. Subclass with a fixture ``store``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.compliance.calls import CALL, KEY, LOST, NOON, PAYER, UNLIMITED
from adapters.compliance.money.ledger import costing
from domain.errors import MendworkError
from domain.money.accounts import accounts_of, day_of
from domain.money.budget import Spent
from domain.money.usage import FREE, Bill, Usage
from domain.ports.store import CallTry, FailedCall, Store

FRESH = count(1)
OVERBILLED = FailedCall(fault="X", bill=Bill(usage=Usage(input_tokens=1, output_tokens=1, cost_micros=2_000)))
STEPS = ("begin", "answer", "overbill", "refuse", "lose", "late", "expire", "reconcile", "release")


@dataclass(frozen=True, slots=True)
class Ledgered:
    """One build's calls, as a random walk takes them. Its accounts are those of no other walk."""

    store: Store
    name: str
    limit: int

    async def step(self, step: str, turn: int) -> None:
        key = replace(KEY, saga=self.name, turn=turn)
        tries = [call for call in await self.store.calls.tries(self.name) if call.key == str(key)]
        last = len(tries)
        ends: dict[str, Callable[[], Awaitable[Any]]] = {
            "begin": lambda: self._begin(turn),
            "answer": lambda: self.store.calls.end(key, last, outcome=costing(10 * turn)),
            "overbill": lambda: self.store.calls.end(key, last, outcome=OVERBILLED),
            "refuse": lambda: self.store.calls.end(key, last, outcome=FailedCall(fault="Y", bill=FREE)),
            "lose": lambda: self.store.calls.end(key, last, outcome=LOST),
            "late": lambda: self.store.calls.end(key, 1, outcome=costing(7)),
            "expire": lambda: self.store.ledger.expire(before=NOON + turn),
            "reconcile": lambda: self.store.ledger.reconcile(str(key), last, micros=turn),
            "release": lambda: self.store.ledger.lose(self.name),
        }
        try:
            await ends[step]()
        except MendworkError:
            return

    async def _begin(self, turn: int) -> None:
        payer = replace(PAYER, project=self.name, build=self.name, user=self.name)
        budget = replace(UNLIMITED, project=self.limit)
        call = replace(CALL, payer=payer, at=NOON + turn, budget=budget, bound=turn * 100)
        await self.store.calls.begin(replace(KEY, saga=self.name, turn=turn), call)


class SumsCompliance:
    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(
        steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 4)), max_size=14),
        limit=st.integers(0, 1_000),
    )
    async def test_every_account_is_the_sum_of_its_calls_whatever_happens(
        self, store: Store, steps: Sequence[tuple[str, int]], limit: int
    ) -> None:
        walk = Ledgered(store, f"build-w-{next(FRESH)}", limit)
        for step, turn in steps:
            await walk.step(step, turn)
            calls = await store.calls.tries(walk.name)
            for account in {account for call in calls for account in _accounts(call)}:
                counted = sum((call.charge.counted for call in calls if account in _accounts(call)), start=Spent())
                assert await store.ledger.spent(account) == counted
                assert min(counted.settled, counted.held, counted.unknown, counted.written_off) >= 0
            over = [call for call in calls if call.charge.settled > call.charge.bound]
            project = await store.ledger.spent(f"project:{walk.name}")
            assert project.used <= limit or over, "only a bill above its bound goes over a limit"


def _accounts(call: CallTry) -> tuple[str, ...]:
    return accounts_of(call.payer, day=day_of(call.at))
