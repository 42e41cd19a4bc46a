"""The state folder's own folders: what of them is left over, and what they weigh."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from adapters.house.logs import trim
from domain.errors import StoreUnavailable
from domain.ports.kept.keeping import Remains

_KINDS = ("mirrors", "environments", "index", "work", "logs", "blobs")
_STORE = "mendwork.db"
_KEPT = "kept"
"""Lies in what ``mendwork replay --keep`` was told to leave."""


class StateFolders:
    """``domain.ports.kept.keeping.Folders`` of ``state``. ``remove`` takes a folder away, whatever is in it."""

    def __init__(self, state: Path, *, remove: Callable[[Path], None]) -> None:
        self._state = state.resolve()
        self._remove = remove

    def abandoned(self, *, before: int, remove: bool) -> Remains:
        """Of ``work/`` and ``replay/``, which hold nothing that has to last, and of logs that grew long. No link is
        followed."""
        logs = self._logs(cut=remove)
        count, size = logs.count, logs.bytes
        for entry in self._work():
            try:
                old = entry.lstat().st_mtime * 1000 < before
            except FileNotFoundError:
                continue
            if old:
                count, size = count + 1, size + weight(entry)
                if remove:
                    self._remove(entry)
        return Remains(count=count, bytes=size)

    def sizes(self) -> Mapping[str, int]:
        """By kind; what is none of them is "rest"."""
        found = dict.fromkeys((*_KINDS, "store", "rest"), 0)
        for entry in _entries(self._state):
            kind = entry.name if entry.name in _KINDS else "store" if entry.name.startswith(_STORE) else "rest"
            found[kind] += weight(entry)
        return found

    def _work(self) -> list[Path]:
        replays = [each for each in _entries(self._state / "replay") if not (each / _KEPT).exists()]
        return [*_entries(self._state / "work"), *replays]

    def _logs(self, *, cut: bool) -> Remains:
        folder = self._state / "logs"
        try:
            return trim(folder, cut=cut)
        except OSError as error:
            raise StoreUnavailable(f"{folder}: {os.strerror(error.errno or 0)}") from error


def weight(path: Path) -> int:
    """Bytes on disk of a file, or of a folder and all that is in it; hard links count once."""
    seen: set[tuple[int, int]] = set()
    return sum(_weights(path, seen))


def _weights(path: Path, seen: set[tuple[int, int]]) -> Iterator[int]:
    waiting = [path]
    while waiting:
        each = waiting.pop()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            there = each.lstat()
            if (there.st_dev, there.st_ino) not in seen:
                seen.add((there.st_dev, there.st_ino))
                yield there.st_blocks * 512
            if each.is_dir() and not each.is_symlink():
                waiting += [each / name for name in os.listdir(each)]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreUnavailable(f"{folder} cannot be read: {os.strerror(error.errno or 0)}") from error
