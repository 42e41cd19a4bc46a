"""What was measured of two releases at the same time: counts and latencies, nothing of the answers themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One release in one window. ``asked`` requests were really sent; of these ``failed`` were the service's failure
    (refused, reset, timed out, wrong status, wrong content): ``faults`` counts them by kind.

    ``unmeasured`` are requests that could not be made for reasons of our own (no sockets, no time): they say nothing
    of the service. ``p50`` and ``p95`` are milliseconds over the answers (0.0: none).
    """

    asked: int
    failed: int
    unmeasured: int = 0
    p50: float = 0.0
    p95: float = 0.0
    faults: Mapping[str, int] = field(default_factory=dict)
    healthy: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """``number`` counts from 1, ``seconds`` is its length. ``baseline`` is None where there is no older release."""

    number: int
    seconds: float
    candidate: Arm
    baseline: Arm | None = None
