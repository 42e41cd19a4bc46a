"""``domain.ports.kept.arrivals.Arrivals`` in one process's memory."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from adapters.store.arrivals.bell import Bell, until_there


class Told:
    """``News`` that are rung by the log itself."""

    def __init__(self, bell: Bell) -> None:
        self.bell = bell

    def attend(self) -> float:
        """See News."""
        return math.inf


class MemoryArrivals:
    """``look`` says whether a build has an event after a position."""

    def __init__(self, bell: Bell, look: Callable[[str, int], Awaitable[bool]]) -> None:
        self._news = Told(bell)
        self._look = look

    async def wait(self, build: str, *, after: int, seconds: float) -> bool:
        return await until_there(self._news, lambda: self._look(build, after), build=build, seconds=seconds)
