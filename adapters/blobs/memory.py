"""Blobs in one process's memory: the reference of what the port means, and for tests."""

from __future__ import annotations

from pathlib import Path

from adapters.blobs.digests import checked_content, checked_digest, digest_of
from domain.errors import BlobMissing


class MemoryBlobs:
    """``domain.ports.blobs.Blobs`` in a dictionary."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    async def put(self, content: bytes) -> str:
        digest = digest_of(content)
        self._contents[digest] = bytes(content)
        return digest

    async def get(self, digest: str) -> bytes:
        if checked_digest(digest) not in self._contents:
            raise BlobMissing(f"there is no blob {digest}")
        return checked_content(digest, self._contents[digest])


def open_memory(root: Path) -> MemoryBlobs:
    """New and empty; ``root`` is not touched."""
    return MemoryBlobs()
