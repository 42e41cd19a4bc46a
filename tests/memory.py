"""Where the tests write: they kill processes, not machines, and half of their time would be waits for a disk."""

from __future__ import annotations

import os
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 6 * 1024**3


def write_to_memory() -> None:
    """Let pytest make its folders in memory where there is plenty; its PYTEST_DEBUG_TEMPROOT names another place."""
    if _has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def _has_room(folder: Path) -> bool:
    """Whether programs can be run there, and neither it nor the machine's memory is nearly full."""
    try:
        there, told = os.statvfs(folder), Path("/proc/meminfo").read_text()
    except OSError:
        return False
    available = next((int(line.split()[1]) for line in told.splitlines() if line.startswith("MemAvailable:")), 0) * 1024
    free = there.f_bavail * there.f_frsize
    return os.access(folder, os.W_OK) and not there.f_flag & os.ST_NOEXEC and min(free, available) >= ENOUGH_BYTES
