"""Synthetic load on releases: how many of its requests a service answered well, and how fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from domain.kpi.probe import Probe
from domain.kpi.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOrder:
    """One window. ``candidate`` and ``baseline`` are base URLs on loopback ("" : there is no baseline); each gets
    ``rate`` requests a second for ``seconds``, of the ``probes`` in turn. A request takes at most ``timeout`` s."""

    number: int
    candidate: str
    baseline: str
    health: Probe
    probes: tuple[Probe, ...]
    rate: float
    seconds: float
    timeout: float


class Load(Protocol):
    """Asks both at the same time and in the same way. Never raises for a service that fails: that is a result."""

    async def measure(self, order: LoadOrder) -> Window:
        """One window. Raises InvalidInput for an address that is not on loopback."""
        ...
