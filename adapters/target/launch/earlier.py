"""What an earlier start of the same program left running."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

_GRACE = 4


def end_earlier(note: Path) -> None:
    """A supervisor that was killed leaves its programs running; the next start of one ends what is left of it."""
    try:
        pid, born = note.read_text().split()
        handle = os.pidfd_open(int(pid))
    except (OSError, ValueError):
        pid = born = ""
    if pid and born_at(pid) == born:
        for number, seconds in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, 5)):
            signal.pidfd_send_signal(handle, number)
            give_up = time.monotonic() + seconds
            while born_at(pid) == born and time.monotonic() < give_up:
                time.sleep(0.05)
            if born_at(pid) != born:
                break
    note.write_text(f"{os.getpid()} {born_at(str(os.getpid()))}")


def born_at(pid: str) -> str:
    """When a process started, in clock ticks since boot; "" when it is gone, or only waits to be buried."""
    try:
        fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
