"""News from PostgreSQL: LISTEN on a connection of its own, outside the pool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from adapters.store.arrivals.bell import Bell

if TYPE_CHECKING:
    from psycopg import AsyncConnection

CHANNEL = "mendwork_events"
HEARD_SECONDS = 5.0
"""Looked at also while listening: a pooler that shares connections between transactions accepts LISTEN and drops it."""
UNHEARD_SECONDS = 0.5
CONNECT_AGAIN_SECONDS = 1.0


class Listening:
    """``News``: one connection for all who wait in this process, opened by the first of them and again when it is lost.

    ``connect`` opens one in autocommit and raises psycopg.Error. Nothing here waits for the server while a waiter does.
    """

    def __init__(self, connect: Callable[[], Awaitable[AsyncConnection[Any]]]) -> None:
        self.bell = Bell()
        self._connect = connect
        self._task: asyncio.Task[None] | None = None
        self._listens = False
        self._again_at = 0.0

    def attend(self) -> float:
        """See News."""
        if self._task is None and asyncio.get_running_loop().time() >= self._again_at:
            self._task = asyncio.create_task(self._listen())
        return HEARD_SECONDS if self._listens else UNHEARD_SECONDS

    async def close(self) -> None:
        """End every wait and close the connection. May be repeated."""
        self.bell.close()
        task = self._task
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _listen(self) -> None:
        """The life of one connection. Whoever waits is woken at both ends: to look once it listens, and when it is
        lost, because nobody knows what it would still have said."""
        from psycopg import Error

        try:
            async with await self._connect() as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                await self._hear(connection)
        except (Error, OSError):
            pass  # the next look finds the store gone, or does well without
        finally:
            self._listens = False
            self._again_at = asyncio.get_running_loop().time() + CONNECT_AGAIN_SECONDS
            self._task = None
            self.bell.ring()

    async def _hear(self, connection: AsyncConnection[Any]) -> None:
        """Until the connection is lost. By the socket itself: psycopg's own ``notifies`` wakes ten times a second."""
        from psycopg import Error

        loop = asyncio.get_running_loop()
        lost = loop.create_future()

        def hear() -> None:
            try:
                connection.pgconn.consume_input()
                while notification := connection.pgconn.notifies():
                    self.bell.ring(notification.extra.decode(errors="replace"))
            except Error as error:
                loop.remove_reader(socket)
                lost.set_exception(error)

        socket = connection.fileno()
        loop.add_reader(socket, hear)
        try:
            self._listens = True
            self.bell.ring()
            await lost
        finally:
            loop.remove_reader(socket)
