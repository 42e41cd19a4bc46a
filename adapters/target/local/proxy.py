"""A site's haproxy. Where it leads is one line of a map, ``live <release>:<port>``: changed in the file first, so that
a restart leads there too, and then at once in the running process, without a reload."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import time
from pathlib import Path

from adapters.target.local.folders import CHOOSING, Folders, log_end, write
from adapters.target.local.loopback import free_port, is_free
from adapters.target.local.supervisor import Program, Supervisor
from domain.errors import PortTaken, TargetUnavailable

NOWHERE = "0:0"
_PROXY_UID = 61_183
_SECONDS = 10.0
_CONFIG = """global
  maxconn 4000
  nbthread 1
  noreuseport
  no strict-limits
  hard-stop-after 10s
  stats socket unix@{socket} mode 600 level admin
{user}
defaults
  mode http
  option http-server-close
  option idle-close-on-response
  retries 0
  timeout client 60s
  timeout http-request 10s
  timeout http-keep-alive 60s
  timeout connect 5s
  timeout server 60s
  timeout tunnel 1h
frontend site
  bind 127.0.0.1:{port}
  http-request set-var(txn.port) str(live),map(live.map),field(2,:)
  http-request deny deny_status 503 if {{ var(txn.port) -m str 0 }}
  default_backend unit
backend unit
  http-request set-dst str(127.0.0.1)
  http-request set-dst-port var(txn.port)
  server unit 0.0.0.0:0
"""


class Proxy:
    """Of one site. TargetUnavailable when its programs do not answer."""

    def __init__(self, folders: Folders, supervisor: Supervisor, site: tuple[str, str]) -> None:
        self._folders = folders
        self._supervisor = supervisor
        self._folder = folders.site(*site)
        self.name = f"{site[0]}.{site[1]}.proxy"

    @property
    def port(self) -> int:
        """Where it listens; 0: it never did."""
        try:
            found = re.search(r"bind 127\.0\.0\.1:(\d+)", (self._folder / "haproxy.cfg").read_text())
        except FileNotFoundError:
            return 0
        return int(found[1]) if found else 0

    def leads_to(self) -> tuple[int, int]:
        """Release and port, of the running proxy; of its file when it does not run; zeros for nowhere."""
        try:
            said = self._say("show map live.map").partition(" live ")[2].split()
            value = said[0] if said else NOWHERE
        except OSError:
            value = self._written()
        release, _, port = value.partition(":")
        return int(release), int(port)

    def written(self) -> int:
        """The release that a restart of the proxy would lead to."""
        return int(self._written().partition(":")[0])

    def up(self, port: int) -> None:
        """Have it run and listen on ``port`` (0: the one that it had, or a free one). Raises PortTaken; then nothing
        has changed."""
        wanted = port or self.port
        if wanted != self.port or not self._runs():
            if wanted and not is_free(wanted) and not (wanted == self.port and self._runs()):
                raise PortTaken(f"port {wanted} of this site is held by another program")
            self._folder.mkdir(parents=True, exist_ok=True)
            if not (self._folder / "live.map").exists():
                write(self._folder / "live.map", f"live {NOWHERE}\n")
            if wanted != self.port:
                self._supervisor.drop(self.name)
            with self._folders.locked(CHOOSING):
                wanted = wanted or free_port(self._folder, without=self._ports_of_others())
                write(self._folder / "haproxy.cfg", self._config(wanted))
        haproxy = self._supervisor.machine.program("haproxy")
        folder = str(self._folder.relative_to(self._folders.root))
        self._supervisor.keep(
            Program(
                name=self.name, arguments=("proxy", folder, haproxy), settles=1, retries=20, signal="USR1", grace=12
            )
        )
        self._await_up()

    def lead(self, release: int, port: int) -> None:
        """At once, and for every start to come. Requests under way end where they are."""
        value = f"{release}:{port}"
        write(self._folder / "live.map", f"live {value}\n")
        give_up = time.monotonic() + _SECONDS
        while self.leads_to() != (release, port) or not self._runs():
            if time.monotonic() > give_up:
                raise TargetUnavailable("the proxy does not take its new direction")
            try:
                self._say(f"set map live.map live {value}")
            except OSError:  # it starts just now, and will read the file
                time.sleep(0.05)

    def close(self) -> None:
        """Stop listening; the port is kept for the next time."""
        if (self._folder / "live.map").exists():
            write(self._folder / "live.map", f"live {NOWHERE}\n")
        self._supervisor.drop(self.name)

    def _written(self) -> str:
        try:
            words = (self._folder / "live.map").read_text().split()
        except FileNotFoundError:
            return NOWHERE
        return words[1] if len(words) == 2 else NOWHERE

    def _config(self, port: int) -> str:
        user = f"  uid {_PROXY_UID}\n  gid {_PROXY_UID}" if os.geteuid() == 0 else ""
        return _CONFIG.format(socket=self._socket(make=True), port=port, user=user)

    def _socket(self, *, make: bool = False) -> Path:
        digest = hashlib.sha256(self.name.encode()).hexdigest()[:8]
        return self._folders.sockets(make=make) / f"{digest}.sock"

    def _ports_of_others(self) -> set[int]:
        orders = (self._folders.order(unit) for unit in self._folders.units())
        sites = (Proxy(self._folders, self._supervisor, site).port for site in self._folders.sites())
        return {int(order["port"]) for order in orders if order} | set(sites)

    def _runs(self) -> bool:
        try:
            return "Uptime_sec" in self._say("show info")
        except OSError:
            return False

    def _await_up(self) -> None:
        give_up = time.monotonic() + _SECONDS
        while not self._runs():
            if time.monotonic() > give_up:
                said = log_end(self._supervisor.log(self.name)).strip().splitlines()
                self._supervisor.drop(self.name)
                taken = any("cannot bind" in line for line in said)
                sentence = f"the proxy of this site does not start: {said[-1] if said else 'no reason given'}"
                raise (PortTaken if taken else TargetUnavailable)(sentence)
            time.sleep(0.02)

    def _say(self, command: str) -> str:
        """A command for the running proxy, and its answer. Raises OSError when none runs."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(5)
            connection.connect(str(self._socket()))
            connection.sendall(f"{command}\n".encode())
            answer = b""
            while more := connection.recv(65536):
                answer += more
        return answer.decode()
