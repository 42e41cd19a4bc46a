"""Look, listen, look: how waiting is done, whatever brings the news."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from domain.errors import StoreUnavailable

WORD = 200
"""Characters of a build's name that go with the news, which have room for 8,000 bytes; the rest is looked at."""


class Bell:
    """Who waits for news of which build in this process. For one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._closed = False

    @property
    def awaited(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    @contextmanager
    def heard(self, build: str) -> Iterator[asyncio.Event]:
        """An event that is set by every ``ring`` for this build as long as the context is open."""
        rung, build = asyncio.Event(), build[:WORD]
        self._waiting.setdefault(build, set()).add(rung)
        try:
            yield rung
        finally:
            self._waiting[build].discard(rung)
            if not self._waiting[build]:
                del self._waiting[build]

    @property
    def closed(self) -> bool:
        """Whether nothing is heard any more."""
        return self._closed

    def close(self) -> None:
        """End every wait, those under way and those to come: the store is closed."""
        self._closed = True
        self.ring()

    def ring(self, build: str | None = None) -> None:
        """Wake who waits for this build; without one everybody, because nobody knows what was missed."""
        for each in list(self._waiting) if build is None else [build[:WORD]]:
            for rung in self._waiting.get(each, ()):
                rung.set()


class News(Protocol):
    """What rings ``bell`` when something was appended."""

    bell: Bell

    def attend(self) -> float:
        """See to it that news come, without waiting for that: the bell is rung once they do. Returns the seconds after
        which a look is due although nothing was heard."""
        ...


async def until_there(news: News, look: Callable[[], Awaitable[bool]], *, build: str, seconds: float) -> bool:
    """What ``look`` says once it is true, or after ``seconds``. What was rung during a look is looked at again.

    Raises StoreUnavailable once the bell is closed: nothing is opened again for those who still wait.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    with news.bell.heard(build) as rung:
        while True:
            if news.bell.closed:
                raise StoreUnavailable("the store was closed; nobody hears its news any more")
            rung.clear()
            patience = news.attend()
            if await look():
                return True
            left = until - clock()
            if left <= 0:
                return False
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, patience)):
                    await rung.wait()
