"""Blobs as files: ``blobs/ab/cdef…``, written beside and renamed, so that a name stands for all its bytes or none.

A file's time of change is when its blob was last put. Whoever puts holds its folder's lock with others who put; whoever
removes holds it alone, so that a blob that is put again at that moment is not lost.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from adapters.blobs.digests import checked_content, checked_digest, digest_of, is_digest
from domain.errors import BlobMissing, MendworkError, ResourceShort, StoreUnavailable
from domain.ports.blobs import StoredBlob

LEFTOVER_SECONDS = 3600.0  # no writer takes an hour: what is older was left by one that died
_SHORT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class FileBlobs:
    """``domain.ports.blobs.KeptBlobs`` below ``root``. Any number of processes may share it."""

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

    async def list(self) -> Sequence[StoredBlob]:
        with _translated("the blobs cannot be listed"):
            return await asyncio.to_thread(lambda: sorted(_stored(self._folder), key=lambda blob: blob.digest))

    async def remove(self, digest: str, *, before: int) -> int:
        path = self._path(checked_digest(digest))
        with _translated(f"blob {digest} cannot be removed"):
            return await asyncio.to_thread(_remove, path, before)

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest[2:]

    def _put(self, path: Path, content: bytes) -> None:
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not self._swept:
            self._swept = True
            _sweep(self._folder)
        with _locked(path.parent, fcntl.LOCK_SH):
            if _holds(path, content):
                os.utime(path)
            else:
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


def _stored(folder: Path) -> Iterator[StoredBlob]:
    """What is no blob of ours by its name is left alone."""
    for part in sorted(folder.glob("[0-9a-f][0-9a-f]")):
        for file in os.scandir(part):
            digest = part.name + file.name
            with suppress(FileNotFoundError):  # removed while we look
                if is_digest(digest) and file.is_file(follow_symlinks=False):
                    there = file.stat(follow_symlinks=False)
                    yield StoredBlob(digest=digest, size=there.st_size, written=there.st_mtime_ns // 1_000_000)


def _remove(path: Path, before: int) -> int:
    try:
        with _locked(path.parent, fcntl.LOCK_EX):
            there = path.stat(follow_symlinks=False)
            if there.st_mtime_ns // 1_000_000 >= before:
                return 0
            path.unlink()
            return there.st_size
    except FileNotFoundError:
        return 0


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    """The kernel frees the lock of whoever dies."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


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
