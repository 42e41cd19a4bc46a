"""The risk of releasing a change: the clipped sum of weighted terms.

risk = min(1, Σ weight × amount), each amount from 0 to 1 and saturating: a change of ten thousand lines is no riskier
by its lines than one of eight hundred. A sum, not 1 - Π(1 - weight × amount), because its lines add up to the result
before the reader's eyes, and because of its range: with the published weights the product ends at 0.83 with everything
at its worst, so that a migration and new authentication in one large change would stay below the 0.7 that always asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from domain.errors import InvalidInput, UnknownName
from domain.risk.evidence import Evidence, Made, Past, Touched
from domain.risk.kinds import AUTH, CI, DEPENDENCIES, MIGRATIONS, kinds_of
from domain.risk.policy import WEIGHTS, RiskPolicy
from domain.risk.terms import Term, lines_of, term, total

FULL_FILES, FULL_LINES = 30, 800
FULL_ATTEMPTS = 4
FULL_FAILURES = 0.5
"""The amounts are full at these: files, lines, attempts of one task, share of the last releases that failed."""
UNKNOWN = 0.5
"""The amount of what nobody could tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """``value`` from 0 to 1, and the terms that it is the sum of, in the table's order."""

    value: float
    terms: tuple[Term, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """One line a term, and the sum."""
        return (*lines_of(self.terms), f"risk: {self.value:.2f}")


def score(evidence: Evidence, policy: RiskPolicy | None = None) -> Risk:
    """The risk, term by term. Raises UnknownName or InvalidInput for weights that are none."""
    weights = checked_weights((policy or RiskPolicy()).weights)
    amounts = _amounts(evidence)
    terms = tuple(term(name, weight, *amounts[name]) for name, weight in weights.items())
    return Risk(value=total(terms), terms=terms)


def checked_weights(replaced: Mapping[str, float]) -> Mapping[str, float]:
    """The published table with single weights replaced. Raises UnknownName for a name that the table does not have,
    InvalidInput for a weight that is not from 0 to 1."""
    for name, weight in replaced.items():
        if name not in WEIGHTS:
            raise UnknownName.among("risk weight", name, WEIGHTS)
        if not (isfinite(weight) and 0 <= weight <= 1):
            raise InvalidInput(f"the risk weight {name!r} has to be from 0 to 1, not {weight}")
    return {name: float(replaced.get(name, weight)) for name, weight in WEIGHTS.items()}


def _amounts(evidence: Evidence) -> Mapping[str, tuple[float, str]]:
    touched, made = evidence.touched, evidence.made
    return {
        "files": (touched.files / FULL_FILES, f"{touched.files} files touched (full at {FULL_FILES})"),
        "lines": (touched.lines / FULL_LINES, f"{touched.lines} lines touched (full at {FULL_LINES})"),
        **_kinds(touched),
        "gates": _gates(made),
        "attempts": _attempts(made),
        "findings": _findings(made),
        "novelty": _novelty(touched),
        "failures": _failures(evidence.past),
    }


def _kinds(touched: Touched) -> Mapping[str, tuple[float, str]]:
    found = kinds_of(touched.paths)
    hidden = touched.files - len(touched.paths)
    return {kind: _kind(found[kind], hidden) for kind in (MIGRATIONS, AUTH, DEPENDENCIES, CI)}


def _kind(paths: tuple[str, ...], hidden: int) -> tuple[float, str]:
    """One file of a kind is enough: a single migration can lose a table."""
    if paths:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        return 1.0, f"{paths[0][:120]}{more}"
    return (UNKNOWN, f"none among the known paths, {hidden} are not known") if hidden > 0 else (0.0, "none")


def _gates(made: Made) -> tuple[float, str]:
    if made.unknown:
        return 1.0, "not built here: no gate ran on it"
    if not made.green:
        return 1.0, "the tests are red"
    if made.missing:
        return 1.0, f"{made.missing} tasks of the plan are missing"
    if made.tests < 0 or made.base_tests < 0:
        return UNKNOWN, "the tests cannot be counted"
    counted = f"{made.tests} tests green, {made.base_tests} before the change"
    if made.tests < made.base_tests or made.tests == 0:
        return 1.0, counted
    return (UNKNOWN if made.tests == made.base_tests else 0.0), counted


def _attempts(made: Made) -> tuple[float, str]:
    if made.unknown:
        return UNKNOWN, "not built here"
    needed = f"{made.attempts} attempts at most, over {made.tasks} tasks (full at {FULL_ATTEMPTS})"
    return (made.attempts - 1) / (FULL_ATTEMPTS - 1), needed


def _findings(made: Made) -> tuple[float, str]:
    """A high finding is as bad as it gets, three of middle weight are."""
    if made.unknown:
        return UNKNOWN, "not built here: nobody reviewed it"
    doubt = {"": UNKNOWN, "weak": UNKNOWN / 2}.get(made.reviewed, 0.0)
    who = {"": "nobody reviewed it", "weak": "reviewed by a model that wrote some of it"}.get(made.reviewed, "reviewed")
    found = made.high + made.medium / 3 + made.low / 10
    return doubt + found, f"{made.high} high, {made.medium} medium, {made.low} low open; {who}"


def _novelty(touched: Touched) -> tuple[float, str]:
    share = touched.novel / touched.files if touched.files > 0 else 0.0
    return share, f"{touched.novel} of {touched.files} files were never released before"


def _failures(past: Past) -> tuple[float, str]:
    if past.releases <= 0:
        return UNKNOWN, "0 releases so far: nothing is known"
    share = past.failed / past.releases
    return share / FULL_FAILURES, f"{past.failed} of the last {past.releases} releases failed (full at half of them)"
