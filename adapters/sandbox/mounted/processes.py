"""Processes of a run that nothing isolates: found by the folder that their environment names, and killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from domain.errors import ResourceShort

_GRACE = 10.0
_PROC = Path("/proc/self/environ")


def end_all(mark: str, *, group: int = 0) -> None:
    """Kill the process group, and everything of ours whose environment holds ``mark``, until nothing is left.

    A process that has left the group and forgotten its environment is not found: that takes isolation, and there is
    none. Raises ResourceShort when something is started faster than it is killed.
    """
    give_up = time.monotonic() + _GRACE
    if group:
        _kill_group(group)
    while found := list(_marked(mark.encode())):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > give_up:
            raise ResourceShort(f"{len(found)} processes of a run in {mark} do not end")
        time.sleep(0.01)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _marked(mark: bytes) -> Iterator[int]:
    """By /proc where there is one, else by what ``ps`` tells of the environments of our processes."""
    yield from _in_proc(mark) if _PROC.exists() else _in_ps(mark)


def _in_proc(mark: bytes) -> Iterator[int]:
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # ended meanwhile, or another user's
            if mark in Path("/proc", entry, "environ").read_bytes():
                yield int(entry)


def _in_ps(mark: bytes) -> Iterator[int]:
    listed = subprocess.run(["ps", "axeww", "-o", "pid=,command="], capture_output=True, check=False, timeout=_GRACE)
    for line in listed.stdout.splitlines():
        pid, _, command = line.strip().partition(b" ")
        if mark in command and pid.isdigit() and int(pid) != os.getpid():
            yield int(pid)
