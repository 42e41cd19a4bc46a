"""Named ways of working: what a planner and a coder are told beside the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.errors import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """Sentences for the prompts of the planning and of the coding model; "" says nothing."""

    planning: str = ""
    coding: str = ""


STRATEGIES: Mapping[str, Strategy] = {
    "": Strategy(),
    "tests-first": Strategy(
        planning=(
            "Plan tests first: each task begins with the tests that would fail without it, and names them in `tests`."
        ),
        coding=(
            "Work from the tests: decide first which tests fail without your change and would pass with it, write"
            " those, then only what makes them pass."
        ),
    ),
    "smallest": Strategy(
        planning="Plan the smallest change that does what is asked for: as few tasks and as few files as possible.",
        coding=(
            "Make the smallest change that does the task: touch as few lines and files as possible, rename and move"
            " nothing, add no abstraction that only this task would use."
        ),
    ),
}
"""By name; "" is the way of working that nobody has to name."""


def strategy(name: str) -> Strategy:
    """Raises UnknownName, which lists those that can be named."""
    try:
        return STRATEGIES[name]
    except KeyError:
        raise UnknownName.among("strategy", name, filter(None, STRATEGIES)) from None
