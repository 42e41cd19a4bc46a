"""How a release is watched and judged: the project's own numbers, with defaults that work."""

from __future__ import annotations

from dataclasses import dataclass

from domain.kpi.probe import Probe

EXTEND, ASK, ROLL_BACK = "extend", "ask", "roll back"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPolicy:
    """Times in seconds, ``rate`` in requests a second to each release, shares from 0 to 1.

    Guard rails act at once: the health check down, a share of errors above ``max_errors`` in ``guard_windows`` windows
    in a row, a p95 above ``max_slowdown`` times the baseline's (and ``slow_floor_ms`` above it) in as many.
    ``level`` is the level of the one-sided test at each look; a look needs ``min_asked`` requests of each release.
    ``on_inconclusive`` and ``on_no_data`` say what then happens: "extend" (by up to ``extensions`` windows, then as
    "ask"), "ask" a person, or "roll back".
    """

    seconds: float = 300.0
    window: float = 30.0
    rate: float = 20.0
    timeout: float = 5.0
    probes: tuple[Probe, ...] = (Probe(),)
    max_errors: float = 0.2
    max_slowdown: float = 3.0
    slow_floor_ms: float = 50.0
    guard_windows: int = 2
    level: float = 0.0001
    min_asked: int = 100
    extensions: int = 4
    on_inconclusive: str = ASK
    on_no_data: str = ROLL_BACK

    @property
    def windows(self) -> int:
        """How many windows the watch has."""
        return max(1, round(self.seconds / self.window))
