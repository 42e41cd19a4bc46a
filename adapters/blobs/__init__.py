"""Blob stores by name."""

from pathlib import Path

from adapters.registry import resolve
from domain.ports.blobs import Blobs

BLOBS = {
    "files": "adapters.blobs.files:open_files",
    "memory": "adapters.blobs.memory:open_memory",
}


def open_blobs(root: Path, *, name: str = "files") -> Blobs:
    """The blobs below ``root``, the folder that Mendwork keeps its state in. Nothing is read or made yet."""
    blobs: Blobs = resolve(BLOBS, "blob store", name)(root)
    return blobs
