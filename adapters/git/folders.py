"""Folders of ours that come and go: named by whom they belong to, and removed whatever is in them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from adapters.git.failures import system_refusal
from domain.errors import ResourceShort

_WALK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
_ROUNDS = 1000
_DAY = 86_400.0


def fresh_folder(parent: Path, label: str) -> Path:
    """A new private folder for ``label``; folders of the same label, left by a killed worker, are removed first."""
    stem = f"{re.sub(r'[^A-Za-z0-9_-]+', '-', label)[:60]}-{hashlib.sha256(label.encode()).hexdigest()[:12]}"
    for leftover in _of_label(parent, stem):
        remove_tree(leftover)
    folder = parent / f"{stem}-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    return folder


def _of_label(parent: Path, stem: str) -> list[Path]:
    mine = re.compile(re.escape(stem) + r"-[0-9a-f]{8}")
    return [path for path in parent.iterdir() if mine.fullmatch(path.name)]


@contextlib.contextmanager
def private_index(parent: Path) -> Iterator[Path]:
    """A path for one git index that nobody else knows; those of killed workers go after a day."""
    for old in parent.glob("index-*"):
        with contextlib.suppress(FileNotFoundError):  # another worker sweeps too
            if old.stat().st_mtime < time.time() - _DAY:
                remove_tree(old)
    with tempfile.TemporaryDirectory(prefix="index-", dir=parent) as folder:
        yield Path(folder) / "index"


def remove_tree(folder: Path) -> None:
    """Remove ``folder``: read-only, very deep, being written to or half gone makes no difference. Gone is success.

    Links are removed, never followed. Raises ResourceShort when something keeps filling it, RepositoryRefused when the
    system says no.
    """
    try:
        parent = os.open(folder.parent, _WALK)
        try:
            gone = any(_removed(folder.name, parent) for _ in range(_ROUNDS))
        finally:
            os.close(parent)
    except OSError as error:
        raise system_refusal(error, doing=f"remove {folder}") from error
    if not gone:
        raise ResourceShort(f"{folder} cannot be emptied: another process keeps writing to it")


def _removed(name: str, parent: int) -> bool:
    try:
        if _is_folder(name, parent):
            with _opened(name, parent) as top:
                _empty(top)
            os.rmdir(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
    except OSError as error:
        # Somebody else removes or writes at the same time: look again.
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        return error.errno == errno.ENOENT and not _exists(name, parent)
    return True


@contextlib.contextmanager
def _opened(name: str, parent: int) -> Iterator[int]:
    """A descriptor of the folder ``name``, which is made ours to change; never that of a link's target."""
    walk = os.open(name, _WALK, dir_fd=parent)
    try:
        if stat.S_IMODE(os.fstat(walk).st_mode) & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{walk}", 0o700)
        folder = os.open(f"/proc/self/fd/{walk}", os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(walk)
    try:
        yield folder
    finally:
        os.close(folder)


def _empty(top: int) -> None:
    """Empty a folder without recursion: what lies deeper is first moved up to the top."""
    names = (f"up-{number}-{secrets.token_hex(8)}" for number in itertools.count())
    while entries := os.listdir(top):
        for entry in entries:
            _remove_entry(entry, top, names)


def _remove_entry(entry: str, top: int, names: Iterator[str]) -> None:
    if not _is_folder(entry, top):
        os.unlink(entry, dir_fd=top)
        return
    with _opened(entry, top) as folder:
        for name in os.listdir(folder):
            if _is_folder(name, folder):
                with _opened(name, folder):
                    os.rename(name, next(names), src_dir_fd=folder, dst_dir_fd=top)
            else:
                os.unlink(name, dir_fd=folder)
    os.rmdir(entry, dir_fd=top)


def _exists(name: str, parent: int) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_folder(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
