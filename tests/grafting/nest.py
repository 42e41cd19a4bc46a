"""What workers are forked from: every class has been imported in it, and nothing of them runs."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tests.forks import become, listen, order_of


def _warm() -> None:
    mortal, worker = importlib.import_module("tests.chaos.mortal_worker"), importlib.import_module("worker")
    for name in worker.PARTS:
        mortal.warm(name)
    gc.collect()
    gc.freeze()


def _look_after(line: socket.socket) -> NoReturn:
    """In a process of its own: make one worker, kill it when who stands for it is gone, and tell how it ended."""
    order, streams = order_of(line, 2)
    pid = os.fork()
    if pid == 0:
        line.close()
        _be(order, streams)
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(OSError):
        line.sendall(f"{pid}\n".encode())
    end = os.pidfd_open(pid)
    select.select([line.fileno(), end], [], [])  # nothing is ever said on the line: it can only be closed
    with contextlib.suppress(ProcessLookupError):
        if not select.select([end], [], [], 0)[0]:
            os.killpg(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what it left, as a supervisor does
    with contextlib.suppress(OSError):
        line.sendall(f"{code}\n".encode())
    os._exit(0)


def _be(order: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    become(order, (nothing, *streams), lambda: _serve(order["kind"], order["name"]))


def _serve(kind: str, name: str) -> int:
    sys.argv = ["worker", name]
    if kind == "worker":
        importlib.import_module("worker").main()
        return 0
    state = Path(os.environ["MENDWORK_CONFIG"]).parent / ".mendwork"
    kept: int = importlib.import_module("tests.chaos.mortal_worker").keep(name, state)
    return kept


if __name__ == "__main__":
    listen(sys.argv[1], int(sys.argv[2]), warm=_warm, look_after=_look_after)
