"""Decisions about faults: pure, so tested as properties."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import BlobMissing, InvalidPlan, RateLimited
from domain.recovery.asking import Asking, next_asking
from domain.recovery.fault import Fault, is_transient
from domain.recovery.retry import CAP_SECONDS, RETRY_AFTER_CAP_SECONDS, next_delay

Outcome = Literal["unfit", "failed"]
OUTCOMES: st.SearchStrategy[list[Outcome]] = st.lists(st.sampled_from(["unfit", "failed"]), min_size=40, max_size=40)


def test_an_answer_that_does_not_fit_goes_back_once_and_then_the_next_model_is_asked() -> None:
    sent_back = next_asking(Asking(), "unfit", chain_length=2)
    assert sent_back == Asking(model=0, turn=2, sent_back=True)
    assert next_asking(sent_back, "unfit", chain_length=2) == Asking(model=1, turn=3)


def test_a_failed_provider_is_not_asked_again_and_the_last_ends_it() -> None:
    assert next_asking(Asking(), "failed", chain_length=2) == Asking(model=1, turn=2)
    assert next_asking(Asking(model=1, turn=2), "failed", chain_length=2) is None


@given(OUTCOMES, st.integers(min_value=1, max_value=10))
def test_every_chain_ends_after_at_most_two_turns_a_model_and_no_turn_comes_twice(
    outcomes: list[Outcome], chain: int
) -> None:
    now: Asking | None = Asking()
    turns: list[int] = []
    models: list[int] = []
    for outcome in outcomes:
        if now is None:
            break
        turns.append(now.turn)
        models.append(now.model)
        now = next_asking(now, outcome, chain_length=chain)
    assert now is None
    assert turns == list(range(1, len(turns) + 1))
    assert set(models) == set(range(chain))
    assert max(models.count(model) for model in models) <= 2


NUMBERS = st.integers(min_value=1, max_value=10_000)
JITTER = st.floats(min_value=0, max_value=1, exclude_max=True)


@given(NUMBERS, st.floats(min_value=0, max_value=1e9) | st.none(), JITTER)
def test_no_delay_is_shorter_than_asked_for_nor_longer_than_its_caps(
    number: int, retry_after: float | None, jitter: float
) -> None:
    delay = next_delay(number=number, retry_after=retry_after, jitter=jitter)
    assert delay >= min(retry_after or 0, RETRY_AFTER_CAP_SECONDS)
    assert 0.5 <= delay <= max(CAP_SECONDS, RETRY_AFTER_CAP_SECONDS)


@given(NUMBERS, JITTER)
def test_delays_do_not_shrink_from_try_to_try(number: int, jitter: float) -> None:
    now = next_delay(number=number, retry_after=None, jitter=jitter)
    assert next_delay(number=number + 1, retry_after=None, jitter=jitter) >= now


def test_a_fault_of_ours_keeps_its_sentence_and_wait() -> None:
    fault = Fault.of(RateLimited("later", retry_after=7), source="coder", number=2)
    assert asdict(fault) == {
        "kind": "RateLimited",
        "sentence": "later",
        "source": "coder",
        "number": 2,
        "retry_after": 7,
    }
    assert Fault.from_mapping(asdict(fault)) == fault


def test_a_foreign_error_never_shows_its_text() -> None:
    fault = Fault.of(ValueError("password is hunter2"), source="x", number=1)
    assert fault.kind == "ValueError"
    assert "hunter2" not in fault.sentence


@given(st.text())
def test_a_sentence_is_always_short(text: str) -> None:
    assert len(Fault.of(InvalidPlan(text), source="x", number=1).sentence) <= 300


@pytest.mark.parametrize(
    ("kind", "transient"),
    [
        ("RateLimited", True),
        ("StoreUnavailable", True),
        ("InvalidPlan", False),
        ("nonsense", False),
        ("Iterable", False),
    ],
)
def test_only_our_transient_errors_are_transient(kind: str, transient: bool) -> None:
    assert is_transient(kind) is transient
    assert is_transient(BlobMissing.__name__) is False
