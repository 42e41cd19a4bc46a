"""What every ledger, and every keeper of places, must do. Subclass with a fixture ``store`` that gives an empty one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from adapters.compliance.calls import ANSWER, BOUND, CALL, KEY, LOST, NOON, PAYER, REFUSED, UNLIMITED, begun
from domain.errors import BudgetExhausted, Busy, KeyConflict, Overtaken, UnknownName
from domain.money.budget import Budget, Spent
from domain.money.usage import Bill, Usage
from domain.ports.ledger import CostLine
from domain.ports.store import FailedCall, RecordedCall, Store

TASK = "task:build-a-1/one"
ACCOUNTS = (TASK, "build:build-a-1", "project:a", "user:ada", "day:a/2026-11-20")
DAY = 86_400_000
FRESH = count(1)


def limited(**limits: Any) -> Budget:
    return replace(UNLIMITED, **limits)


def costing(micros: int | None) -> RecordedCall:
    return replace(ANSWER, usage=Usage(input_tokens=1200, output_tokens=300, cost_micros=micros))


async def begun_as(store: Store, turn: int, **changes: Any) -> int:
    """The ``turn``-th call of the task begins; ``changes`` are fields of its BegunCall, or of its payer."""
    payer = replace(PAYER, **{name: changes.pop(name) for name in tuple(changes) if hasattr(PAYER, name)})
    return await begun(store, key=replace(KEY, turn=turn), call=replace(CALL, payer=payer, **changes))


async def ended(store: Store, turn: int, outcome: RecordedCall | FailedCall, *, number: int = 1) -> tuple[str, ...]:
    return await store.calls.end(replace(KEY, turn=turn), number, outcome=outcome)


class LedgerCompliance:
    async def test_an_account_that_was_never_charged_is_empty(self, store: Store) -> None:
        assert await store.ledger.spent("build:none") == Spent()

    async def test_a_running_call_is_held_on_every_account(self, store: Store) -> None:
        await begun(store)
        for account in ACCOUNTS:
            assert await store.ledger.spent(account) == Spent(held=BOUND, calls=1), account

    async def test_without_a_task_and_a_user_there_are_no_such_accounts(self, store: Store) -> None:
        await begun_as(store, 1, task="", user="")
        assert await store.ledger.spent(TASK) == Spent()
        assert await store.ledger.spent("task:build-a-1/") == await store.ledger.spent("user:") == Spent()
        assert await store.ledger.spent("build:build-a-1") == Spent(held=BOUND, calls=1)

    @pytest.mark.parametrize(
        ("outcome", "spent"),
        [
            (costing(8100), Spent(settled=8100, calls=1)),
            (costing(BOUND + 1), Spent(settled=BOUND + 1, calls=1)),
            (costing(None), Spent(unknown=BOUND, calls=1)),
            (REFUSED, Spent(calls=1)),
            (LOST, Spent(unknown=BOUND, calls=1)),
            (FailedCall(fault="X", bill=Bill(usage=ANSWER.usage)), Spent(settled=8100, calls=1)),
            (FailedCall(fault="X", bill=Bill(usage=costing(None).usage)), Spent(unknown=BOUND, calls=1)),
        ],
        ids=["answered", "overbilled", "cost untold", "refused", "lost", "of no use", "of no use, cost untold"],
    )
    async def test_an_end_settles_what_is_known(
        self, store: Store, outcome: RecordedCall | FailedCall, spent: Spent
    ) -> None:
        number = await begun(store)
        for _ in range(2):
            await store.calls.end(KEY, number, outcome=outcome)
            for account in ACCOUNTS:
                assert await store.ledger.spent(account) == spent, account

    async def test_without_a_price_nothing_is_held_and_the_cost_is_not_made_up(self, store: Store) -> None:
        await begun_as(store, 1, bound=None)
        assert await store.ledger.spent(TASK) == Spent(calls=1)
        await ended(store, 1, replace(costing(None), bound=None))
        assert await store.ledger.spent(TASK) == Spent(calls=1)
        assert (await store.ledger.costs("build"))[0].unpriced == 1

    async def test_a_lost_call_stays_counted_while_the_next_one_is_made(self, store: Store) -> None:
        await begun(store)
        await begun(store)
        assert await store.ledger.spent(TASK) == Spent(held=BOUND, unknown=BOUND, calls=2)
        await ended(store, 1, costing(8100), number=2)
        assert await store.ledger.spent(TASK) == Spent(settled=8100, unknown=BOUND, calls=2)

    async def test_a_lost_call_that_answers_late_is_settled(self, store: Store) -> None:
        await begun(store)
        await begun(store)
        await ended(store, 1, costing(8100), number=1)
        assert await store.ledger.spent(TASK) == Spent(settled=8100, held=BOUND, calls=2)
        with pytest.raises(Overtaken):
            await ended(store, 1, costing(900), number=2)
        assert await store.ledger.spent(TASK) == Spent(settled=9000, calls=2)

    @pytest.mark.parametrize("name", ["task", "build", "project", "user", "day"])
    async def test_a_limit_is_reached_to_the_micro_dollar_and_never_passed(self, store: Store, name: str) -> None:
        budget = limited(**{name: 2 * BOUND})
        await begun_as(store, 1, budget=budget)
        await ended(store, 1, costing(BOUND))
        await begun_as(store, 2, budget=budget)
        with pytest.raises(Busy, match=r"running calls hold .* budget"):
            await begun_as(store, 3, budget=budget, bound=1)
        await ended(store, 2, costing(BOUND - 1))
        with pytest.raises(BudgetExhausted, match=r"\$0\.0400 of \$0\.0400 is used.*up to \$0\.0000; raise the"):
            await begun_as(store, 3, budget=budget, bound=2)
        await begun_as(store, 3, budget=budget, bound=1)
        assert (await store.ledger.spent(TASK)).used == 2 * BOUND

    async def test_a_refused_call_leaves_no_trace(self, store: Store) -> None:
        with pytest.raises(BudgetExhausted, match=r"^the budget of task one of build-a-1 is not enough"):
            await begun_as(store, 1, budget=limited(task=BOUND - 1))
        assert list(await store.calls.tries("build-a-1")) == []
        assert await store.ledger.spent(TASK) == Spent()

    async def test_what_was_lost_before_a_refusal_is_recorded_all_the_same(self, store: Store) -> None:
        await begun(store)
        with pytest.raises(BudgetExhausted, match="lost in flight"):
            await begun_as(store, 1, budget=limited(build=BOUND))
        assert [call.state for call in await store.calls.tries("build-a-1")] == ["unknown"]
        assert await store.ledger.spent(TASK) == Spent(unknown=BOUND, calls=1)

    async def test_what_was_lost_or_written_off_is_no_reason_to_wait(self, store: Store) -> None:
        await begun_as(store, 1)
        await ended(store, 1, LOST)
        with pytest.raises(BudgetExhausted):
            await begun_as(store, 2, budget=limited(project=2 * BOUND - 1))
        await store.ledger.expire(before=NOON + 1)
        with pytest.raises(BudgetExhausted):
            await begun_as(store, 2, budget=limited(project=2 * BOUND - 1))

    async def test_a_limit_may_be_raised_while_calls_run(self, store: Store) -> None:
        await begun_as(store, 1, budget=limited(task=BOUND))
        with pytest.raises(Busy):
            await begun_as(store, 2, budget=limited(task=BOUND))
        await begun_as(store, 2, budget=limited(task=2 * BOUND))

    async def test_a_free_call_is_never_refused_for_money(self, store: Store) -> None:
        await begun_as(store, 1, budget=limited(task=0, build=0), bound=0)
        await ended(store, 1, costing(0))
        await begun_as(store, 2, budget=limited(task=0, build=0), bound=None)

    async def test_the_calls_of_a_task_are_limited_too_and_only_those(self, store: Store) -> None:
        for turn in (1, 2):
            await begun_as(store, turn, budget=limited(calls=2))
        with pytest.raises(BudgetExhausted, match="task one of build-a-1 has made 2 calls of 2"):
            await begun_as(store, 3, budget=limited(calls=2), bound=0)
        await begun_as(store, 3, budget=limited(calls=2), task="two")
        for turn in (4, 5, 6):
            await begun_as(store, turn, budget=limited(calls=2), task="")

    async def test_limits_are_those_of_each_day_in_utc(self, store: Store) -> None:
        midnight = NOON + DAY // 2
        await begun_as(store, 1, budget=limited(day=BOUND), at=midnight - 1)
        with pytest.raises(Busy):
            await begun_as(store, 2, budget=limited(day=BOUND), at=midnight - 1)
        await begun_as(store, 2, budget=limited(day=BOUND), at=midnight)
        assert (await store.ledger.spent("day:a/2026-11-21")).calls == 1

    async def test_racing_calls_cannot_overdraw_an_account(self, store: Store) -> None:
        begins = [begun_as(store, turn, budget=limited(project=5 * BOUND)) for turn in range(1, 25)]
        outcomes = await asyncio.gather(*begins, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Busy"] * 19 + ["int"] * 5
        assert await store.ledger.spent("project:a") == Spent(held=5 * BOUND, calls=5)

    async def test_at_80_percent_of_a_limit_there_is_one_warning(self, store: Store) -> None:
        budget = limited(task=100_000, build=1_000_000)
        told = []
        for turn, cost in enumerate((79_999, 0, 1, 1_000), 1):
            await begun_as(store, turn, budget=budget, bound=cost)
            told.append(await ended(store, turn, replace(costing(cost), bound=cost)))
        assert told == [(), (), ("task one of build-a-1 has used $0.0800 of its limit of $0.1000",), ()]
        found = await store.calls.find(replace(KEY, turn=3), request="r1")
        assert found is not None
        assert found.warnings == await ended(store, 3, replace(costing(1), bound=1)) == told[2], "a repeat hears it too"

    async def test_another_limit_warns_again(self, store: Store) -> None:
        told = []
        for turn, limit in enumerate((10_000, 10_000, 20_000, 22_000), 1):
            await begun_as(store, turn, budget=limited(user=limit), bound=0)
            told.append(len(await ended(store, turn, costing(8_000 if turn in (1, 3) else 0))))
        assert told == [1, 0, 1, 0]

    async def test_expired_holds_are_written_off_and_still_count(self, store: Store) -> None:
        await begun_as(store, 1, at=NOON)
        await begun_as(store, 2, at=NOON + 1)
        await ended(store, 2, LOST)
        await begun_as(store, 3, at=NOON)
        await ended(store, 3, costing(8100))
        assert await store.ledger.expire(before=NOON + 1) == 1
        assert await store.ledger.spent(TASK) == Spent(settled=8100, unknown=BOUND, written_off=BOUND, calls=3)
        assert [call.state for call in await store.calls.tries("build-a-1")] == ["unknown", "unknown", "answered"]
        assert await store.ledger.expire(before=NOON + 2) == 1
        assert await store.ledger.expire(before=NOON + 2) == 0
        assert (await store.ledger.spent(TASK)).written_off == 2 * BOUND

    async def test_what_was_written_off_may_still_be_answered(self, store: Store) -> None:
        await begun(store)
        await store.ledger.expire(before=NOON + 1)
        await store.calls.end(KEY, 1, outcome=ANSWER)
        assert await store.ledger.spent(TASK) == Spent(settled=8100, calls=1)

    async def test_a_person_settles_what_was_lost(self, store: Store) -> None:
        for turn in (1, 2, 3):
            await begun_as(store, turn)
        await ended(store, 1, LOST)
        await ended(store, 2, LOST)
        assert [(c.key, c.number, c.money) for c in await store.ledger.open_calls(build="build-a-1")] == [
            ("build-a-1-task-one/change/1/1", 1, "unknown"),
            ("build-a-1-task-one/change/1/2", 1, "unknown"),
        ]
        for _ in range(2):
            await store.ledger.reconcile(str(KEY), 1, micros=1234)
        assert await store.ledger.spent(TASK) == Spent(settled=1234, held=BOUND, unknown=BOUND, calls=3)
        assert [c.key for c in await store.ledger.open_calls()] == ["build-a-1-task-one/change/1/2"]
        assert list(await store.ledger.open_calls(build="build-a-2")) == []

    async def test_what_was_written_off_may_be_reconciled(self, store: Store) -> None:
        await begun(store)
        await store.ledger.expire(before=NOON + 1)
        assert [c.money for c in await store.ledger.open_calls()] == ["written_off"]
        await store.ledger.reconcile(str(KEY), 1, micros=0)
        assert await store.ledger.spent(TASK) == Spent(calls=1)

    async def test_only_a_call_of_unknown_cost_is_reconciled(self, store: Store) -> None:
        await begun_as(store, 1)
        await begun_as(store, 2)
        await ended(store, 2, costing(8100))
        for key, number in ((KEY, 1), (KEY, 2), (replace(KEY, turn=2), 1)):
            with pytest.raises(KeyConflict):
                await store.ledger.reconcile(str(key), number, micros=5)
        assert await store.ledger.spent(TASK) == Spent(settled=8100, held=BOUND, calls=2)

    async def test_a_build_that_ends_leaves_no_call_running(self, store: Store) -> None:
        await begun_as(store, 1)
        await begun_as(store, 2, build="build-a-2")
        assert [await store.ledger.lose("build-a-1") for _ in range(2)] == [1, 0]
        assert await store.ledger.spent("project:a") == Spent(held=BOUND, unknown=BOUND, calls=2)
        assert [call.state for call in await store.calls.tries("build-a-2")] == ["running"]

    @pytest.mark.parametrize(
        ("by", "names"),
        [
            ("build", ["build-a-1", "build-b-1"]),
            ("phase", ["plan", "tasks"]),
            ("task", ["", "one"]),
            ("role", ["coding", "reasoning"]),
            ("model", ["fast", "slow"]),
            ("day", ["2026-11-20", "2026-11-21"]),
            ("project", ["a", "b"]),
            ("user", ["ada"]),
        ],
    )
    async def test_costs_are_grouped(self, store: Store, by: str, names: list[str]) -> None:
        await begun_as(store, 1)
        await ended(store, 1, costing(8100))
        await begun_as(store, 2)
        planning = {"project": "b", "build": "build-b-1", "task": "", "phase": "plan", "role": "reasoning"}
        await begun_as(store, 3, **planning, model="slow", at=NOON + DAY)
        await ended(store, 3, replace(costing(900), model="slow"))
        lines = await store.ledger.costs(by)
        assert [line.name for line in lines] == names
        assert sum((line.spent for line in lines), start=Spent()) == Spent(settled=9000, held=BOUND, calls=3)
        assert sum(line.input_tokens for line in lines) == 2400
        assert await store.ledger.costs("project", build="build-b-1") == [
            CostLine(name="b", spent=Spent(settled=900, calls=1), input_tokens=1200, output_tokens=300)
        ]
        assert [line.name for line in await store.ledger.costs("build", project="a")] == ["build-a-1"]

    async def test_another_grouping_lists_the_known_ones(self, store: Store) -> None:
        with pytest.raises(UnknownName, match="known: build, day, model"):
            await store.ledger.costs("state; DROP TABLE calls")
