"""Confidence from figures, and the matrix that says when a person is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.risk.confidence import confidence_in
from domain.risk.evidence import Made
from domain.risk.matrix import ASK, AUTONOMOUS, DRAFT, MATRIX, PERSON, STRICTEST_FIRST, decide

GOOD = Made(tests=12, base_tests=10, reviewed="other")
SHARES = st.floats(0, 1)


class TestConfidence:
    def test_green_with_new_tests_reviewed_by_another_at_the_first_try_is_one(self) -> None:
        assert confidence_in(GOOD).value == 1.0

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"tests": 10}, 0.9),
            ({"tests": -1}, 0.85),
            ({"tests": 5}, 0.65),
            ({"tests": 0}, 0.5),
            ({"green": False}, 0.5),
            ({"reviewed": "weak"}, 0.88),
            ({"reviewed": ""}, 0.775),
            ({"high": 1}, 0.7),
            ({"medium": 1, "low": 2}, 0.91),
            ({"attempts": 2}, 0.9333),
            ({"attempts": 8}, 0.8),
            ({"unknown": True}, 0.5),
        ],
    )
    def test_falls_with(self, changes: dict[str, Any], expected: float) -> None:
        assert confidence_in(replace(GOOD, **changes)).value == pytest.approx(expected, abs=1e-4)

    def test_a_red_or_unknown_change_is_below_the_matrix_and_a_plain_green_one_is_not(self) -> None:
        assert decide(0.1, confidence_in(replace(GOOD, green=False)).value).action == DRAFT
        assert decide(0.1, confidence_in(Made(unknown=True)).value).action == DRAFT
        assert decide(0.1, confidence_in(Made(tests=-1, attempts=2)).value).action == DRAFT
        assert decide(0.1, confidence_in(Made(tests=3, base_tests=3)).value).action == AUTONOMOUS

    def test_explains_itself(self) -> None:
        assert confidence_in(GOOD).lines == (
            "gates: 0.50 of 0.50, 12 tests green, 10 before the change",
            "review: 0.30 of 0.30, reviewed by a model that wrote nothing of it; 0 high, 0 medium, 0 low open",
            "attempts: 0.20 of 0.20, 1 attempts at most, over 1 tasks",
            "confidence: 1.00",
        )

    @given(st.integers(0, 90), st.integers(0, 90), st.integers(0, 90), st.integers(0, 90))
    def test_stays_between_its_bounds(self, high: int, medium: int, low: int, attempts: int) -> None:
        found = confidence_in(replace(GOOD, high=high, medium=medium, low=low, attempts=attempts))
        assert 0.0 <= found.value <= 1.0


class TestTheMatrix:
    @pytest.mark.parametrize(
        ("risk", "confidence", "retries", "action"),
        [
            (0.1, 0.9, 0, AUTONOMOUS),
            (0.7, 0.6, 2, AUTONOMOUS),
            (0.71, 0.9, 0, ASK),
            (0.1, 0.59, 0, DRAFT),
            (0.1, 0.9, 3, PERSON),
            (0.1, 0.5, 3, PERSON),
            (0.9, 0.5, 5, ASK),
        ],
    )
    def test_as_published(self, risk: float, confidence: float, retries: int, action: str) -> None:
        assert decide(risk, confidence, retries=retries).action == action

    def test_the_project_may_ask_earlier_and_never_later(self) -> None:
        assert decide(0.4, 0.9, limit=0.3).action == ASK
        assert decide(0.71, 0.9, limit=1.0).action == ASK
        assert decide(0.65, 0.9, limit=1.0).action == AUTONOMOUS

    def test_says_every_row_that_matched_with_its_figures(self) -> None:
        assert decide(0.8, 0.5, retries=3, limit=0.3).why == (
            "risk 0.80 is above 0.3 (the project's limit); risk 0.80 is above 0.7 (stop and ask); "
            "confidence 0.50 is below 0.6 (a draft with a review flag); "
            "retries 3 is above 2 (a person, after three retries)"
        )
        assert decide(0.1, 0.9).why == "risk 0.10, confidence 0.90"

    @pytest.mark.parametrize(
        ("risk", "confidence", "limit"), [(float("nan"), 1.0, 0.5), (0.1, 1.0, float("nan")), (0.1, float("nan"), 0.5)]
    )
    def test_what_is_no_number_is_never_autonomous(self, risk: float, confidence: float, limit: float) -> None:
        assert decide(risk, confidence, limit=limit).action != AUTONOMOUS

    @given(SHARES, SHARES, st.integers(0, 9), SHARES)
    def test_above_seven_tenths_it_asks_whatever_else_holds(
        self, risk: float, confidence: float, retries: int, limit: float
    ) -> None:
        decision = decide(risk, confidence, retries=retries, limit=limit)
        assert decision.action in STRICTEST_FIRST
        assert (decision.action == ASK) == (risk > min(limit, 0.7))

    @given(SHARES, SHARES, st.integers(0, 9), SHARES, SHARES)
    def test_less_confidence_and_more_risk_are_never_handled_less_strictly(
        self, risk: float, confidence: float, retries: int, more: float, less: float
    ) -> None:
        before = decide(risk, confidence, retries=retries).action
        after = decide(max(risk, more), min(confidence, less), retries=retries + 1).action
        assert STRICTEST_FIRST.index(after) <= STRICTEST_FIRST.index(before)

    def test_its_rows_are_the_published_ones(self) -> None:
        assert [(row.figure, row.bound, row.action) for row in MATRIX] == [
            ("risk", 0.7, ASK),
            ("confidence", 0.6, DRAFT),
            ("retries", 2, PERSON),
        ]
