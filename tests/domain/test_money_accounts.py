"""Who pays, within which limits, and what one call counts for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import BudgetExhausted, Busy
from domain.money.accounts import accounts_of, build_account, day_of, described, limits_of
from domain.money.budget import Budget, Payer, Spent
from domain.money.charge import HELD, SETTLED, Charge
from domain.money.reserving import WARN_PERCENT, admission, warnings
from domain.money.usage import FREE, Bill, Usage

PAYER = Payer(project="notes", build="build-notes-1", task="api", user="ada")
NOON = 1_795_176_000_000
DAY = "2026-11-20"
AMOUNTS = st.integers(0, 1000)
SPENT = st.builds(Spent, settled=AMOUNTS, held=AMOUNTS, unknown=AMOUNTS, written_off=AMOUNTS, calls=st.integers(0, 50))


def test_days_end_at_midnight_utc() -> None:
    assert (day_of(NOON), day_of(NOON + 43_199_999), day_of(NOON + 43_200_000)) == (DAY, DAY, "2026-11-21")


def test_a_call_is_counted_on_every_account_in_the_order_of_their_locks() -> None:
    assert accounts_of(PAYER, day=DAY) == (
        "build:build-notes-1",
        "day:notes/2026-11-20",
        "project:notes",
        "task:build-notes-1/api",
        "user:ada",
    )
    assert len(accounts_of(replace(PAYER, task="", user=""), day=DAY)) == 3
    assert build_account("build-notes-1", task="api") in accounts_of(PAYER, day=DAY)


def test_only_accounts_with_a_limit_are_limited() -> None:
    budget = Budget(task=1, build=None, project=3, user=None, day=None)
    assert limits_of(PAYER, budget, day=DAY) == {"task:build-notes-1/api": 1, "project:notes": 3}
    assert limits_of(replace(PAYER, task=""), budget, day=DAY) == {"project:notes": 3}


def test_accounts_have_names_for_people() -> None:
    assert [described(account) for account in accounts_of(PAYER, day=DAY)] == [
        "build-notes-1",
        "project notes on 2026-11-20 (UTC)",
        "project notes",
        "task api of build-notes-1",
        "user ada",
    ]
    assert described("user:a/b:c") == "user a/b:c"


@given(SPENT, SPENT)
def test_sums_and_differences_undo_each_other(one: Spent, other: Spent) -> None:
    assert one + other - other == one
    assert (one + other).used == one.used + other.used
    assert one.used == one.lasting + one.held


ACCOUNTS = accounts_of(PAYER, day=DAY)
LIMITS = st.one_of(st.none(), st.integers(0, 4000))
BUDGETS = st.builds(
    Budget, task=LIMITS, build=LIMITS, project=LIMITS, user=LIMITS, day=LIMITS, calls=st.integers(1, 60)
)


@given(st.tuples(*[SPENT] * 5), BUDGETS, st.integers(0, 2000))
def test_what_is_admitted_passes_no_limit_and_what_is_not_would(
    states: tuple[Spent, ...], budget: Budget, bound: int
) -> None:
    spent = dict(zip(ACCOUNTS, states, strict=True))
    limits = limits_of(PAYER, budget, day=DAY)
    refused = admission(spent, PAYER, budget, bound=bound, at=NOON)
    over = [account for account, limit in limits.items() if spent[account].used + bound > limit]
    for_good = [account for account in over if spent[account].lasting + bound > limits[account]]
    too_many = spent["task:build-notes-1/api"].calls >= budget.calls
    if too_many or (bound and for_good):
        assert isinstance(refused, BudgetExhausted)
    elif bound and over:
        assert isinstance(refused, Busy)
    else:
        assert refused is None
    if refused is not None:
        assert len(str(refused)) < 300
        assert str(refused).isprintable()


def test_an_exhausted_budget_names_account_limit_and_use() -> None:
    spent = dict.fromkeys(ACCOUNTS, Spent()) | {"project:notes": Spent(settled=600_000, unknown=100_000, held=7)}
    refused = admission(spent, PAYER, Budget(project=1_000_000), bound=400_000, at=NOON)
    assert str(refused) == (
        "the budget of project notes is not enough: $0.7000 of $1.0000 is used ($0.1000 of it by calls that were lost "
        "in flight), and this call may cost up to $0.4000; raise the project budget"
    )


@given(SPENT, st.integers(1, 4000))
def test_a_warning_comes_at_80_percent_of_what_is_sure(state: Spent, limit: int) -> None:
    told = warnings({"project:notes": state}, {"project:notes": limit})
    assert bool(told) == (state.lasting > 0 and state.lasting / limit >= WARN_PERCENT / 100)


CHARGES = st.builds(Charge, bound=AMOUNTS)
BILLS = st.one_of(
    st.none(),
    st.just(FREE),
    st.builds(
        Bill,
        usage=st.builds(Usage, input_tokens=AMOUNTS, output_tokens=AMOUNTS, cost_micros=st.one_of(st.none(), AMOUNTS)),
    ),
)
STEPS = st.lists(st.one_of(st.sampled_from(["lost", "expired"]), BILLS, AMOUNTS), max_size=6)


@given(CHARGES, STEPS)
def test_a_charge_counts_its_bound_until_somebody_says_what_it_cost(charge: Charge, steps: list[object]) -> None:
    bound, known = charge.bound, False
    for step in steps:
        match step:
            case "lost":
                charge = charge.lost()
            case "expired":
                charge = charge.expired()
            case int():
                charge, known = charge.billed(step), True
            case Bill() | None:
                charge = charge.ended(step)
                known = known or (step is not None and (step.usage is None or step.usage.cost_micros is not None))
        assert charge.bound == bound
        assert (charge.money == SETTLED) == known or bound == 0
        assert charge.counted.used == (charge.settled if charge.money == SETTLED else bound)
        assert charge.counted.calls == 1


@pytest.mark.parametrize("money", ["unknown", "written_off", SETTLED])
def test_nothing_comes_back_to_being_held(money: str) -> None:
    charge = Charge(bound=5, money=money)
    for later in (charge.lost(), charge.expired(), charge.billed(3), charge.ended(None), charge.ended(FREE)):
        assert later.money != HELD
