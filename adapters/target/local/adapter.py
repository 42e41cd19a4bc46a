"""The deploy target port on this machine."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar

from adapters.target.local.folders import Folders
from adapters.target.local.loopback import PORTS
from adapters.target.local.machine import Machine
from adapters.target.local.supervisor import Supervisor
from adapters.target.local.traffic import SiteProxies
from adapters.target.local.units import UnitFolders
from domain.errors import ResourceShort, TargetUnavailable
from domain.kpi.probe import Probe
from domain.ports.target import Answered, Live, Order, Site, Unit, UnitStatus

P = ParamSpec("P")
T = TypeVar("T")

_SHORT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN}
_TICK = 0.1


async def _in_thread(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Cancelling waits for the end: an undo must not meet what it undoes. OSError becomes one of ours."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *arguments, **named))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise
    except OSError as error:
        if error.errno in _SHORT:
            raise ResourceShort(f"this machine is short of something for a release: {error.strerror}") from error
        raise TargetUnavailable(f"the local target cannot work: {error}") from error


class LocalUnits:
    """``domain.ports.target.Units``."""

    def __init__(self, units: UnitFolders) -> None:
        self._units = units

    async def trigger(self, order: Order) -> None:
        await _in_thread(self._units.trigger, order)

    async def poll(self, unit: Unit) -> UnitStatus:
        return await _in_thread(self._units.poll, unit)

    async def remove(self, unit: Unit, *, drain: float = 0.0) -> bool:
        give_up = time.monotonic() + drain
        while time.monotonic() < give_up and await _in_thread(self._units.is_asked, unit):  # noqa: ASYNC110  no event
            await asyncio.sleep(_TICK)
        return await _in_thread(self._units.remove, unit)

    async def command(self, unit: Unit, argv: tuple[str, ...], *, key: str, seconds: float) -> UnitStatus:
        """It goes on when we are killed, and a repeat waits for it; its time is kept by its launcher."""
        name = await _in_thread(self._units.begin, unit, argv, key=key, seconds=seconds)
        status = None
        while status is None:
            status = await _in_thread(self._units.ended, unit, name)
            await asyncio.sleep(0 if status else _TICK)
        return status


class LocalTraffic:
    """``domain.ports.target.Traffic``."""

    def __init__(self, sites: SiteProxies) -> None:
        self._sites = sites

    async def current(self, site: Site) -> Live | None:
        return await _in_thread(self._sites.current, site)

    async def switch(self, site: Site, to: int, *, expected: int) -> Live:
        return await _in_thread(self._sites.switch, site, to, expected=expected)

    async def roll_back(self, site: Site, to: int) -> Live | None:
        return await _in_thread(self._sites.roll_back, site, to)

    async def health(self, site: Site, probe: Probe) -> Answered:
        return await _in_thread(self._sites.health, site, probe)


class LocalTarget:
    """``domain.ports.target.Target``; ``root`` is its folder. ``ports`` are those that units may get."""

    def __init__(
        self, root: Path, *, machine: Machine | None = None, ports: range = PORTS, start_seconds: float = 30.0
    ) -> None:
        self.machine = machine or Machine()
        self.folders = Folders(root)
        self.supervisor = Supervisor(self.folders, self.machine)
        units = UnitFolders(self.folders, self.supervisor, ports=ports)
        self._units = LocalUnits(units)
        self._traffic = LocalTraffic(SiteProxies(self.folders, self.supervisor, units, start_seconds=start_seconds))

    def missing(self) -> Mapping[str, str]:
        return self.machine.missing()

    @property
    def units(self) -> LocalUnits:
        return self._units

    @property
    def traffic(self) -> LocalTraffic:
        return self._traffic


def open_local(root: Path) -> LocalTarget:
    """``root`` is the folder that Mendwork keeps its state in; nothing is made or started yet."""
    return LocalTarget(root / "target")
