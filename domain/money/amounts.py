"""Amounts of model work, their spread over what is known, and what they cost by what known calls cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Calls, tokens, seconds, micro-dollars; the cost is None where nobody knows a price."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost_micros: int | None = 0

    def __add__(self, other: Amount) -> Amount:
        known = self.cost_micros is not None and other.cost_micros is not None
        return Amount(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            cost_micros=(self.cost_micros or 0) + (other.cost_micros or 0) if known else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A quarter of what is known took less than ``low``, a quarter more than ``high``; ``expected`` is the median."""

    low: Amount
    expected: Amount
    high: Amount

    def __add__(self, other: Range) -> Range:
        return Range(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Range)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """One past call whose cost is known."""

    model: str
    input_tokens: int
    output_tokens: int
    cost_micros: int


def spread(amounts: Sequence[Amount]) -> Range:
    """The quartiles of each number by itself. Needs at least one amount."""
    return Range(low=_quantile(amounts, 1, 4), expected=_quantile(amounts, 1, 2), high=_quantile(amounts, 3, 4))


def price_of(calls: Iterable[Priced], model: str) -> Callable[[Amount], int | None]:
    """What an amount costs with ``model``, by what its known calls cost: the rates of tokens in and out that fit them
    best, one rate for both where they cannot be told apart; None where no call of it has a known cost."""
    known = [call for call in calls if call.model == model and call.input_tokens + call.output_tokens > 0]
    rates = _rates(known) if known else None

    def cost(amount: Amount) -> int | None:
        if rates is None:
            return None
        return max(0, round(amount.input_tokens * rates[0] + amount.output_tokens * rates[1]))

    return cost


def priced_as(given: Range, cost: Callable[[Amount], int | None]) -> Range:
    """The range with the costs that ``cost`` knows."""
    return Range(**{each.name: _with_cost(getattr(given, each.name), cost) for each in fields(Range)})


def _with_cost(amount: Amount, cost: Callable[[Amount], int | None]) -> Amount:
    return replaced(amount, cost_micros=cost(amount))


def replaced(amount: Amount, **changed: float | None) -> Amount:
    values = {each.name: getattr(amount, each.name) for each in fields(Amount)}
    return Amount(**{**values, **changed})


def _quantile(amounts: Sequence[Amount], part: int, of: int) -> Amount:
    """The nearest rank, of each field by itself."""
    rank = -(-len(amounts) * part // of) - 1

    def at(name: str) -> int | float:
        ranked: list[int | float] = sorted(getattr(amount, name) for amount in amounts)
        return ranked[max(rank, 0)]

    names = ("calls", "input_tokens", "output_tokens", "seconds")
    return Amount(**{name: at(name) for name in names}, cost_micros=None)  # type: ignore[arg-type]


def _rates(calls: Sequence[Priced]) -> tuple[float, float]:
    """Micro-dollars a token, in and out: least squares, exactly. One blended rate where the calls all have the same
    proportions, or fit no two rates that are prices."""
    ii = sum(c.input_tokens * c.input_tokens for c in calls)
    oo = sum(c.output_tokens * c.output_tokens for c in calls)
    io = sum(c.input_tokens * c.output_tokens for c in calls)
    ic = sum(c.input_tokens * c.cost_micros for c in calls)
    oc = sum(c.output_tokens * c.cost_micros for c in calls)
    determinant = ii * oo - io * io
    if determinant:
        into, out = Fraction(ic * oo - oc * io, determinant), Fraction(oc * ii - ic * io, determinant)
        if into >= 0 and out >= 0:
            return float(into), float(out)
        # Known costs are rounded up to whole micro-dollars: below zero by no more than that is a price of nothing.
        ins, outs = sum(c.input_tokens for c in calls), sum(c.output_tokens for c in calls)
        if out < 0 <= into and -out * determinant <= outs * ii + ins * io:
            return ic / ii, 0.0
        if into < 0 <= out and -into * determinant <= ins * oo + outs * io:
            return 0.0, oc / oo
    tokens = sum(c.input_tokens + c.output_tokens for c in calls)
    blended = sum(c.cost_micros for c in calls) / tokens
    return blended, blended
