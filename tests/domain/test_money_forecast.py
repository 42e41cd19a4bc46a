"""A forecast is arithmetic over what was, in order, and says what it stands on."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.money.amounts import Amount, Priced, Range, price_of, priced_as, spread
from domain.money.forecast import GUESSED_SECONDS, Guess, Past, Work, estimate, longest_chain, together
from domain.money.usage import Price

COUNTS = st.integers(0, 10**6)
AMOUNTS = st.lists(
    st.builds(Amount, calls=COUNTS, input_tokens=COUNTS, output_tokens=COUNTS, seconds=st.floats(0, 1e6)), min_size=1
)
GUESSES = st.builds(
    Guess, attempts=st.integers(1, 9), prompt_tokens=st.integers(0, 10**6), output_tokens=st.integers(1, 10**5)
)
GUESS = Guess(attempts=3, prompt_tokens=1_000, output_tokens=16_000)
NUMBERS = ("calls", "input_tokens", "output_tokens", "seconds")


def took(calls: int = 1, seconds: float = 10.0) -> Amount:
    return Amount(calls=calls, input_tokens=1_000 * calls, output_tokens=100 * calls, seconds=seconds, cost_micros=None)


def works(*depends: tuple[str, ...]) -> list[Work]:
    return [
        Work(id=f"t{n}", title=f"Task {n}", depends_on=names, model="coder") for n, names in enumerate(depends, start=1)
    ]


def priced(price: Price, *tokens: tuple[int, int]) -> list[Priced]:
    return [
        Priced(model="m", input_tokens=i, output_tokens=o, cost_micros=price.cost(input_tokens=i, output_tokens=o))
        for i, o in tokens
    ]


@given(AMOUNTS)
def test_the_quartiles_are_in_order_and_each_was_really_seen(amounts: list[Amount]) -> None:
    found = spread(amounts)
    for name in NUMBERS:
        low, middle, high = (getattr(getattr(found, each.name), name) for each in fields(Range))
        assert low <= middle <= high
        assert {low, middle, high} <= {getattr(amount, name) for amount in amounts}


@given(AMOUNTS, st.randoms(use_true_random=False))
def test_the_order_in_which_the_past_is_told_changes_nothing(amounts: list[Amount], random: object) -> None:
    shuffled = list(amounts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert spread(shuffled) == spread(amounts)


def test_the_median_is_the_middle_task() -> None:
    found = spread([took(1), took(9), took(2), took(3), took(4)])
    assert (found.low.calls, found.expected.calls, found.high.calls) == (2, 3, 4)


@given(GUESSES)
def test_a_guess_is_in_order_never_above_what_is_granted_and_says_its_numbers(guess: Guess) -> None:
    found = estimate(Past(), guess)
    assert found.task.low.calls <= found.task.expected.calls <= found.task.high.calls == guess.attempts
    assert found.task.expected.output_tokens <= guess.output_tokens * found.task.expected.calls
    assert found.basis.startswith("a guess: no build of this project has ended yet: ")
    assert f"{found.task.expected.calls} calls a task" in found.basis
    assert f"{GUESSED_SECONDS:g} s a call" in found.basis


def test_history_is_named_with_what_it_holds() -> None:
    past = Past(builds=7, tasks=(took(),) * 19, reviews=(took(),))
    assert estimate(past, GUESS).basis == "history of this project: 7 builds, 19 tasks"
    single = estimate(Past(builds=1, tasks=(took(),)), GUESS)
    assert single.basis == (
        "history of this project: 1 build, 1 task; none of them was reviewed: the review is a guess"
    )
    assert single.review.expected.calls == 1


@given(
    st.builds(Price, input_micros_per_million=st.integers(0, 10**8), output_micros_per_million=st.integers(0, 10**8)),
    st.lists(st.tuples(st.integers(1_000, 10**5), st.integers(1_000, 10**5)), min_size=2, max_size=8),
    st.tuples(st.integers(0, 10**5), st.integers(0, 10**5)),
)
def test_two_rates_are_found_where_the_calls_differ_enough(
    price: Price, tokens: list[tuple[int, int]], asked: tuple[int, int]
) -> None:
    shares = [i / (i + o) for i, o in tokens]
    assume(max(shares) - min(shares) > 0.3)
    found = price_of(priced(price, *tokens), "m")(Amount(input_tokens=asked[0], output_tokens=asked[1]))
    assert found is not None
    # Each known cost is rounded up by less than a micro-dollar on at least 2,000 tokens, and both sides here are whole.
    assert abs(found - price.cost(input_tokens=asked[0], output_tokens=asked[1])) <= 2 + sum(asked) / 200


def test_calls_of_one_shape_give_one_rate_for_both() -> None:
    price = Price(input_micros_per_million=1_000_000, output_micros_per_million=4_000_000)
    cost = price_of(priced(price, (1_000, 100), (2_000, 200)), "m")
    assert cost(Amount(input_tokens=10_000, output_tokens=1_000)) == 14_000


def test_a_free_model_costs_nothing_and_an_unknown_one_nobody_knows() -> None:
    free = priced(Price(input_micros_per_million=0, output_micros_per_million=0), (1_000, 100))
    assert price_of(free, "m")(took()) == 0
    assert price_of(free, "another")(took()) is None
    assert price_of([], "m")(took()) is None


@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), max_size=6), COUNTS, COUNTS)
def test_whatever_was_billed_a_forecast_is_never_below_zero(
    calls: list[tuple[int, int, int]], into: int, out: int
) -> None:
    known = [Priced(model="m", input_tokens=i, output_tokens=o, cost_micros=c) for i, o, c in calls]
    found = price_of(known, "m")(Amount(input_tokens=into, output_tokens=out))
    assert found is None or found >= 0


def test_one_unknown_cost_makes_the_sum_unknown() -> None:
    assert (Amount(cost_micros=5) + Amount(cost_micros=None)).cost_micros is None
    assert (Amount(cost_micros=5) + Amount(cost_micros=6)).cost_micros == 11


@pytest.mark.parametrize(
    ("work", "longest"),
    [
        (works((), (), ()), 1),
        (works((), ("t1",), ("t2",)), 3),
        (works((), ("t1",), ("t1",), ("t2", "t3")), 3),
        ([], 0),
    ],
)
def test_the_longest_chain_is_what_cannot_be_done_side_by_side(work: list[Work], longest: int) -> None:
    assert longest_chain(work) == longest


def test_tasks_side_by_side_take_the_time_of_one_and_the_tokens_of_all() -> None:
    each = Range(low=took(1, 5.0), expected=took(2, 10.0), high=took(3, 20.0))
    apart = together(works((), (), ()), {"coder": each})
    chained = together(works((), ("t1",), ("t2",)), {"coder": each})
    assert (apart.expected.seconds, chained.expected.seconds) == (10.0, 30.0)
    assert (apart.high.seconds, chained.high.seconds) == (60.0, 60.0)
    assert apart.expected.input_tokens == chained.expected.input_tokens == 6_000
    assert apart.expected.cost_micros is None


@given(AMOUNTS, st.integers(1, 12))
def test_totals_are_in_order_for_any_history_and_any_plan(amounts: list[Amount], count: int) -> None:
    each = priced_as(spread(amounts), lambda amount: amount.input_tokens)
    total = together(works(*[()] * count), {"coder": each})
    assert total.low.calls <= total.expected.calls <= total.high.calls
    assert total.low.seconds <= total.expected.seconds + 0.001
    assert total.expected.seconds <= total.high.seconds + 0.001
    assert (total.low.cost_micros or 0) <= (total.expected.cost_micros or 0) <= (total.high.cost_micros or 0)
    assert replace(total.expected, seconds=0).calls == count * each.expected.calls
