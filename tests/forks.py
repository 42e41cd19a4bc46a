"""Mendwork's commands without their start: each is forked from one process that has imported what they need already.

A command of the end-to-end tests is a process of its own with its own arguments, environment, folder and streams, as
in real life; only the 0.5 s of processor time that every import of the same modules costs is paid once. That a command
starts by itself, and fast, is shown where commands are started by ``subprocess`` (and by ``benchmarks.start``).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

PRELOADED = (
    *("starter", "adapters.cli.app", "adapters.cli.session", "adapters.cli.build", "adapters.cli.status"),
    *("adapters.store", "adapters.store.sql", "sqlalchemy.dialects.sqlite.aiosqlite", "temporalio.client"),
    *("adapters.temporal.connect", "adapters.cli.follow", "adapters.cli.show", "rich.console", "rich.live"),
)
_STARTING = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a command ended, with what it printed."""

    code: int
    out: str
    err: str


class Hung(AssertionError):
    """A command that did not end in its time: it was aborted, and where it hung is in its ``err``."""


def run_command(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], stdin: str = "", seconds: float = 90.0
) -> Ran:
    """``mendwork ARGUMENTS`` to its end. Raises Hung."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        order = {"argv": list(arguments), "cwd": str(folder), "environment": dict(environment)}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.connect(nest("tests.forks"))
            socket.send_fds(line, [b"!"], [stream.fileno() for stream in (given, out, err)])
            line.sendall(json.dumps(order).encode() + b"\n")
            with line.makefile("r") as told:
                code = _ended(line, told, seconds)
        said = [_text(stream) for stream in (out, err)]
    if code is None:
        raise Hung(f"mendwork {arguments} did not end within {seconds} s\n{said[0]}\n{said[1]}")
    return Ran(code=code, out=said[0], err=said[1])


def _ended(line: socket.socket, told: IO[str], seconds: float) -> int | None:
    """The exit code; None for a command that had to be aborted."""
    pid = int(told.readline())
    line.settimeout(seconds)
    try:
        return int(told.readline())
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGABRT)
        time.sleep(1)  # it writes its stacks
        return None


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def nest(module: str) -> str:
    """The address of the process that forks, which runs ``module`` (see ``listen``); one for each process of the tests,
    until that ends."""
    with _STARTING:
        return _nest(module)


@functools.cache
def _nest(module: str) -> str:
    folder = tempfile.mkdtemp(prefix="mendwork-forks-")
    address = f"{folder}/line"
    ready, tell = os.pipe()
    argv = [sys.executable, "-P", "-m", module, address, str(tell)]
    root = str(Path(__file__).resolve().parents[1])
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "PYTHONPATH": root}
    process = subprocess.Popen(argv, cwd=root, env=environment, pass_fds=[tell], stdin=subprocess.DEVNULL)
    atexit.register(_leave, process, folder)
    os.close(tell)
    with os.fdopen(ready) as listening:
        assert listening.readline() == "ready\n", "the process that forks commands did not start"
    return address


def _leave(process: subprocess.Popen[bytes], folder: str) -> None:
    process.kill()
    process.wait()
    for path in Path(folder).iterdir():
        path.unlink()
    Path(folder).rmdir()


def listen(
    address: str, tell: int, *, warm: Callable[[], None], look_after: Callable[[socket.socket], NoReturn]
) -> NoReturn:
    """Be the process that forks, for ever: import what ``warm`` does, and fork who will ``look_after`` each caller."""
    warm()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(address)
        listening.listen(64)
        os.write(tell, b"ready\n")
        os.close(tell)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who looks after a command reports it; nobody waits for those
        while True:
            line, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                look_after(line)
            line.close()


def order_of(line: socket.socket, streams: int) -> tuple[Mapping[str, Any], list[int]]:
    """What a caller asks for, and the descriptors that it handed over."""
    _, descriptors, _, _ = socket.recv_fds(line, 1, streams)
    with line.makefile("r") as told:
        order: Mapping[str, Any] = json.loads(told.readline())
    return order, descriptors


def become(order: Mapping[str, Any], streams: Sequence[int], program: Callable[[], int | None]) -> NoReturn:
    """Take folder, environment and ``streams`` (0, 1, 2) of the order, and end as ``program`` does."""
    import faulthandler
    import random

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    faulthandler.enable()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    random.seed()
    code = 1
    try:
        code = program() or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _warm() -> None:
    for name in PRELOADED:
        importlib.import_module(name)


def _look_after(line: socket.socket) -> NoReturn:
    """In a process of its own: make one command, tell its number at once and its exit code at its end."""
    order, streams = order_of(line, 3)
    pid = os.fork()
    if pid == 0:
        line.close()
        sys.argv = ["mendwork", *order["argv"]]
        become(order, streams, lambda: importlib.import_module("starter").main())
    with contextlib.suppress(BrokenPipeError):
        line.sendall(f"{pid}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        line.sendall(f"{code}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    listen(sys.argv[1], int(sys.argv[2]), warm=_warm, look_after=_look_after)
