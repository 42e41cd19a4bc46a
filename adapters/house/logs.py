"""The logs of our own processes, which append to them as long as they live."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from domain.ports.kept.keeping import Remains

MOST_BYTES = 16 * 1024 * 1024
KEPT_BYTES = 4 * 1024 * 1024


def trim(folder: Path, *, cut: bool) -> Remains:
    """How many logs of ``folder`` are longer than MOST_BYTES, and what cutting them frees. ``cut``: their last lines go
    to ``NAME.log.1``, and they begin anew. Raises OSError.

    Who writes keeps its file open in append mode, so it is emptied in place; a line that comes in that very moment may
    be lost.
    """
    count = size = 0
    for log in sorted(folder.glob("*.log")):
        there = log.lstat()
        if stat.S_ISREG(there.st_mode) and there.st_size > MOST_BYTES:
            count, size = count + 1, size + there.st_size - KEPT_BYTES
            if cut:
                _cut(log)
    return Remains(count=count, bytes=size)


def _cut(log: Path) -> None:
    kept, new = log.with_name(f"{log.name}.1"), log.with_name(f".{log.name}.new")
    with os.fdopen(os.open(log, os.O_RDWR | os.O_NOFOLLOW), "rb+") as file:
        file.seek(-KEPT_BYTES, os.SEEK_END)
        file.readline()
        new.write_bytes(file.read())
        new.chmod(0o600)
        new.replace(kept)
        file.truncate(0)
