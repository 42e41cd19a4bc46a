"""The most that a call can cost, known before it is made: an upper bound, never an estimate."""

from __future__ import annotations

from collections.abc import Iterable

from domain.money.usage import Price

MESSAGE_TOKENS = 16
"""What a provider's chat template puts around one message: role marks and separators, three to seven in practice."""
CALL_TOKENS = 1_024
"""What it puts around the whole call: the instructions for a forced tool or a JSON schema, some 500 in practice."""


def input_bound(texts: Iterable[str]) -> int:
    """More input tokens than these messages (and schema) can be billed as.

    No tokenizer has to be at hand: one token stands for at least one byte of UTF-8, in every vocabulary in use.
    """
    return CALL_TOKENS + sum(len(text.encode("utf-8", "surrogatepass")) + MESSAGE_TOKENS for text in texts)


def upper_bound(texts: Iterable[str], *, price: Price, output_tokens: int) -> int:
    """Micro-dollars for ``texts`` and as much output as is allowed."""
    return price.cost(input_tokens=input_bound(texts), output_tokens=output_tokens)
