"""A review: what a model that did not write the change finds in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``task`` is the id of the task that has to mend it ("" when none fits), ``line`` 0 where it is about a file."""

    task: str
    file: str
    line: int
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What the reviewing model answers to a diff."""

    summary: str
    findings: tuple[Finding, ...]
