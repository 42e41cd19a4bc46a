"""What of a target runs on this machine; ending all of it, and bringing it back."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adapters.target.launch.earlier import born_at
from adapters.target.local.adapter import LocalTarget
from adapters.target.local.folders import program_of
from adapters.target.local.proxy import Proxy
from adapters.target.local.supervisor import Running
from domain.errors import TargetUnavailable
from domain.ports.target import Unit

_SECONDS = 20.0
_Process = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLine:
    """``state`` is the supervisor's word in lower case, "stopped" when it does not run; ``pid`` 0: it does not run."""

    release: int
    live: bool
    state: str
    pid: int
    port: int
    uid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLine:
    """``live`` 0: traffic goes nowhere; ``url`` "" when it never had an address; ``pid`` is its proxy's."""

    project: str
    environment: str
    live: int
    url: str
    pid: int
    units: tuple[UnitLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """``supervisor`` is its pid, 0 when it does not run."""

    supervisor: int
    sites: tuple[SiteLine, ...]


def overview(target: LocalTarget) -> Overview:
    """Nothing is started or changed."""
    pid = target.supervisor.pid()
    programs = target.supervisor.all() if pid else {}
    sites = [_site(target, site, programs) for site in target.folders.sites()]
    return Overview(supervisor=pid, sites=tuple(sites))


def _site(target: LocalTarget, site: tuple[str, str], programs: Mapping[str, Running]) -> SiteLine:
    proxy = Proxy(target.folders, target.supervisor, site)
    live = proxy.leads_to()[0]
    units = [unit for unit in target.folders.units() if (unit.project, unit.environment) == site]
    running = programs.get(proxy.name)
    return SiteLine(
        project=site[0],
        environment=site[1],
        live=live,
        url=f"http://127.0.0.1:{proxy.port}" if proxy.port else "",
        pid=running.pid if running else 0,
        units=tuple(_unit(target, unit, live, programs.get(program_of(unit))) for unit in units),
    )


def _unit(target: LocalTarget, unit: Unit, live: int, running: Running | None) -> UnitLine:
    order = target.folders.order(unit) or {"port": 0, "uid": 0}  # it was removed just now
    return UnitLine(
        release=unit.release,
        live=unit.release == live,
        state=running.state.lower() if running else "stopped",
        pid=running.pid if running else 0,
        port=order["port"],
        uid=order["uid"],
    )


def stop_all(target: LocalTarget) -> int:
    """End the supervisor, the proxies and the releases, also those that a killed supervisor left; return how many
    programs were ended. What was there stays to be started again. Raises TargetUnavailable when one does not end."""
    if not target.folders.own.is_dir():
        return 0
    with target.folders.locked("supervisord"):
        pid = target.supervisor.pid()
        processes = _noted(target.folders.root)
        if pid:
            processes.add((pid, born_at(str(pid))))
            programs = target.supervisor.all().values()
            processes |= {(each.pid, born_at(str(each.pid))) for each in programs if each.pid}
        alive = {process for process in processes if _lives(process)}
        target.supervisor.shut_down()
        supervised = pid != 0
        for number, seconds in ((0 if supervised else signal.SIGTERM, _SECONDS), (signal.SIGKILL, _SECONDS)):
            if _ended(alive, number=number, seconds=seconds):
                _clear_sockets(target)
                return len(alive)
        left = ", ".join(str(process[0]) for process in alive if _lives(process))
        raise TargetUnavailable(f"these processes do not end: {left}")


def start_all(target: LocalTarget) -> int:
    """Start the supervisor again and with it all programs that it had; return its pid. Raises TargetMissing."""
    target.folders.make()
    target.supervisor.ensure()
    return target.supervisor.pid()


def _noted(root: Path) -> set[_Process]:
    """What the launchers noted when they started."""
    found = set()
    for note in (*root.glob("*/*/pid"), *root.glob("*/*/*/pid"), *root.glob("*/*/*/steps/*.pid")):
        words = note.read_text().split()
        if len(words) == 2:
            found.add((int(words[0]), words[1]))
    return found


def _lives(process: _Process) -> bool:
    return bool(process[1]) and born_at(str(process[0])) == process[1]


def _ended(processes: set[_Process], *, number: int, seconds: float) -> bool:
    for process in processes:
        if number and _lives(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process[0], number)
    give_up = time.monotonic() + seconds
    while any(_lives(process) for process in processes):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


def _clear_sockets(target: LocalTarget) -> None:
    sockets = target.folders.sockets()
    for file in sockets.glob("*.sock"):
        file.unlink(missing_ok=True)
    if sockets != target.folders.own:
        with contextlib.suppress(OSError):
            sockets.rmdir()
