"""Connections that a run opened, served side by side until they end or all are broken off."""

from __future__ import annotations

import asyncio


class Connections:
    """At most ``at_once`` are served, the others wait. Whoever inherits says how one is."""

    def __init__(self, *, at_once: int) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._tasks: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one connection of the run."""
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Break off every connection."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError
