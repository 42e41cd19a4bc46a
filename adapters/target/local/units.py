"""Releases as supervised programs, each in a folder, on a port and under a user of its own."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

from adapters.target.local.folders import CHOOSING, Folders, log_end, program_of, read_said, write_json
from adapters.target.local.loopback import PORTS, Look, free_port, is_connected, is_free, look
from adapters.target.local.machine import user_for
from adapters.target.local.proxy import Proxy
from adapters.target.local.supervisor import UP, Program, Running, Supervisor
from adapters.target.local.unpack import remove_tree, unpack
from domain.errors import DigestMismatch, InvalidInput, KeyConflict, ReleaseMissing
from domain.kpi.probe import Probe
from domain.ports.target import ABSENT, DEAD, HEALTHY, STARTING, UNHEALTHY, Order, Unit, UnitStatus

_RESTART_SECONDS = 30.0


class UnitFolders:
    """The port's ``Units`` without asyncio: every method blocks. ``ports`` are those that units may get."""

    def __init__(self, folders: Folders, supervisor: Supervisor, *, ports: range = PORTS) -> None:
        self._folders = folders
        self._supervisor = supervisor
        self._ports = ports

    def trigger(self, order: Order) -> None:
        """See the port."""
        _check(order)
        unit = order.unit
        with self._folders.locked(lock_of(unit)):
            self._supervisor.ensure()
            known = self._folders.order(unit)
            if known is None:
                self._place(order)
            elif (known["artifact"], known["config"]) != (order.artifact, order.config):
                raise KeyConflict(f"release {unit.release} of {unit.project} is there already with another content")
            self.start(unit)

    def start(self, unit: Unit) -> None:
        """Have a unit run that is there, on another port when somebody took its own while it was down. Raises
        ReleaseMissing, PortTaken."""
        order = self._folders.order(unit)
        if order is None:
            raise ReleaseMissing(f"nothing is left of release {unit.release} of {unit.project}")
        name = program_of(unit)
        known = self._supervisor.look(name)
        down = known is None or known.state == "FATAL"
        if down and not is_free(order["port"]):
            with self._folders.locked(CHOOSING):
                order["port"] = self._free_port()
                write_json(self._folders.unit(unit) / "order.json", order)
        folder = str(self._folders.unit(unit).relative_to(self._folders.root))
        self._supervisor.keep(Program(name=name, arguments=("unit", folder)))

    def poll(self, unit: Unit) -> UnitStatus:
        """See the port."""
        order = self._folders.order(unit)
        if order is None:
            return UnitStatus(state=ABSENT)
        name = program_of(unit)
        running = self._supervisor.look(name)
        answer = look(order["port"], Probe(**order["health"])) if running and running.state in UP else Look(ok=False)
        if answer.release not in (0, unit.release):
            answer = Look(ok=False, sentence=f"release {answer.release} answers on its port")
        state, kind, sentence = _judge(running, answer, read_said(self._folders.unit(unit) / "fault"))
        return UnitStatus(
            state=state,
            url=f"http://127.0.0.1:{order['port']}",
            artifact=order["artifact"],
            config=order["config"],
            kind=kind,
            sentence=sentence,
            log=log_end(self._supervisor.log(name)),
        )

    def is_asked(self, unit: Unit) -> bool:
        """Whether requests are under way to a unit that traffic does not lead to any more."""
        order = self._folders.order(unit)
        return order is not None and not self._is_live(unit) and is_connected(order["port"])

    def remove(self, unit: Unit) -> bool:
        """See the port."""
        folder = self._folders.unit(unit)
        with self._folders.locked(lock_of(unit)):
            if self._is_live(unit):
                raise KeyConflict(f"release {unit.release} of {unit.project} has the traffic of its {unit.environment}")
            name = program_of(unit)
            self._supervisor.ensure()
            for each in self._supervisor.all():
                if each == name or each.startswith(f"{name}.step-"):
                    self._supervisor.drop(each)
            self._supervisor.drop(name)
            left = not remove_tree(_half(folder))
            (folder / "order.json").unlink(missing_ok=True)
            return remove_tree(folder) and not left

    def begin(self, unit: Unit, argv: tuple[str, ...], *, key: str, seconds: float) -> str:
        """Start a command unless it has ended or still runs; return the name of its program."""
        with self._folders.locked(lock_of(unit)):
            steps = self._folders.unit(unit) / "steps"
            if self._folders.order(unit) is None:
                raise ReleaseMissing(f"nothing is left of release {unit.release} of {unit.project}")
            digest = hashlib.sha256(key.encode()).hexdigest()[:16]
            name = f"{program_of(unit)}.step-{digest}"
            if read_said(steps / f"{digest}.ended") is None:
                write_json(steps / f"{digest}.order", {"argv": argv, "seconds": seconds})
                folder = str(self._folders.unit(unit).relative_to(self._folders.root))
                self._supervisor.keep(
                    Program(name=name, arguments=("step", folder, digest), lasting=False, settles=0, retries=0)
                )
            return name

    def ended(self, unit: Unit, name: str) -> UnitStatus | None:
        """How a command ended, and its program forgotten; None while it runs."""
        steps = self._folders.unit(unit) / "steps"
        digest = name.rpartition("-")[2]
        said = read_said(steps / f"{digest}.ended")
        if said is None:
            running = self._supervisor.look(name)
            if running and running.state in UP:
                return None
            said = read_said(steps / f"{digest}.ended") or ("ReleaseDied", "it ended without a word")
        log = self._supervisor.log(name)
        if log.exists():
            log.replace(steps / f"{digest}.log")
        self._supervisor.drop(name)
        kind, sentence = said
        return UnitStatus(
            state=DEAD if kind else HEALTHY, kind=kind, sentence=sentence, log=log_end(steps / f"{digest}.log")
        )

    def _place(self, order: Order) -> None:
        folder = self._folders.unit(order.unit)
        half = _half(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_tree(half)
        remove_tree(folder)  # what is there without an order is the rest of a removal
        try:
            half.mkdir(mode=0o700)
            unpack(order.content, half / "release")
            for name in ("scratch", "steps"):
                (half / name).mkdir(mode=0o700)
            with self._folders.locked(CHOOSING):
                user = user_for(self._folders.root, without=self._taken("uid"))
                if os.geteuid() == 0:
                    os.chown(half / "scratch", user, user)
                write_json(half / "order.json", self._describe(order, user))
                half.rename(folder)
        except BaseException:
            remove_tree(half)
            raise

    def _describe(self, order: Order, user: int) -> dict[str, Any]:
        health = order.health
        return {
            **self._supervisor.machine.cell(uid=user),
            "release": order.unit.release,
            "port": self._free_port(),
            "artifact": order.artifact,
            "config": order.config,
            "run": order.run,
            "environment": dict(order.environment),
            "health": {"path": health.path, "status": health.status, "contains": health.contains},
        }

    def _free_port(self) -> int:
        sites = {Proxy(self._folders, self._supervisor, site).port for site in self._folders.sites()}
        return free_port(self._folders.root, without=self._taken("port") | sites, ports=self._ports)

    def _taken(self, what: str) -> set[int]:
        orders = (self._folders.order(unit) for unit in self._folders.units())
        return {int(order[what]) for order in orders if order}

    def _is_live(self, unit: Unit) -> bool:
        proxy = Proxy(self._folders, self._supervisor, (unit.project, unit.environment))
        return unit.release in (proxy.leads_to()[0], proxy.written())


def lock_of(unit: Unit) -> str:
    """One change of a site and of its units at a time."""
    return f"{unit.project}.{unit.environment}"


def settled(units: UnitFolders, unit: Unit, *, seconds: float) -> UnitStatus:
    """The unit's status as soon as it is healthy or dead, or as it is after ``seconds``."""
    give_up = time.monotonic() + seconds
    while True:
        status = units.poll(unit)
        if status.state in (HEALTHY, DEAD, ABSENT) or time.monotonic() > give_up:
            return status
        time.sleep(0.05)


def _half(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.half")


def _check(order: Order) -> None:
    if hashlib.sha256(order.content).hexdigest() != order.artifact:
        raise DigestMismatch(f"the artefact is not the one that is named {order.artifact[:12]}")
    words = [*order.run, *order.environment, *order.environment.values()]
    if not order.run or any("\0" in word for word in words) or any(not n or "=" in n for n in order.environment):
        raise InvalidInput("the command of this release, or its environment, is one that no process can have")


def _judge(running: Running | None, answer: Look, said: tuple[str, str] | None) -> tuple[str, str, str]:
    """State, kind, sentence."""
    kind, sentence = said or ("ReleaseDied", "its process ended")
    if running is None or running.state in ("FATAL", "UNKNOWN"):
        return DEAD, kind, sentence
    if answer.ok:
        return HEALTHY, "", ""
    if said and running.state != "RUNNING":  # its relay may answer for it meanwhile
        return UNHEALTHY if answer.release else STARTING, kind, f"{sentence}; it is started again"
    if answer.release:
        return UNHEALTHY, "ReleaseSilent", answer.sentence
    if running.state not in ("STARTING", "RUNNING"):
        return STARTING, kind, f"{sentence}; it is started again"
    young = running.seconds < _RESTART_SECONDS
    return STARTING if young else UNHEALTHY, "ReleaseSilent", answer.sentence
