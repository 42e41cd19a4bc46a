"""Whom to ask next when a model failed or its answer does not fit: a pure decision, taken in the workflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Where a question stands: which model of the chain (from 0), which turn of the attempt (from 1), whether this
    model's answer was sent back already."""

    model: int = 0
    turn: int = 1
    sent_back: bool = False


Outcome = Literal["unfit", "failed"]


def next_asking(now: Asking, outcome: Outcome, *, chain_length: int) -> Asking | None:
    """The next call, or None when every model of the chain has had its turn.

    "unfit" (an answer that fits no schema) goes back once to the same model; a second one, and "failed" (the provider's
    own tries are used up, or it refused), go to the next model.
    """
    if outcome == "unfit" and not now.sent_back:
        return Asking(model=now.model, turn=now.turn + 1, sent_back=True)
    if now.model + 1 < chain_length:
        return Asking(model=now.model + 1, turn=now.turn + 1)
    return None
