"""Blobs in one process's memory: the reference of what the port means, and for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from adapters.blobs.digests import checked_content, checked_digest, digest_of
from domain.errors import BlobMissing
from domain.ports.blobs import StoredBlob


class MemoryBlobs:
    """``domain.ports.blobs.KeptBlobs`` in a dictionary."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._contents: dict[str, bytes] = {}
        self._written: dict[str, int] = {}
        self._clock = clock

    async def put(self, content: bytes) -> str:
        digest = digest_of(content)
        self._contents[digest] = bytes(content)
        self._written[digest] = int(self._clock() * 1000)
        return digest

    async def get(self, digest: str) -> bytes:
        if checked_digest(digest) not in self._contents:
            raise BlobMissing(f"there is no blob {digest}")
        return checked_content(digest, self._contents[digest])

    async def list(self) -> Sequence[StoredBlob]:
        sizes = {digest: len(content) for digest, content in sorted(self._contents.items())}
        return [StoredBlob(digest=each, size=size, written=self._written[each]) for each, size in sizes.items()]

    async def remove(self, digest: str, *, before: int) -> int:
        if checked_digest(digest) not in self._contents or self._written[digest] >= before:
            return 0
        del self._written[digest]
        return len(self._contents.pop(digest))


def open_memory(root: Path) -> MemoryBlobs:
    """New and empty; ``root`` is not touched."""
    return MemoryBlobs()
