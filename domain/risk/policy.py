"""The published weights of the risk formula, and the escalation matrix: data that a project may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

WEIGHTS: Mapping[str, float] = {
    "files": 0.10,
    "lines": 0.15,
    "migrations": 0.20,
    "auth": 0.20,
    "dependencies": 0.15,
    "ci": 0.15,
    "gates": 0.15,
    "attempts": 0.10,
    "findings": 0.20,
    "novelty": 0.10,
    "failures": 0.15,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPolicy:
    """``limit`` is the project's own: a risk above it asks a person; above 0.7 it always does. ``weights`` replace
    single ones of the published table."""

    limit: float = 0.5
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
