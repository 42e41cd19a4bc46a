"""Trees that a run has left: measured and removed without following anything in them."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 512


def size_of(tree: Path) -> int:
    """Bytes on disk; a file with several names counts once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for found in _stats(tree):
        name = (found.st_dev, found.st_ino)
        if name not in seen:
            seen.add(name)
            total += found.st_blocks * _BLOCK
    return total


def remove_tree(tree: Path) -> None:
    """Folders that are closed to their owner are opened first. Gone is success. Raises OSError."""
    for folder, names, _ in os.walk(tree):
        for name in names:
            path = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):
                mode = os.lstat(path).st_mode
                if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
                    os.chmod(path, 0o700)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(tree)


def _stats(tree: Path) -> Iterator[os.stat_result]:
    waiting = [os.fspath(tree)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
