"""How many tokens a text will be: an estimate, the same for every model."""

from __future__ import annotations


def tokens(size: int) -> int:
    """Tokens of ``size`` bytes of source, at two tokens for seven bytes.

    Common tokenizers make a token of 3.2 to 4 bytes of code and of 4 to 4.5 bytes of English; so this is a little too
    many rather than too few.
    """
    return -(-2 * size // 7)


def room(budget: int) -> int:
    """The bytes that are surely inside a budget of tokens."""
    return max(0, budget) * 7 // 2
