"""Fisher's exact test of two proportions, one-sided, with the standard library alone."""

from __future__ import annotations

from math import exp, lgamma

_NEGLIGIBLE = 1e-17


def more_failures(failed: int, asked: int, *, than: tuple[int, int]) -> float:
    """How likely ``failed`` or more of ``asked`` are by chance, when both services fail equally often. ``than`` are the
    other's failures and requests. Between 0 and 1; 1.0 where nothing was asked or nothing failed."""
    other_failed, other_asked = than
    failures, both = failed + other_failed, asked + other_asked
    if failed <= 0 or asked <= 0 or other_asked <= 0:
        return 1.0
    term = exp(_ways(asked, failed) + _ways(other_asked, other_failed) - _ways(both, failures))
    total = term
    for x in range(failed, min(failures, asked)):
        term *= (asked - x) * (failures - x) / ((x + 1) * (other_asked - failures + x + 1))
        total += term
        if term < total * _NEGLIGIBLE:
            break
    return min(1.0, total)


def _ways(of: int, chosen: int) -> float:
    """The logarithm of the binomial coefficient."""
    return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)
