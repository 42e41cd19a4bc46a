"""Where a followed build's events come from: the store, which may be away, and the server's word on its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adapters.cli.log.screens import Screen
from adapters.cli.session import say
from domain.errors import StoreUnavailable, Transient

if TYPE_CHECKING:
    from temporalio.client import Client

    from domain.ports.store import Event, Store

OUTAGE_SECONDS = 120.0
"""How long a store that is away is waited for: a database that restarts, or that its standby takes over from."""

LISTEN_SECONDS = 3600.0


class Source:
    """A build's events from the store, which may be away for ``OUTAGE_SECONDS``; ``screen`` makes room to say so."""

    def __init__(self, store: Store, build: str, screen: Screen) -> None:
        self._store = store
        self._build = build
        self._screen = screen
        self._position = 0
        self._away_since = 0.0
        self._more: asyncio.Task[bool] | None = None

    async def aclose(self) -> None:
        """Wait no longer. May be repeated."""
        if self._more is not None:
            self._more.cancel()
            await asyncio.gather(self._more, return_exceptions=True)

    async def read(self) -> Sequence[Event] | None:
        """What is new; None while the store is away. Raises StoreUnavailable when it is for too long."""
        try:
            found = await self._store.events.read(self._build, after=self._position)
        except StoreUnavailable as error:
            self._bear(error)
            return None
        if self._away_since:
            say("the store is back")
        self._away_since = 0.0
        self._position = found[-1][0] if found else self._position
        return [event for _, event in found]

    async def wait(self, seconds: float) -> bool:
        """Whether there may be more to read: at once when there is, else after ``seconds``. The store goes on being
        listened to from one call to the next, so a round of silence asks it nothing."""
        if self._more is None:
            wait = self._store.arrivals.wait(self._build, after=self._position, seconds=LISTEN_SECONDS)
            self._more = asyncio.create_task(wait)
        done, _ = await asyncio.wait([self._more], timeout=seconds)
        if done:
            self._more = None
            with contextlib.suppress(StoreUnavailable):  # the next read says it
                await next(iter(done))
        return bool(done)

    def _bear(self, error: StoreUnavailable) -> None:
        now = asyncio.get_running_loop().time()
        if not self._away_since:
            self._screen.close()
            say(f"{error}; it is asked again for {OUTAGE_SECONDS:.0f} s")
        self._away_since = self._away_since or now
        if now - self._away_since >= OUTAGE_SECONDS:
            raise error


async def is_over(client: Client, build: str) -> bool:
    """Whether the workflow ended, however it did, or does not exist: then no more events come."""
    from temporalio.client import WorkflowExecutionStatus
    from temporalio.service import RPCError, RPCStatusCode

    try:
        description = await client.get_workflow_handle(build).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return True
        raise Transient(f"Temporal does not answer: {error.message}") from error
    return description.status not in (
        WorkflowExecutionStatus.RUNNING,
        WorkflowExecutionStatus.CONTINUED_AS_NEW,
    )
