"""Looking at processes and sockets from outside."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path


def gone(pid: int) -> bool:
    """Whether the process has ended; a zombie has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def listening(pid: int) -> set[tuple[str, int]]:
    """Addresses and ports on which the process listens, IPv4 and IPv6, from the kernel's own tables."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        target = str(link.readlink()) if link.is_symlink() else ""
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(_address(fields[1]))
    return found


def _address(field: str) -> tuple[str, int]:
    address, port = field.split(":")
    words = bytes.fromhex(address)
    raw = b"".join(struct.pack(">I", struct.unpack_from("=I", words, at)[0]) for at in range(0, len(words), 4))
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw), int(port, 16)


def argv(pid: int) -> list[str]:
    """What the process was started with."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")


def environment_of(pid: int) -> dict[str, str]:
    """What the process was given when it started."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


async def eventually(condition: Callable[[], bool], *, within: float = 60.0) -> None:
    """Wait until ``condition`` holds; fails after ``within`` seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within} s"
        await asyncio.sleep(0.02)
