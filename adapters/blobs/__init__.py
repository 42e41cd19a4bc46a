"""Blob stores by name."""

from __future__ import annotations

from pathlib import Path

from adapters.blobs.bucket import Bucket
from adapters.registry import resolve
from domain.ports.blobs import KeptBlobs

BLOBS = {
    "files": "adapters.blobs.files:open_files",
    "memory": "adapters.blobs.memory:open_memory",
    "s3": "adapters.blobs.s3:open_s3",
}


def open_blobs(place: Path | Bucket, *, name: str = "") -> KeptBlobs:
    """The blobs in ``place``: a bucket, or below the folder that Mendwork keeps its state in. Nothing is read, made or
    connected to yet."""
    name = name or ("s3" if isinstance(place, Bucket) else "files")
    blobs: KeptBlobs = resolve(BLOBS, "blob store", name)(place)
    return blobs
