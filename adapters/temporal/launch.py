"""Starts a program that dies with its parent: ``python -I -S launch.py PARENT-PID PROGRAM ARGUMENT…``.

Where the kernel has no parent-death signal the program simply starts; the lock on the state folder still keeps a
second set from running beside it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Replaces this process; returns only when the program cannot be started."""
    parent, command = int(argv[1]), argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the signal was asked for
            return 1
    try:
        os.execvp(command[0], command)  # noqa: S606 - argv only; this is the point of the launcher
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv))
