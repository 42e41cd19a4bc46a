"""A computed figure that explains itself: terms, each a weight and an amount with the sentence that it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """``amount`` from 0 to 1 is how much of ``weight`` counts; ``share`` is their product; ``why`` has the figures."""

    name: str
    weight: float
    amount: float
    share: float
    why: str


def term(name: str, weight: float, amount: float, why: str) -> Term:
    """A term whose amount is held between 0 and 1."""
    held = min(1.0, max(0.0, amount))
    return Term(name=name, weight=weight, amount=round(held, 4), share=round(weight * held, 4), why=why)


def total(terms: Iterable[Term]) -> float:
    """The sum of the shares, at most 1: a reader can add the lines up."""
    return round(min(1.0, sum(each.share for each in terms)), 4)


def lines_of(terms: Iterable[Term]) -> tuple[str, ...]:
    """One line a term, as "lines: 0.09 of 0.15, 480 lines (full at 800)"."""
    return tuple(f"{each.name}: {each.share:.2f} of {each.weight:.2f}, {each.why}" for each in terms)
