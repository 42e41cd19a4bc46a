"""Programs that run beside the demo: each in a process group of its own, ended by pid, never by name."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

Listener = Callable[[str], None]
LISTENING = "0A"
LOOPBACK6 = ("00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
"""As the kernel writes ::1 and ::ffff:127.0.0.1, each four bytes the other way round."""

LAUNCHER = Path(__file__).resolve().parents[2] / "adapters" / "temporal" / "launch.py"


class StageFailure(Exception):
    """The demo cannot go on; the sentence says why."""


class Program:
    """A running program that dies with us, however we die.

    ``hear`` gets every line that it writes on standard error; all of them are kept in ``log``.
    """

    def __init__(
        self, argv: Sequence[str], *, environment: Mapping[str, str], log: Path, hear: Listener | None = None
    ) -> None:
        self.log = log
        self._hear = hear
        log.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), *argv],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(_piped(self._process.stderr),), daemon=True)
        self._reader.start()

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs."""
        return self._process.poll()

    def first_line(self) -> str:
        """The first line of standard output; "" when the program ended without one."""
        return _piped(self._process.stdout).readline().strip()

    def result(self) -> tuple[int, str]:
        """Wait for the end. Returns the exit code and what is left of standard output."""
        with _piped(self._process.stdout) as stream:
            output = stream.read()
        code = self._process.wait()
        self._reader.join(timeout=30)
        return code, output

    def said(self) -> str:
        """The end of what it wrote on standard error, for when it failed."""
        self._reader.join(timeout=1)
        return self.log.read_text(encoding="utf-8", errors="replace")[-2_000:].strip()

    def stop(self, *, grace: float = 25.0) -> None:
        """SIGTERM, ``grace`` seconds or another Ctrl-C, SIGKILL; then whatever is left of its process group."""
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                self._process.wait(grace)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing was left
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(timeout=5)
        _piped(self._process.stdout).close()

    def _read(self, errors: IO[str]) -> None:
        with errors, self.log.open("a", encoding="utf-8") as log:
            for line in errors:
                log.write(line)
                log.flush()
                if self._hear is not None:
                    self._hear(line.rstrip())


def _piped(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise TypeError("the program was not started with pipes")
    return stream


def run(argv: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Run a short command and return its standard output. Raises StageFailure when it fails."""
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=True
        )
    except OSError as error:
        raise StageFailure(f"{argv[0]}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        raise StageFailure(f"`{' '.join(argv)}` fails with {error.returncode}: {error.stderr.strip()}") from error
    return done.stdout


def family(roots: set[int]) -> set[int]:
    """Those processes and all that descend from them."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended meanwhile
    found = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def alive(pid: int) -> bool:
    """Whether it runs: one that ended and was not collected does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def sockets(pids: set[int]) -> set[str]:
    """The inodes of what those processes have open as sockets."""
    found = set()
    for pid in pids:
        try:
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                name = os.readlink(descriptor)
                if name.startswith("socket:["):
                    found.add(name[8:-1])
        except OSError:
            continue  # it ended meanwhile, or is another user's
    return found


def listeners() -> Iterator[tuple[str, int, bool]]:
    """Inode, port, and whether it listens on loopback only."""
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            address, _, port = words[1].partition(":")
            if words[3] == LISTENING:
                local = address in LOOPBACK6 or (name == "tcp" and address.endswith("7F"))
                yield words[9], int(port, 16), local
