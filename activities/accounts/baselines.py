"""What the phases of a project usually take, and which of its phases take three times that.

Asked by whoever writes the log, just before a phase's last row goes into it. What was read of a build is kept in the
process, so that each row is read once; what was found follows from the log alone.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from temporalio import activity

from domain.errors import MendworkError
from domain.ports.store import BuildRow, Builds, Event, EventLog
from domain.trace.order import key_of
from domain.trace.usual.baseline import LATEST, Anomaly, judge, of_phase
from domain.trace.usual.taken import ENDS, Phases, Taken

REMEMBERED = 200
"""Builds whose phases this process knows by heart."""
PATIENCE_SECONDS = 2.0
"""Nobody's rows wait longer for a comparison; what was read until then is kept for the next one."""

Told = Callable[[Taken, Anomaly | None], None]
"""Is told of each phase that ended, once or more often, and of what stands out of it."""


@dataclass(slots=True)
class _Known:
    """A build as far as it was read: the position of its last row, and what its phases took. ``ended`` as of then."""

    position: int = 0
    phases: Phases = field(default_factory=Phases)
    ended: int = 0


class Baselines:
    """Reads the log and the list of builds; ``told`` hears of phases."""

    def __init__(self, *, events: EventLog, builds: Builds, told: Told | None = None) -> None:
        self._events = events
        self._builds = builds
        self._told = told or (lambda taken, anomaly: None)
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def anomalies(self, events: Sequence[Event], *, seconds: float = PATIENCE_SECONDS) -> tuple[Anomaly, ...]:
        """Of the phases that end with one of ``events``, rows of one saga that may be in the log already or not.
        Raises nothing: where the past cannot be read in time, nothing is said of it."""
        if not any(event.kind in ENDS and not event.task for event in events):
            return ()
        try:
            async with asyncio.timeout(seconds):
                return await self._compared(events)
        except (MendworkError, TimeoutError) as error:
            activity.logger.warning("phases are not compared with earlier ones: %s", error or "the log is slow")
            return ()

    async def _compared(self, events: Sequence[Event]) -> tuple[Anomaly, ...]:
        build, keys = events[0].build, {key_of(event) for event in events}
        known = await self._read(build)
        phases = known.phases.fork()
        if not keys & {each.key for each in phases.taken}:
            for event in events:
                phases.take(event)
        row = await self._builds.get(build)
        found = []
        for taken in phases.taken:
            if taken.key in keys:
                anomaly = await self._judged(taken, row) if row is not None and not phases.dry else None
                self._told(taken, anomaly)
                found += [anomaly] if anomaly else []
        return tuple(found)

    async def _judged(self, taken: Taken, row: BuildRow) -> Anomaly | None:
        if not row.project:
            return None
        past: list[list[Taken]] = []
        for other in await self._builds.list(project=row.project, limit=2 * LATEST):
            if other.build != row.build and other.ended and not other.damaged and len(past) < LATEST:
                phases = await self._ended(other)
                past += [] if phases.dry else [phases.taken]
        return judge(taken, of_phase(taken.phase, past))

    async def _ended(self, row: BuildRow) -> Phases:
        """A build that ended says nothing more, unless a reset lets it run again."""
        known = self._known.get(row.build)
        if known is None or known.ended != row.ended:
            known = await self._read(row.build)
            known.ended = row.ended
        return known.phases

    async def _read(self, build: str) -> _Known:
        """Its rows since the last time."""
        known = self._known.setdefault(build, _Known())
        self._known.move_to_end(build)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        since = known.position
        for position, event in await self._events.read(build, after=since):
            if position > known.position:  # another activity may have read on meanwhile
                known.position = position
                known.phases.take(event)
        return known
