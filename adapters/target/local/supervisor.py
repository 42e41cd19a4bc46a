"""supervisord: started apart from us, spoken to over its unix socket, one ini file per program."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import time
import xmlrpc.client
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.target.local.folders import Folders, log_end, write
from adapters.target.local.machine import HOST_PATH, LAUNCH, Machine
from domain.errors import TargetMissing, TargetUnavailable

UP = ("STARTING", "RUNNING", "BACKOFF")
_BAD_NAME, _ALREADY_STARTED, _NOT_RUNNING, _ALREADY_ADDED = 10, 60, 70, 90
_CONFIG = """[supervisord]
nodaemon=false
logfile=.supervisor/logs/supervisord.log
logfile_maxbytes=1MB
logfile_backups=1
pidfile=.supervisor/supervisord.pid
childlogdir=.supervisor/logs
umask=077
{user}
[unix_http_server]
file={socket}
chmod=0600
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[include]
files = programs/*.ini
"""
_PROGRAM = """[program:{name}]
command={command}
environment=PYTHONPATH=".supervisor"
autostart={lasting}
autorestart={lasting}
startsecs={settles}
startretries={retries}
stopsignal={signal}
stopwaitsecs={grace}
stopasgroup=false
killasgroup=true
redirect_stderr=true
stdout_logfile=.supervisor/logs/{name}.log
stdout_logfile_maxbytes=1MB
stdout_logfile_backups=1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """``arguments`` are the launcher's. One that is ``lasting`` is started again whenever it ends; one that ends within
    ``settles`` seconds of its start ``retries`` times more stays dead."""

    name: str
    arguments: tuple[str, ...]
    lasting: bool = True
    settles: int = 5
    retries: int = 2
    signal: str = "TERM"
    grace: int = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """``state`` is supervisord's word; ``pid`` is 0 when it does not run; ``seconds`` since its start."""

    name: str
    state: str
    pid: int
    seconds: float


class Supervisor:
    """One per target folder. All raise TargetUnavailable when it does not answer."""

    def __init__(self, folders: Folders, machine: Machine) -> None:
        self._folders = folders
        self.machine = machine

    def pid(self) -> int:
        """0 when it does not run."""
        try:
            return int(self._call("getPID"))
        except TargetUnavailable:
            return 0

    def ensure(self) -> None:
        """Start it, and with it all programs that it had, unless it runs. Raises TargetMissing."""
        if self.pid():
            return
        lacking = self.machine.missing()
        if lacking:
            raise TargetMissing("; ".join(lacking.values()))
        with self._folders.locked("supervisord"):
            if not self.pid():
                self._start()

    def keep(self, program: Program) -> None:
        """Have ``program`` run; one that is there already stays, and is started when it has ended."""
        self.ensure()
        ini = self._folders.own / "programs" / f"{program.name}.ini"
        text = self._text(program)
        with self._folders.locked("programs"):
            known = self.look(program.name)
            if known and ini.exists() and ini.read_text() == text:
                if known.state not in UP:
                    self._call("startProcess", program.name, False, accept=(_ALREADY_STARTED,))
                return
            if known:
                self._stop(program.name)
            write(ini, text)
            self._call("reloadConfig")
            self._call("addProcessGroup", program.name, accept=(_ALREADY_ADDED,))
            if not program.lasting:
                self._call("startProcess", program.name, False, accept=(_ALREADY_STARTED,))

    def drop(self, name: str) -> None:
        """Stop a program and forget it, and its log; nothing there is success."""
        self.ensure()
        if self.look(name):
            self._stop(name)
        with self._folders.locked("programs"):
            (self._folders.own / "programs" / f"{name}.ini").unlink(missing_ok=True)
            self._call("reloadConfig")
        for log in (self.log(name), self.log(name).with_suffix(".log.1")):
            log.unlink(missing_ok=True)

    def look(self, name: str) -> Running | None:
        """How a program is; None when there is none of that name."""
        return self.all().get(name)

    def all(self) -> dict[str, Running]:
        """Every program by its name."""
        return {
            each["name"]: Running(
                name=each["name"], state=each["statename"], pid=each["pid"], seconds=each["now"] - each["start"]
            )
            for each in self._call("getAllProcessInfo")
        }

    def log(self, name: str) -> Path:
        """What a program printed."""
        return self._folders.own / "logs" / f"{name}.log"

    def shut_down(self) -> None:
        """Ask it to end with all its programs; it takes a while."""
        with contextlib.suppress(TargetUnavailable):
            self._call("shutdown")

    def _stop(self, name: str) -> None:
        """Returns when it has ended."""
        self._call("stopProcess", name, True, accept=(_NOT_RUNNING, _BAD_NAME))
        self._call("removeProcessGroup", name, accept=(_BAD_NAME,))

    def _text(self, program: Program) -> str:
        command = [self.machine.program("python3"), "-s", "-S", "-B", "-m", "launch", *program.arguments]
        return _PROGRAM.format(
            name=program.name,
            command=" ".join(command),
            lasting=str(program.lasting).lower(),
            settles=program.settles,
            retries=program.retries,
            signal=program.signal,
            grace=program.grace,
        )

    def _start(self) -> None:
        """It makes itself a daemon: in a session of its own, a child of nobody here."""
        folders = self._folders
        shutil.copytree(
            LAUNCH, folders.own / "launch", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        sockets = folders.sockets(make=True)
        file = sockets / "supervisord.sock"
        text = _CONFIG.format(socket=str(file).replace("%", "%%"), user="user=root" if os.geteuid() == 0 else "")
        write(folders.own / "supervisord.ini", text)
        try:
            started = subprocess.run(
                [*self.machine.supervisord, "-c", ".supervisor/supervisord.ini"],
                cwd=folders.root,
                env={"PATH": HOST_PATH, "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=30,
            )
        except subprocess.TimeoutExpired as error:
            raise TargetUnavailable("supervisord did not start within 30 seconds") from error
        give_up = time.monotonic() + 10
        while started.returncode == 0 and not self.pid() and time.monotonic() < give_up:
            time.sleep(0.02)
        if not self.pid():
            said = (started.stderr + started.stdout).strip() or log_end(folders.own / "logs" / "supervisord.log")
            raise TargetUnavailable(f"supervisord does not start: {(said.splitlines() or ['no reason given'])[-1]}")

    def _call(self, method: str, *arguments: Any, accept: tuple[int, ...] = ()) -> Any:
        """``accept`` are the faults that say that it is as wanted already."""
        proxy = xmlrpc.client.ServerProxy("http://local", transport=_Unix(self._folders))
        try:
            return getattr(proxy.supervisor, method)(*arguments)
        except xmlrpc.client.Fault as fault:
            if fault.faultCode in accept:
                return None
            raise TargetUnavailable(f"supervisord refuses {method}: {fault.faultString}") from fault
        except (OSError, http.client.HTTPException, xmlrpc.client.Error) as error:
            raise TargetUnavailable(f"supervisord does not answer: {error}") from error
        finally:
            proxy("close")()


class _Unix(xmlrpc.client.Transport):
    def __init__(self, folders: Folders) -> None:
        super().__init__()
        self._file = folders.sockets() / "supervisord.sock"

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        connection = _Connection(str(self._file))
        self._connection = host, connection  # closed with the transport
        return connection


class _Connection(http.client.HTTPConnection):
    def __init__(self, file: str) -> None:
        super().__init__("localhost", timeout=30)
        self._file = file

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._file)
        except OSError:
            self.close()
            raise
