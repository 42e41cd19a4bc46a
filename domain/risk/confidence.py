"""How sure one can be that a change does what it should: from its gates, its review and its attempts, and nothing that
a model says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.risk.evidence import Made
from domain.risk.terms import Term, lines_of, term, total

GATES, REVIEW, ATTEMPTS = 0.5, 0.3, 0.2
"""The weights, which sum to 1."""
UNKNOWN = 0.5
"""What is known of a change that was not built here: a person stands behind it, and no figure does."""

_REVIEWS: Mapping[str, tuple[float, str]] = {
    "": (0.25, "nobody reviewed it"),
    "weak": (0.6, "reviewed by a model that wrote some of it"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """``value`` from 0 to 1, and the terms that it is the sum of."""

    value: float
    terms: tuple[Term, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """One line a term, and the sum."""
        return (*lines_of(self.terms), f"confidence: {self.value:.2f}")


def confidence_in(made: Made) -> Confidence:
    """The confidence, term by term."""
    terms = (
        term("gates", GATES, *_gates(made)),
        term("review", REVIEW, *_review(made)),
        term("attempts", ATTEMPTS, *_attempts(made)),
    )
    return Confidence(value=total(terms), terms=terms)


def _gates(made: Made) -> tuple[float, str]:
    if made.unknown:
        return UNKNOWN, "not built here: no gate ran on it"
    if not made.green or made.tests == 0:
        return 0.0, "the tests are red" if not made.green else "0 tests ran"
    if made.tests < 0 or made.base_tests < 0:
        return 0.7, "green, and the tests cannot be counted"
    counted = f"{made.tests} tests green, {made.base_tests} before the change"
    if made.tests < made.base_tests:
        return 0.3, counted
    return (1.0 if made.tests > made.base_tests else 0.8), counted


def _review(made: Made) -> tuple[float, str]:
    if made.unknown:
        return UNKNOWN, "not built here"
    amount, who = _REVIEWS.get(made.reviewed, (1.0, "reviewed by a model that wrote nothing of it"))
    open_findings = f"{made.high} high, {made.medium} medium, {made.low} low open"
    return (0.0 if made.high else amount - 0.2 * made.medium - 0.05 * made.low), f"{who}; {open_findings}"


def _attempts(made: Made) -> tuple[float, str]:
    if made.unknown:
        return UNKNOWN, "not built here"
    return 1.0 - (made.attempts - 1) / 3, f"{made.attempts} attempts at most, over {made.tasks} tasks"
