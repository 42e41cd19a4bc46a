"""What each test of a run did, by its name."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal

Outcome = Literal["passed", "xfailed", "skipped", "failed", "error"]
"""From best to worst. "xfailed" was allowed to fail, whatever it did."""
Tests = Mapping[str, Outcome]
"""A test that is not in it did not run: absent and skipped are the same to a comparison."""

_BEST_TO_WORST: tuple[Outcome, ...] = ("passed", "xfailed", "skipped", "failed", "error")
_LONGEST = 300


def is_bad(outcome: Outcome) -> bool:
    """Whether the test failed, or could not even be run."""
    return outcome in {"failed", "error"}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of at least one."""
    return max(outcomes, key=_BEST_TO_WORST.index)


def by_name(found: Iterable[tuple[str, Outcome]]) -> dict[str, Outcome]:
    """Of a name that comes more than once, the worst: a test that passed and whose cleaning up failed."""
    tests: dict[str, Outcome] = {}
    for long_name, outcome in found:
        name = short(long_name)
        tests[name] = worst((outcome, tests.get(name, outcome)))
    return tests


def numbered(found: Iterable[tuple[str, Outcome]]) -> dict[str, Outcome]:
    """For runners whose names need not be unique: the second of a name is "name (2)". The better come first, so that
    it shows when one of them fails, or is gone, whatever their order."""
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    for name, outcome in found:
        outcomes[short(name)].append(outcome)
    return {
        name if number == 1 else f"{name} ({number})": outcome
        for name, several in outcomes.items()
        for number, outcome in enumerate(sorted(several, key=_BEST_TO_WORST.index), start=1)
    }


def short(name: str) -> str:
    """A long name by its beginning and a digest: a parametrised test may carry a whole document in its name."""
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 20]}...{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:16]}"
