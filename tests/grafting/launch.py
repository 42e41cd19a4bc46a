"""Stands for a worker that the nest forks: ``launch.py ADDRESS KIND CLASS``. It runs without site-packages."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys


def main() -> None:
    """Hand over folder, environment and streams; then be signalled, and end, as the worker."""
    address, kind, name = sys.argv[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(address)
        socket.send_fds(line, [b"!"], [1, 2])
        order = {"kind": kind, "name": name, "cwd": os.getcwd(), "environment": dict(os.environ)}
        line.sendall(json.dumps(order).encode() + b"\n")
        with line.makefile("r") as told:
            _forward(int(told.readline()))
            code = int(told.readline() or 1)
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _forward(pid: int) -> None:
    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended, which is told
            os.kill(pid, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)


if __name__ == "__main__":
    main()
