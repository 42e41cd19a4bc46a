"""Child processes that cannot outlive us, write to their own log, and are ended by pid."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

_LAUNCHER = Path(__file__).with_name("launch.py")
_KEEP_BYTES = 10_000_000


async def start(argv: Sequence[str | Path], *, environment: Mapping[str, str], log: Path, folder: Path) -> Process:
    """Start ``argv`` in ``folder``, in a session of its own: Ctrl-C in the terminal reaches us, not the child."""
    with _open_log(log) as output:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", _LAUNCHER, str(os.getpid()), *argv),
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )


def _open_log(log: Path) -> BinaryIO:
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _KEEP_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.open("ab")


async def stop(process: Process, *, grace: float) -> None:
    """SIGTERM, ``grace`` seconds to end well, then SIGKILL; whatever it left in its process group goes too."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), grace)
        except TimeoutError:
            process.kill()
    await reap(process)


async def reap(process: Process) -> int:
    """Wait for the end, then kill what is left of its process group. Returns the exit code."""
    code = await process.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing was left, or macOS saying so
        os.killpg(process.pid, signal.SIGKILL)
    return code


def tail(log: Path, *, start: int = 0, limit: int = 4_000) -> str:
    """The end of ``log`` from byte ``start`` on, at most ``limit`` bytes of it."""
    if not log.exists():
        return ""
    with log.open("rb") as source:
        source.seek(max(start, log.stat().st_size - limit))
        return source.read(limit).decode(errors="replace").strip()
