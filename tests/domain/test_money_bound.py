"""The upper bound is above every bill that a provider can write, and says what it is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.money.bound import CALL_TOKENS, MESSAGE_TOKENS, input_bound, upper_bound
from domain.money.usage import NOTHING, Price, dollars

PRICES = st.builds(
    Price, input_micros_per_million=st.integers(0, 10**9), output_micros_per_million=st.integers(0, 10**9)
)
TEXTS = st.lists(st.text(max_size=40), max_size=5)


@given(TEXTS)
def test_a_token_is_at_least_a_byte_and_every_message_has_its_frame(texts: list[str]) -> None:
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    assert input_bound(texts) == size + len(texts) * MESSAGE_TOKENS + CALL_TOKENS


@given(TEXTS, PRICES, st.integers(0, 10**6), st.data())
def test_no_bill_within_the_allowed_tokens_is_above_it(
    texts: list[str], price: Price, output_tokens: int, data: st.DataObject
) -> None:
    bound = upper_bound(texts, price=price, output_tokens=output_tokens)
    used_in = data.draw(st.integers(0, input_bound(texts)))
    used_out = data.draw(st.integers(0, output_tokens))
    assert price.cost(input_tokens=used_in, output_tokens=used_out) <= bound


@given(TEXTS, PRICES, st.text(min_size=1, max_size=10))
def test_more_text_is_never_cheaper(texts: list[str], price: Price, more: str) -> None:
    shorter = upper_bound(texts, price=price, output_tokens=10)
    assert upper_bound([*texts, more], price=price, output_tokens=10) >= shorter
    assert upper_bound(texts, price=price, output_tokens=11) >= shorter


def test_text_that_is_no_unicode_has_a_bound_too() -> None:
    assert input_bound(["\ud800"]) == 3 + MESSAGE_TOKENS + CALL_TOKENS


def test_a_free_model_costs_nothing_at_most() -> None:
    assert upper_bound(["x" * 1000], price=NOTHING, output_tokens=1000) == 0


@pytest.mark.parametrize(("tokens", "micros"), [((0, 0), 0), ((1, 0), 1), ((0, 1), 2), ((4, 0), 2), ((2, 2), 4)])
def test_costs_are_rounded_up_to_the_micro_dollar(tokens: tuple[int, int], micros: int) -> None:
    price = Price(input_micros_per_million=500_000, output_micros_per_million=1_500_000)
    assert price.cost(input_tokens=tokens[0], output_tokens=tokens[1]) == micros


def test_dollars_are_for_people() -> None:
    assert dollars(1_234_567) == "$1.2346"
