"""Folders in and out of a run without any isolation: plain copies, of bounded size."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

from domain.errors import TooLarge
from domain.ports.sandbox import Collect

_BLOCK = 512
"""What a tar adds to each member, at least."""


def copy_in(source: Path, folder: Path, *, most_bytes: int) -> None:
    """Copy the folder, or the content of the tar file, into ``folder``, links as links. Raises TooLarge, OSError."""
    if source.is_dir():
        _check(_size(source), most_bytes)
        shutil.copytree(source, folder, symlinks=True, dirs_exist_ok=True)
        return
    with tarfile.open(source) as tar:
        _check(sum(member.size for member in tar), most_bytes)
    # tar itself keeps members inside the folder; Python's does so from 3.11.4 on.
    argv = ["tar", "-xpf", str(source), "-C", str(folder), "--no-same-owner"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise OSError(f"{source} cannot be unpacked: {done.stderr.strip().splitlines()[-1:]}")


def link_in(mounts: dict[str, Path], folder: Path) -> None:
    """Show each folder of the host at its place, as a link; what the copy has there goes. Raises OSError."""
    for place, source in mounts.items():
        there = folder / place
        if there.is_dir() and not there.is_symlink():
            shutil.rmtree(there)
        else:
            there.unlink(missing_ok=True)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.symlink_to(source.resolve(), target_is_directory=True)


def take_out(folder: Path, collect: Collect) -> bool:
    """Write the folder that is wanted as a GNU tar; whether there was one. Raises TooLarge, OSError."""
    wanted = folder / collect.folder
    if not wanted.is_dir() or Path(os.path.realpath(wanted)) != Path(
        os.path.normpath(folder.resolve() / collect.folder)
    ):
        return False
    members = list(_members(wanted))
    if sum(_taken(path) for path in members) > collect.most_bytes:
        raise TooLarge(f"what the command left is larger than the {collect.most_bytes} bytes that may be taken out")
    if not all(path.is_symlink() or path.stat().st_mode & stat.S_IRUSR for path in members):
        return False
    try:
        _write(wanted, members, collect.into)
    except BaseException:
        collect.into.unlink(missing_ok=True)
        raise
    return True


def _write(folder: Path, members: list[Path], into: Path) -> None:
    with tarfile.open(into, "w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(folder, arcname=".", recursive=False)
        for path in members:
            tar.inodes = {}  # type: ignore[attr-defined]  # each hard link is a file of its own
            tar.add(path, arcname=f"./{path.relative_to(folder)}", recursive=False)


def _members(folder: Path) -> Iterator[Path]:
    """Everything below, parents first, no link followed."""
    for name in sorted(os.listdir(folder)):
        path = folder / name
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _members(path)


def _taken(path: Path) -> int:
    found = path.lstat()
    return _BLOCK + (found.st_size if stat.S_ISREG(found.st_mode) else 0)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in _members(folder) if not path.is_dir() or path.is_symlink())


def _check(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise TooLarge(f"the checkout has {size} bytes, which does not fit into {most_bytes} bytes of scratch space")
