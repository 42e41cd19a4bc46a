"""What the calls of a log took: each logical attempt counts once, however often its answer was noted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from domain.ports.store import Event

CALLS = ("call.answered", "call.failed")
FREE = (
    "RateLimited",
    "CredentialsRefused",
    "ProviderRefused",
    "BudgetExhausted",
    "PriceUnknown",
    "Busy",
    "InvalidInput",
    "UnknownName",
)
"""Faults of calls that were refused before a model wrote anything: nobody bills them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """``unpriced`` counts calls whose cost the log does not hold: lost ones, and models without a price."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int = 0
    unpriced: int = 0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_micros=self.cost_micros + other.cost_micros,
            unpriced=self.unpriced + other.unpriced,
        )


NOTHING = Spending()


def total(parts: Iterable[Spending]) -> Spending:
    """The sum; nothing for none."""
    return sum(parts, start=NOTHING)


def spending_of(event: Event) -> Spending:
    """What one call took; nothing for any other event."""
    if event.kind not in CALLS:
        return NOTHING
    usage: Any = event.data.get("usage") or {}
    cost = usage.get("cost_micros")
    refused = event.kind == "call.failed" and all(fault.get("kind") in FREE for fault in event.data.get("faults", ()))
    return Spending(
        calls=1,
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        cost_micros=cost or 0,
        unpriced=int(cost is None and not refused),
    )


def logical_call(event: Event) -> tuple[object, ...]:
    """Names the logical attempt of a call: after a reset its recorded answer is noted again, and not paid again."""
    data = event.data
    return (event.task, event.attempt, data.get("step"), data.get("turn"), event.kind)
