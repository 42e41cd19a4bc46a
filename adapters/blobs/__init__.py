"""Blob stores by name."""

from pathlib import Path

from adapters.registry import resolve
from domain.ports.blobs import KeptBlobs

BLOBS = {
    "files": "adapters.blobs.files:open_files",
    "memory": "adapters.blobs.memory:open_memory",
}


def open_blobs(root: Path, *, name: str = "files") -> KeptBlobs:
    """The blobs below ``root``, the folder that Mendwork keeps its state in. Nothing is read or made yet."""
    blobs: KeptBlobs = resolve(BLOBS, "blob store", name)(root)
    return blobs
