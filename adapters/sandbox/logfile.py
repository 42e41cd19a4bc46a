"""A log of bounded size: its head as it comes, its tail at the end."""

from __future__ import annotations

from pathlib import Path

_NOTE = "\n[... {0} bytes left out here ...]\n"


class CutLog:
    """Keeps the first and the last part of what is written; never more than ``limit`` bytes on disk, nor in memory.

    The tail is written by ``close``. What does not fit is counted, not kept, so a flood costs time only.
    """

    def __init__(self, path: Path, *, limit: int) -> None:
        note = len(_NOTE.format(1 << 62))
        self._room = max(limit - limit // 4 - note, 0)
        self._keep = max(limit // 4, 0) if limit > 2 * note else 0
        self._file = path.open("wb", buffering=0)
        self._tail = bytearray()
        self._dropped = 0

    @property
    def cut(self) -> bool:
        """Whether something did not fit."""
        return self._dropped > 0 or len(self._tail) > self._keep

    def write(self, data: bytes) -> None:
        """Append. Raises OSError when the disk is full."""
        head = data[: self._room]
        if head:
            self._room -= len(head)
            self._file.write(head)
        self._tail += data[len(head) :]
        if len(self._tail) > 2 * self._keep:
            self._shorten()

    def close(self) -> None:
        """Write the tail and the note about what is missing. Raises OSError when the disk is full."""
        with self._file:
            self._shorten()
            if self._dropped:
                self._file.write(_NOTE.format(self._dropped).encode())
            if self._tail:
                self._file.write(self._tail)

    def _shorten(self) -> None:
        surplus = max(len(self._tail) - self._keep, 0)
        self._dropped += surplus
        del self._tail[:surplus]
