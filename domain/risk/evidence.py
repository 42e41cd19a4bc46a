"""What the risk of a change and the confidence in it are computed from: figures, never a model's word."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """What a diff touches. ``paths`` at most 200 of the ``files`` paths; ``novel`` of the files did not exist before or
    were never released."""

    files: int = 0
    lines: int = 0
    novel: int = 0
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How the change came to be. ``tests`` ran on it, ``base_tests`` before it (-1: cannot be counted). ``attempts`` is
    the most that one of its ``tasks`` needed. ``findings`` counts open review findings by severity: high, medium, low.
    ``reviewed`` is "" (nobody did), "weak" (by a model that wrote some of it) or "other". A change that was not built
    here (``mendwork deliver``) is ``unknown``."""

    unknown: bool = False
    green: bool = True
    tests: int = -1
    base_tests: int = -1
    attempts: int = 1
    tasks: int = 1
    missing: int = 0
    high: int = 0
    medium: int = 0
    low: int = 0
    reviewed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The project's last ``releases`` (at most 20) and how many of them ``failed`` (rolled back, or never switched)."""

    releases: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that is weighed."""

    touched: Touched
    made: Made
    past: Past
