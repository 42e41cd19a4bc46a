"""``dev.json`` says where the embedded server and its workers are; ``dev.lock`` lets only one set run in a folder."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from domain.errors import AlreadyRunning

_FILE = "dev.json"
_LOCK = "dev.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class DevState:
    """A running ``mendwork dev``. ``server_pid`` is None and ``ui`` empty when the server is somebody else's."""

    pid: int
    address: str
    namespace: str
    ui: str = ""
    server_pid: int | None = None
    workers: dict[str, int] = field(default_factory=dict)


def write_state(folder: Path, state: DevState) -> None:
    """Replace ``dev.json`` in one step: a reader sees the old or the new one."""
    draft = folder / f"{_FILE}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
    draft.replace(folder / _FILE)


def read_state(folder: Path) -> DevState | None:
    """The ``mendwork dev`` that runs in this folder now; None when there is none, or it was killed."""
    try:
        state = DevState(**json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return state if _alive(state.pid) else None


def seconds_since_start(folder: Path) -> float:
    """How long ago the ``mendwork dev`` of this folder, or one of its workers, was started; infinity without one."""
    if read_state(folder) is None:
        return math.inf
    with contextlib.suppress(FileNotFoundError):  # it has just ended
        return max(0.0, time.time() - (folder / _FILE).stat().st_mtime)
    return math.inf


def clear_state(folder: Path) -> None:
    """Forget ``dev.json``."""
    (folder / _FILE).unlink(missing_ok=True)


@contextlib.contextmanager
def only_instance(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the kernel frees when we die. Raises AlreadyRunning with the holder's pid."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise AlreadyRunning(f"`mendwork dev` already runs in {folder} (pid {holder})") from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
