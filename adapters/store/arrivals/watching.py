"""News from a SQLite file: the number that changes with every commit, of whichever process."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from pathlib import Path

from adapters.store.arrivals.bell import Bell

TICK_SECONDS = 0.1
SLOW_TICK_SECONDS = 0.5
TICKS_UNTIL_SLOW = 50
"""A store that nobody has written to for five seconds is asked less often: an approval can take days."""
LOOK_SECONDS = 5.0


class Watching:
    """``News`` from ``PRAGMA data_version`` on a connection of its own.

    SQLite promises that the number differs after every commit of another connection. To ask takes some microseconds in
    shared memory and never waits for a lock (``timeout=0``), so it needs no thread: the hop would cost ten times that.
    The file's time of change would be as cheap and is not right: two commits within one tick of the kernel's clock
    leave the same one, and the log's size may stay too.
    """

    def __init__(self, path: Path) -> None:
        self.bell = Bell()
        self._address = f"{path.absolute().as_uri()}?mode=rw"
        self._connection: sqlite3.Connection | None = None
        self._seen: int | None = None
        self._task: asyncio.Task[None] | None = None

    def attend(self) -> float:
        """See News."""
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        return LOOK_SECONDS

    async def close(self) -> None:
        """End every wait and close the connection. May be repeated."""
        self.bell.close()
        task = self._task
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._drop()

    async def _watch(self) -> None:
        """As long as anybody waits. Where the file cannot be asked, every tick is news: each waiter looks itself."""
        quiet = 0
        try:
            while self.bell.awaited:
                version = self._version()
                quiet = quiet + 1 if version == self._seen else 0
                if version is None or not quiet:
                    self.bell.ring()
                self._seen = version
                await asyncio.sleep(TICK_SECONDS if quiet < TICKS_UNTIL_SLOW else SLOW_TICK_SECONDS)
        finally:
            self._task = None

    def _version(self) -> int | None:
        try:
            return self._asked()
        except sqlite3.Error:
            self._drop()
            return None

    def _asked(self) -> int:
        if self._connection is None:
            self._connection = sqlite3.connect(self._address, uri=True, timeout=0, isolation_level=None)
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
