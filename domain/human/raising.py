"""Raising limits while a build runs: upwards only, so that nothing that was promised is taken back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from domain.build.requests import decode
from domain.errors import InvalidInput
from domain.human.asks import Answer, one_line
from domain.money.budget import Budget

ACCOUNTS = ("task", "build", "project", "user", "day")


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """Budgets in USD, 0 for unchanged; ``attempts`` of a task from now on, ``calls`` of a task in all."""

    task_budget: float = 0.0
    build_budget: float = 0.0
    project_budget: float = 0.0
    user_budget: float = 0.0
    day_budget: float = 0.0
    calls: int = 0
    attempts: int = 0
    by: str = ""

    @classmethod
    def of(cls, answer: Answer) -> Raised:
        """What an answer to a question raises."""
        return cls(
            task_budget=answer.task_budget,
            build_budget=answer.build_budget,
            attempts=answer.attempts,
            by=answer.by,
        )


def decode_raised(raw: Any) -> Raised:
    """Raises InvalidInput with one sentence, also when nothing would change."""
    asked = decode(Raised, raw)
    numbers = [getattr(asked, f"{name}_budget") for name in ACCOUNTS] + [asked.calls, asked.attempts]
    if not all(0 <= number < 1e9 for number in numbers):
        raise InvalidInput("limits have to be numbers from 0 to a thousand million")
    if not any(numbers):
        raise InvalidInput("name a limit to raise: task_budget, build_budget, …, calls or attempts")
    return replace(asked, by=one_line(asked.by)[:100] or "unknown")


def raised(budget: Budget, asked: Raised) -> Budget:
    """``budget`` with the limits that are higher now; no limit stays no limit."""
    changes: dict[str, Any] = {"calls": max(budget.calls, asked.calls)}
    for name in ACCOUNTS:
        old, new = getattr(budget, name), int(getattr(asked, f"{name}_budget") * 1_000_000)
        changes[name] = None if old is None else max(old, new)
    return replace(budget, **changes)
