"""From an artefact to a release's folder: everything that leads outside is refused before anything is written."""

from __future__ import annotations

import errno
import io
import os
import posixpath
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from domain.errors import InvalidInput

_MOST_MEMBERS = 100_000
_MOST_BYTES = 2_000_000_000
_ITS_FAULT = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTEMPTY}


def unpack(content: bytes, folder: Path) -> None:
    """``folder`` is new. Files belong to us and can be read by all, programs can be run by all, nothing is setuid.

    Raises InvalidInput for an artefact that is no tar or leads outside, OSError when the disk is full.
    """
    folder.mkdir()
    folder.chmod(0o755)
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in _checked(archive):
                _extract(archive, member, folder)
    except (tarfile.TarError, EOFError, UnicodeError, KeyError) as error:
        raise InvalidInput(f"the artefact cannot be unpacked: {error}") from error
    except OSError as error:
        if error.errno not in _ITS_FAULT:
            raise
        raise InvalidInput(f"the artefact holds names that cannot be: {error.strerror}") from error


def remove_tree(folder: Path) -> bool:
    """Remove a folder, also one whose folders are closed to us; whether nothing is left."""
    if os.geteuid() != 0 and folder.is_dir():
        for path, folders, _ in os.walk(folder):
            for name in folders:
                inner = Path(path, name)
                if not inner.is_symlink():
                    inner.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
    return not os.path.lexists(folder)


def _checked(archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    members: list[tarfile.TarInfo] = []
    links: set[str] = set()
    files: set[str] = set()
    size = 0
    for member in archive:
        size += member.size
        if len(members) >= _MOST_MEMBERS or size > _MOST_BYTES:
            raise InvalidInput(f"the artefact has over {_MOST_MEMBERS} files or {_MOST_BYTES} bytes")
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise InvalidInput(f"the artefact holds {member.name[:200]!r}, which is no file, folder or link")
        member.name = posixpath.normpath(_inside(member.name, member))
        if any(str(above) in links for above in (PurePosixPath(member.name), *PurePosixPath(member.name).parents)):
            raise InvalidInput(f"the artefact leads through a link: {member.name[:200]!r}")
        if member.issym():
            _check_target(member)
            links.add(member.name)
        if member.islnk():
            member.linkname = posixpath.normpath(_inside(member.linkname, member))
            if member.linkname not in files:
                raise InvalidInput(f"the artefact holds a link to no file: {member.name[:200]!r}")
        if member.isfile() or member.islnk():
            files.add(member.name)
        members.append(member)
    return members


def _inside(path: str, member: tarfile.TarInfo) -> str:
    if not path or path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise InvalidInput(f"the artefact leads outside its folder: {member.name[:200]!r}")
    return path


def _check_target(member: tarfile.TarInfo) -> None:
    """A link may climb first, at most to the release's folder, and not again: what it climbed from may be a link."""
    if not member.linkname:
        raise InvalidInput(f"the artefact holds a link to no file: {member.name[:200]!r}")
    parts = member.linkname.split("/")
    climbs = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    if climbs > len(PurePosixPath(member.name).parts) - 1:
        raise InvalidInput(f"the artefact leads outside its folder: {member.name[:200]!r}")
    _inside("/".join(parts[climbs:]) or ".", member)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    path = folder / member.name
    above = [*reversed(PurePosixPath(member.name).parents), *([PurePosixPath(member.name)] if member.isdir() else [])]
    for inner in (folder / each for each in above):
        if not inner.is_dir():
            inner.mkdir()
            inner.chmod(0o755)
    if member.isdir():
        return
    path.unlink(missing_ok=True)  # the later one of a name counts
    if member.issym():
        path.symlink_to(member.linkname)
        return
    source = archive.extractfile(member)
    if source is None:
        raise InvalidInput(f"the artefact holds a link to nothing: {member.name[:200]!r}")
    mode = 0o755 if member.mode & 0o100 else 0o644
    with source, open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as file:
        shutil.copyfileobj(source, file)
        os.fchmod(file.fileno(), mode)
