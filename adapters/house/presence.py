"""Which processes of ours live in a state folder: each holds the lock of a file of its own, which the kernel frees when
it dies. What is left are the numbers of the dead, and with them what they left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InvalidInput

_FOLDER = "workers"
_DOOR = ".door"
_LOOKS, _LOOK_SECONDS = 100, 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A process that ended without saying so; ``born`` is when it began, seconds since 1970."""

    pid: int
    born: float
    file: Path


@contextlib.contextmanager
def present(state: Path, name: str, *, entering: Callable[[], object]) -> Iterator[None]:
    """Be known as a living ``name`` of this state folder as long as the context is open.

    ``entering`` is called first, and nobody else enters meanwhile: who is not known yet has made nothing yet. Raises
    InvalidInput when another process of the same number is known here: that of another container.
    """
    folder = state / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{name}-{os.getpid()}"
    handle = -1
    try:
        with _locked(folder / _DOOR):
            handle = _held(file)
            os.utime(file)
            entering()
        yield
    finally:
        if handle >= 0:
            file.unlink(missing_ok=True)
            os.close(handle)


def dead(state: Path) -> list[Dead]:
    """Those that were killed."""
    return [found for found, lives in _everybody(state) if not lives]


def living(state: Path) -> set[int]:
    """The process numbers of those that live, ours too."""
    return {found.pid for found, lives in _everybody(state) if lives}


def _held(file: Path) -> int:
    """The file, open, with its lock: whoever looks whether we are dead holds it for a moment, nobody for longer."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(_LOOKS):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        time.sleep(_LOOK_SECONDS)
    os.close(handle)
    raise InvalidInput(
        f"another {file.name} lives with the state folder {file.parents[1]}: "
        "each container needs a state folder of its own"
    )


def _everybody(state: Path) -> Iterator[tuple[Dead, bool]]:
    for file in sorted((state / _FOLDER).glob("*-*")):
        pid = file.name.rpartition("-")[2]
        with contextlib.suppress(FileNotFoundError):  # it ended in order while we looked
            if pid.isdigit():
                yield Dead(pid=int(pid), born=file.stat().st_mtime, file=file), _is_locked(file)


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_locked(file: Path) -> bool:
    handle = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)
