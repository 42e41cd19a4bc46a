"""Keeps worker processes alive: a dead one is started again, later and later while it keeps dying."""

from __future__ import annotations

import asyncio
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.temporal import children

FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
HEALTHY_AFTER = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process to keep: ``environment`` is everything that it gets, ``name`` what people read."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    folder: Path


def restart_delay(deaths: int) -> float:
    """Seconds to wait before starting again after ``deaths`` in a row (1 or more): 0.5, 1, 2 … 30."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(deaths - 1, 10))


def count_death(deaths: int, *, lived: float) -> int:
    """The deaths in a row, now that a process that ``lived`` so many seconds has died."""
    return 1 if lived >= HEALTHY_AFTER else deaths + 1


class Supervisor:
    """Runs ``programs`` until it is stopped.

    ``say`` gets one line for people at each death; ``changed`` gets the pids by name at each start and death.
    """

    def __init__(
        self, programs: Sequence[Program], *, say: Callable[[str], None], changed: Callable[[Mapping[str, int]], None]
    ) -> None:
        self._programs = tuple(programs)
        self._say = say
        self._changed = changed
        self._running: dict[str, Process] = {}

    @property
    def pids(self) -> dict[str, int]:
        """The processes that run now, by name."""
        return {name: process.pid for name, process in self._running.items()}

    async def run(self) -> None:
        """Start all and keep them, until this is cancelled; they still run then: call ``stop``."""
        async with asyncio.TaskGroup() as group:
            for program in self._programs:
                group.create_task(self._keep(program))

    async def stop(self, *, grace: float) -> None:
        """End all at once: SIGTERM, ``grace`` seconds to finish what they do, SIGKILL."""
        await asyncio.gather(*(children.stop(process, grace=grace) for process in self._running.values()))
        self._running.clear()
        self._changed(self.pids)

    async def _keep(self, program: Program) -> None:
        deaths = 0
        while True:
            born = time.monotonic()
            code = await self._live(program, again=deaths > 0)
            lived = time.monotonic() - born
            deaths = count_death(deaths, lived=lived)
            delay = restart_delay(deaths)
            self._say(
                f"worker {program.name} ended ({ending(code)}) after {lived:.1f} s; "
                f"starting it again in {delay:g} s; its log: {program.log}"
            )
            await asyncio.sleep(delay)

    async def _live(self, program: Program, *, again: bool) -> int:
        process = await children.start(
            program.argv, environment=program.environment, log=program.log, folder=program.folder
        )
        self._running[program.name] = process
        if again:
            self._say(f"worker {program.name} runs again, pid {process.pid}")
        self._changed(self.pids)
        code = await children.reap(process)
        del self._running[program.name]
        self._changed(self.pids)
        return code


def ending(code: int) -> str:
    """An exit code as people say it; negative ones are signals."""
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
