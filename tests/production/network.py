"""Hosts on one machine: network namespaces that one bridge joins, each with an address of its own and no way out.

Nothing of it is in the machine's own network, so several runs beside each other may use the same addresses.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_OURS = re.compile(r"mw-(\d+)-[0-9a-f]{4}-\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A network namespace. ``address`` is where the others reach it."""

    namespace: str
    address: str

    def inside(self, *argv: object) -> list[str]:
        """``argv`` as it runs on this host, with the pid of whoever starts it; by root. (`ip netns exec` would mount
        another /sys, without control groups.)"""
        return ["nsenter", f"--net=/run/netns/{self.namespace}", *map(str, argv)]


@contextlib.contextmanager
def network(*names: str) -> Iterator[dict[str, Host]]:
    """Hosts by name: 10.77.0.1, 10.77.0.2 and so on, gone at the end with all that runs on them ended before."""
    assert os.geteuid() == 0, "hosts of their own need root: network namespaces"
    _sweep()
    stem = f"mw-{os.getpid()}-{secrets.token_hex(2)}"
    hosts = {name: Host(namespace=f"{stem}-{name}", address=f"10.77.0.{n}") for n, name in enumerate(names, 1)}
    first, *others = hosts.values()
    try:
        for host in hosts.values():
            _ip("netns", "add", host.namespace)
            _ip("-n", host.namespace, "link", "set", "lo", "up")
        _ip("-n", first.namespace, "link", "add", "br0", "type", "bridge")
        _ip("-n", first.namespace, "addr", "add", f"{first.address}/24", "dev", "br0")
        _ip("-n", first.namespace, "link", "set", "br0", "up")
        for number, host in enumerate(others):
            _join(first, host, port=f"port{number}")
        yield hosts
    finally:
        for host in hosts.values():
            _ip("netns", "del", host.namespace, check=False)


def _join(hub: Host, host: Host, *, port: str) -> None:
    pair = ("type", "veth", "peer", "name", "eth0", "netns", host.namespace)
    _ip("link", "add", port, "netns", hub.namespace, *pair)
    _ip("-n", hub.namespace, "link", "set", port, "master", "br0", "up")
    _ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")
    _ip("-n", host.namespace, "link", "set", "eth0", "up")


def _sweep() -> None:
    """What a run that was killed left."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        found = _OURS.fullmatch(line.split(" ")[0])
        if found and not os.path.exists(f"/proc/{found[1]}"):
            _ip("netns", "del", found[0], check=False)


def _ip(*words: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, f"ip {' '.join(words)}: {done.stderr}"


def hidden(folders: Sequence[object], *argv: object) -> list[str]:
    """``argv`` as it runs where each of ``folders`` is empty: another machine's disk cannot be seen."""
    script = 'for hide in $1; do mount -t tmpfs none "$hide"; done; shift; exec "$@"'
    listed = " ".join(map(str, folders))
    return ["unshare", "--mount", "--propagation", "private", "sh", "-euc", script, "sh", listed, *map(str, argv)]
