"""Measuring two releases side by side: the deploy worker's, which alone can reach them."""

from __future__ import annotations

from temporalio import activity

from domain.kpi.window import Window
from domain.ports.load import Load, LoadOrder


class Measuring:
    """One activity per window; the heartbeats come from the interceptor."""

    def __init__(self, *, load: Load) -> None:
        self._load = load

    @activity.defn
    async def measure_window(self, request: LoadOrder) -> Window:
        """A repeat measures another window of the same number. Raises InvalidInput for an address off loopback."""
        return await self._load.measure(request)
