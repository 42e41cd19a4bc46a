"""Ports and requests on 127.0.0.1."""

from __future__ import annotations

import http.client
import os
import socket
import sys
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from domain.errors import PortTaken
from domain.kpi.probe import Probe

# Below those that the kernel gives to outgoing connections: a unit that restarts has to find its port free.
PORTS = range(20_000, 32_000)
_MOST_BYTES = 1_000_000
_ESTABLISHED = "01"  # as /proc/net/tcp tells it


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One answer: ``status`` and ``release`` are 0 when nothing, or no release, answered."""

    ok: bool
    status: int = 0
    release: int = 0
    sentence: str = ""


def is_free(port: int) -> bool:
    """Whether nobody listens there now."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def is_connected(port: int) -> bool:
    """Whether somebody is connected to who listens there. False where the system does not tell."""
    here = f"{int.from_bytes(socket.inet_aton('127.0.0.1'), sys.byteorder):08X}:{port:04X}"
    try:
        rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return False
    return any((local, state) == (here, _ESTABLISHED) for _, local, _, state, *_ in map(str.split, rows))


def free_port(root: Path, *, without: Collection[int], ports: range = PORTS) -> int:
    """A port that is free and not one ``without``. Each folder starts to look elsewhere. Raises PortTaken."""
    start = zlib.crc32(os.fsencode(root)) % len(ports)
    for number in range(len(ports)):
        port = ports[(start + number) % len(ports)]
        if port not in without and is_free(port):
            return port
    raise PortTaken(f"no port from {ports[0]} to {ports[-1]} is free")


def look(port: int, probe: Probe, *, seconds: float = 3.0) -> Look:
    """Ask once. Whatever the service does is an answer; nothing is raised."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", probe.path, headers={"Connection": "close"})
        answer = connection.getresponse()
        body = answer.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Look(ok=False, sentence=f"no answer: {error or type(error).__name__}")
    finally:
        connection.close()
    said = answer.getheader("X-Mendwork-Release", "0")
    release = int(said) if said.isdecimal() else 0
    if answer.status != probe.status:
        sentence = f"it answers {answer.status} instead of {probe.status}"
        return Look(ok=False, status=answer.status, release=release, sentence=sentence)
    if probe.contains and probe.contains.encode() not in body:
        sentence = "its answer does not contain what it should"
        return Look(ok=False, status=answer.status, release=release, sentence=sentence)
    return Look(ok=True, status=answer.status, release=release)
