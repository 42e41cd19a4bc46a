"""From files to the one tar that stands for them: the same content has the same bytes wherever and whenever."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from domain.delivery.artifact import FILE, FOLDER, LINK, MOST_MEMBERS, Member, arranged
from domain.errors import ArtifactFailed, TooLarge

_LONGEST_NAME = 8_192
_KINDS = {tarfile.REGTYPE: FILE, tarfile.AREGTYPE: FILE, tarfile.DIRTYPE: FOLDER, tarfile.SYMTYPE: LINK}
_LONG_NAMES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """``content`` is the tar, ``files`` how many files and links are in it."""

    content: bytes
    files: int


def pack_folder(folder: Path, *, most_bytes: int) -> Packed:
    """A folder that nobody else writes to. Raises ArtifactFailed, TooLarge, OSError."""
    members = arranged(_walk(folder, ""), most_bytes=most_bytes)

    def content(path: str) -> IO[bytes]:
        return os.fdopen(os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")

    return _pack(members, content)


def pack_tar(file: Path, *, most_bytes: int) -> Packed:
    """A GNU tar that came out of a sandbox: every member is checked. Raises ArtifactFailed, TooLarge, OSError."""
    try:
        with tarfile.open(file, "r:", tarinfo=_Strict, encoding="utf-8", errors="surrogateescape") as tar:
            found = {_path(info): info for info in _limited(tar)}
            if len(found) < len(tar.getmembers()):
                raise ArtifactFailed("the artefact has a path twice")
            found.pop("", None)  # the folder itself
            members = arranged((_member(path, info) for path, info in found.items()), most_bytes=most_bytes)

            def content(path: str) -> IO[bytes]:
                return tar.extractfile(found[path]) or io.BytesIO()

            return _pack(members, content)
    except (tarfile.TarError, ValueError) as error:
        raise ArtifactFailed(f"what the build left cannot be read: {error}") from error


class _Strict(tarfile.TarInfo):
    """Only what a GNU tar of plain things is made of reaches the parser: no extended header, nothing sparse, no size
    that is negative or has to be believed."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        info = super().frombuf(buf, encoding, errors)
        long_name = info.type in _LONG_NAMES and 0 <= info.size <= _LONGEST_NAME
        if not long_name and (info.type not in _KINDS or info.size < 0):
            raise ArtifactFailed(
                f"the artefact has {info.name[:120]!r}, which is neither a file nor a folder nor a symbolic link"
            )
        return info


def _limited(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for number, info in enumerate(tar):
        if number > MOST_MEMBERS:
            raise TooLarge(f"the artefact has more than {MOST_MEMBERS} files, folders and links")
        yield info


def _path(info: tarfile.TarInfo) -> str:
    return "" if info.name == "." else info.name.removeprefix("./")


def _member(path: str, info: tarfile.TarInfo) -> Member:
    kind = _KINDS[info.type]
    return Member(
        path=path,
        kind=kind,
        size=info.size if kind == FILE else 0,
        executable=kind == FILE and bool(info.mode & stat.S_IXUSR),
        target=info.linkname if kind == LINK else "",
    )


def _walk(folder: Path, above: str) -> Iterator[Member]:
    """Nothing is followed; what is no file, folder or link is named as such, for it to be refused."""
    pending = [above]
    while pending:
        inside = pending.pop()
        with os.scandir(folder / inside) as entries:
            for entry in entries:
                path = f"{inside}/{entry.name}" if inside else entry.name
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(path)
                yield _found(folder, path, status)


def _found(folder: Path, path: str, status: os.stat_result) -> Member:
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        return Member(path=path, kind=LINK, target=os.readlink(folder / path))
    if stat.S_ISREG(mode):
        return Member(path=path, kind=FILE, size=status.st_size, executable=bool(mode & stat.S_IXUSR))
    return Member(path=path, kind=FOLDER if stat.S_ISDIR(mode) else "a device, a pipe or a socket")


def _pack(members: tuple[Member, ...], content: Callable[[str], IO[bytes]]) -> Packed:
    packed = io.BytesIO()
    with tarfile.open(
        fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as tar:
        for member in members:
            info = tarfile.TarInfo(member.path)
            info.type = {FILE: tarfile.REGTYPE, FOLDER: tarfile.DIRTYPE, LINK: tarfile.SYMTYPE}[member.kind]
            info.mode = 0o755 if member.executable or member.kind == FOLDER else 0o644
            info.size, info.linkname = member.size, member.target
            if member.kind != FILE:
                tar.addfile(info)
                continue
            with content(member.path) as source:
                tar.addfile(info, source)  # raises OSError when there is less than was announced
    return Packed(content=packed.getvalue(), files=sum(member.kind != FOLDER for member in members))
