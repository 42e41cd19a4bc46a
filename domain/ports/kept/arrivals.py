"""Waiting for what is appended to the event log, instead of reading it again and again."""

from __future__ import annotations

from typing import Protocol


class Arrivals(Protocol):
    """Wakes whoever waits for a build's next event, in whichever process that is appended."""

    async def wait(self, build: str, *, after: int, seconds: float) -> bool:
        """Whether the build has an event after position ``after``: True as soon as there is one, False when
        ``seconds`` went by without one. With 0 seconds it is one look.

        No wake-up is lost: the log is looked at after listening has begun. Where nothing can be heard (the connection
        was cut, a proxy swallows it) the log is looked at again every few seconds instead. Raises what a look raises:
        StoreUnavailable, ResourceShort. A store that is closed ends every wait at once, with StoreUnavailable.
        """
        ...
