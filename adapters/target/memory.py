"""A target in one process's memory: the reference of what the port means, and for tests.

The first word of a release's command says what it does: "dies" at once, is "silent", or serves. A command does what its
first word says too: "false" fails.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from domain.errors import (
    DigestMismatch,
    InvalidInput,
    KeyConflict,
    Overtaken,
    ReleaseDied,
    ReleaseMissing,
    ReleaseSilent,
)
from domain.kpi.probe import Probe
from domain.ports.target import ABSENT, DEAD, HEALTHY, STARTING, Answered, Live, Order, Site, Unit, UnitStatus

_STATES = {"dies": DEAD, "silent": STARTING}
_FAULTS = {DEAD: "ReleaseDied", STARTING: "ReleaseSilent"}


class MemoryUnits:
    """``domain.ports.target.Units`` in dictionaries; ``drains`` is how long requests to removed units had to end."""

    def __init__(self) -> None:
        self.orders: dict[Unit, Order] = {}
        self.live: dict[tuple[str, str], int] = {}
        self.commands: list[tuple[str, ...]] = []
        self.drains: dict[Unit, float] = {}
        self._ended: dict[tuple[Unit, str], UnitStatus] = {}

    async def trigger(self, order: Order) -> None:
        if hashlib.sha256(order.content).hexdigest() != order.artifact:
            raise DigestMismatch(f"the artefact is not the one that is named {order.artifact[:12]}")
        if not order.run:
            raise InvalidInput("the command of this release is empty")
        known = self.orders.get(order.unit)
        if known and (known.artifact, known.config) != (order.artifact, order.config):
            raise KeyConflict(f"release {order.unit.release} is there already with another content")
        self.orders.setdefault(order.unit, order)

    async def poll(self, unit: Unit) -> UnitStatus:
        order = self.orders.get(unit)
        if order is None:
            return UnitStatus(state=ABSENT)
        state = _STATES.get(order.run[0], HEALTHY)
        kind = _FAULTS.get(state, "")
        url = f"http://127.0.0.1:{10_000 + unit.release}"
        return UnitStatus(state=state, url=url, artifact=order.artifact, config=order.config, kind=kind, sentence=kind)

    async def remove(self, unit: Unit, *, drain: float = 0.0) -> bool:
        if self.live.get((unit.project, unit.environment)) == unit.release:
            raise KeyConflict(f"release {unit.release} has the traffic of its {unit.environment}")
        self.orders.pop(unit, None)
        self.drains[unit] = drain
        return True

    async def command(self, unit: Unit, argv: tuple[str, ...], *, key: str, seconds: float) -> UnitStatus:
        if unit not in self.orders:
            raise ReleaseMissing(f"nothing is left of release {unit.release}")
        if (unit, key) not in self._ended:
            self.commands.append(argv)
            ended = UnitStatus(state=HEALTHY)
            failed = replace(ended, state=DEAD, kind="ReleaseDied", sentence="it ended with exit code 1")
            self._ended[unit, key] = failed if argv[0] == "false" else ended
        return self._ended[unit, key]


class MemoryTraffic:
    """``domain.ports.target.Traffic`` over the same dictionaries."""

    def __init__(self, units: MemoryUnits) -> None:
        self._units = units

    async def current(self, site: Site) -> Live | None:
        release = self._units.live.get((site.project, site.environment), 0)
        order = self._units.orders.get(_unit(site, release))
        if order is None:
            return None
        return Live(release=release, artifact=order.artifact, config=order.config, url=f"http://{site.project}")

    async def switch(self, site: Site, to: int, *, expected: int) -> Live:
        now = self._units.live.get((site.project, site.environment), 0)
        if now not in (to, expected):
            raise Overtaken(f"the traffic of {site.project} goes to release {now} instead of {expected}")
        return await self._lead(site, to)

    async def roll_back(self, site: Site, to: int) -> Live | None:
        if to:
            return await self._lead(site, to)
        self._units.live.pop((site.project, site.environment), None)
        return None

    async def health(self, site: Site, probe: Probe) -> Answered:
        live = await self.current(site)
        if live is None:
            return Answered(ok=False, sentence="this site has no release")
        return Answered(ok=True, release=live.release, status=probe.status)

    async def _lead(self, site: Site, to: int) -> Live:
        status = await self._units.poll(_unit(site, to))
        if status.state == ABSENT:
            raise ReleaseMissing(f"nothing is left of release {to} of {site.project}")
        if status.state != HEALTHY:
            raise (ReleaseDied if status.state == DEAD else ReleaseSilent)(f"release {to} does not serve")
        self._units.live[site.project, site.environment] = to
        live = await self.current(site)
        assert live is not None  # noqa: S101 - it was polled above
        return live


class MemoryTarget:
    """``domain.ports.target.Target``; nothing is ever missing."""

    def __init__(self) -> None:
        self._units = MemoryUnits()
        self._traffic = MemoryTraffic(self._units)

    def missing(self) -> Mapping[str, str]:
        return {}

    @property
    def units(self) -> MemoryUnits:
        return self._units

    @property
    def traffic(self) -> MemoryTraffic:
        return self._traffic


def open_memory(root: Path) -> MemoryTarget:
    """New and empty; ``root`` is not touched."""
    return MemoryTarget()


def _unit(site: Site, release: int) -> Unit:
    return Unit(project=site.project, environment=site.environment, release=release)
