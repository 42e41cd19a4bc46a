"""What a call took, in tokens and integer micro-dollars (1 USD = 1,000,000)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider counts them and what they cost. ``cost_micros`` is None where no price is known."""

    input_tokens: int
    output_tokens: int
    cost_micros: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Micro-dollars per million tokens: 3 USD a million is 3_000_000."""

    input_micros_per_million: int
    output_micros_per_million: int

    def cost(self, *, input_tokens: int, output_tokens: int) -> int:
        """Micro-dollars, rounded up so that sums never fall short of the bill."""
        total = input_tokens * self.input_micros_per_million + output_tokens * self.output_micros_per_million
        return -(-total // 1_000_000)


NOTHING = Price(input_micros_per_million=0, output_micros_per_million=0)
"""The price of a model that is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a model's tokens cost at most, and who says so: a file, or a library with its version."""

    price: Price
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a call that ended was billed as: ``usage``, or None when nothing was billed."""

    usage: Usage | None = None


FREE = Bill()


def dollars(micros: int) -> str:
    """``1234567`` as ``$1.2346``, for people."""
    return f"${micros / 1_000_000:.4f}"
