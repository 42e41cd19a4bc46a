"""Blobs as files: ``blobs/ab/cdef…``, written beside and renamed, so that a name stands for all its bytes or none."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adapters.blobs.digests import checked_content, checked_digest, digest_of
from domain.errors import BlobMissing, MendworkError, ResourceShort, StoreUnavailable

LEFTOVER_SECONDS = 3600.0  # no writer takes an hour: what is older was left by one that died
_SHORT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class FileBlobs:
    """``domain.ports.blobs.Blobs`` below ``root``. Any number of processes may share it."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "blobs"
        self._swept = False

    async def put(self, content: bytes) -> str:
        digest = digest_of(content)
        with _translated(f"blob {digest} cannot be written"):
            await asyncio.to_thread(self._put, self._path(digest), content)
        return digest

    async def get(self, digest: str) -> bytes:
        path = self._path(checked_digest(digest))
        with _translated(f"blob {digest} cannot be read"):
            try:
                content = await asyncio.to_thread(path.read_bytes)
            except FileNotFoundError:
                raise BlobMissing(f"there is no blob {digest}") from None
        return checked_content(digest, content)

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest[2:]

    def _put(self, path: Path, content: bytes) -> None:
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not self._swept:
            self._swept = True
            _sweep(self._folder)
        if not _holds(path, content):
            _write(path, content)
        _sync_folders(path.parent)


def open_files(root: Path) -> FileBlobs:
    """The blobs below ``root``."""
    return FileBlobs(root)


def _holds(path: Path, content: bytes) -> bool:
    """Whether the file is there and whole; a damaged one is replaced."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except FileNotFoundError:
        return False


def _write(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".", suffix=".new", dir=path.parent)  # for the owner alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):  # it was renamed already
            os.unlink(name)
        raise


def _sync_folders(folder: Path) -> None:
    """Also when the file was there: whoever renamed it may not have come this far."""
    for each in (folder, folder.parent, folder.parent.parent):
        handle = os.open(each, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(folder: Path) -> None:
    """Remove what killed writers left."""
    for left in folder.glob("??/.*.new"):
        with suppress(FileNotFoundError):  # its writer renamed it, or another process swept it
            if time.time() - left.stat().st_mtime > LEFTOVER_SECONDS:
                left.unlink()


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _ours(what, error) from error


def _ours(what: str, error: OSError) -> MendworkError:
    kind = ResourceShort if error.errno in _SHORT else StoreUnavailable
    return kind(f"{what}: {os.strerror(error.errno or errno.EIO)}")
