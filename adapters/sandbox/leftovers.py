"""What an earlier run of the same label left running."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from pathlib import Path

_GRACE = 10.0


def end_leftovers(name: str) -> None:
    """Kill every bubblewrap on this machine that was started under this host name; its whole run dies with it."""
    mark = b"\0--hostname\0" + name.encode() + b"\0"
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # ended while we look, or not ours to end
            command = (entry / "cmdline").read_bytes()
            if command.startswith(b"bwrap\0") and mark in command:
                _end(int(entry.name))


def _end(pid: int) -> None:
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        select.select([handle], [], [], _GRACE)
    finally:
        os.close(handle)
