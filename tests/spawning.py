"""Programs that a test runs: to their end, or beside it until they are ended, whatever became of the test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


@contextlib.contextmanager
def spawned(
    argv: Sequence[str | Path],
    *,
    log: Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    grace: float = 30.0,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own group in ``folder``, with what it prints in a new ``log``; ended afterwards, see ``end``.
    Without ``environment`` it has the test's."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process, grace=grace)


def printed(
    argv: Sequence[str | Path], *, environment: Mapping[str, str], folder: Path | None = None, stdin: str = ""
) -> str:
    """What a command prints on stdout; it has to end well, within five minutes."""
    done = subprocess.run(
        argv, cwd=folder, env=environment, input=stdin, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{argv}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def end(process: subprocess.Popen[bytes], *, grace: float = 30.0) -> None:
    """SIGTERM; and for one that leads a group SIGKILL to all of it, should it be there after ``grace`` seconds."""
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
