"""A lock on a folder, which ends with the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def held(folder: Path, *, shared: bool) -> Iterator[bool]:
    """Whether the lock is ours as long as the context is open: not when there is no such folder, when it lost its name
    meanwhile, or when somebody holds the other kind (or, for one that is not ``shared``, either)."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        yield False
        return
    try:
        yield _locked(descriptor, shared=shared) and _is_still(descriptor, folder)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, *, shared: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder, follow_symlinks=False))
    except FileNotFoundError:
        return False
