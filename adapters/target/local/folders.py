"""Where things lie below the target's folder, and how they are written so that no crash leaves a half.

``<project>/<environment>/`` holds ``live.map``, ``haproxy.cfg`` and a folder per release: ``order.json`` (its secrets
too), ``release`` (the unpacked artefact), ``scratch``, ``steps``. Everything of our own is in ``.supervisor``.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from domain.errors import InvalidName, TargetUnavailable
from domain.ports.target import Unit

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
CHOOSING = "choosing"
"""A lock of the whole target: a user or a port is taken once the file that names it is in its place."""
_LONGEST_SOCKET = 80  # of 107: the programs append a number while they make it


class Folders:
    """``root`` is the target's folder, ``<state>/target``; nothing is made before it is needed."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.own = self.root / ".supervisor"

    def make(self) -> None:
        """Everything that the supervisor needs; only for our eyes."""
        self.root.parent.mkdir(parents=True, exist_ok=True)
        self.root.mkdir(mode=0o700, exist_ok=True)
        for name in ("", "programs", "logs", "locks"):
            (self.own / name).mkdir(mode=0o700, exist_ok=True)

    def site(self, project: str, environment: str) -> Path:
        """Raises InvalidName for what cannot be a folder."""
        for name in (project, environment):
            if not _NAME.fullmatch(name):
                raise InvalidName(f"{name[:80]!r} is not lower-case letters, digits and dashes (at most 40)")
        return self.root / project / environment

    def unit(self, unit: Unit) -> Path:
        """Raises InvalidName for what cannot be a folder."""
        if unit.release < 1:
            raise InvalidName(f"releases count from 1, and this one is {unit.release}")
        return self.site(unit.project, unit.environment) / str(unit.release)

    def units(self) -> list[Unit]:
        """All that are there."""
        found = (path.parent for path in self.root.glob("[a-z0-9]*/*/[0-9]*/order.json"))
        return [
            Unit(project=path.parent.parent.name, environment=path.parent.name, release=int(path.name))
            for path in sorted(found, key=lambda path: (path.parent, int(path.name)))
        ]

    def sites(self) -> list[tuple[str, str]]:
        """Project and environment of all that are there."""
        return sorted((path.parent.name, path.name) for path in self.root.glob("[a-z0-9]*/*") if path.is_dir())

    def order(self, unit: Unit) -> dict[str, Any] | None:
        """What a unit is made of; None when there is none."""
        try:
            text = (self.unit(unit) / "order.json").read_text()
        except FileNotFoundError:
            return None
        order: dict[str, Any] = json.loads(text)
        return order

    def sockets(self, *, make: bool = False) -> Path:
        """A folder whose name is short enough for unix sockets. Raises TargetUnavailable when it is not ours."""
        if len(os.fsencode(self.own)) <= _LONGEST_SOCKET:
            return self.own
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        place = Path("/run") if os.geteuid() == 0 else Path("/tmp")  # noqa: S108 - its owner is checked
        folder = place / f"mendwork-{os.geteuid()}-{digest}"
        if make:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        if folder.exists() or folder.is_symlink():
            known = folder.lstat()
            if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.geteuid() or known.st_mode & 0o077:
                raise TargetUnavailable(f"{folder} is not a folder of ours: remove it")
        return folder

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """One process and thread at a time; a killed holder frees it."""
        self.make()
        with (self.own / "locks" / name).open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def program_of(unit: Unit) -> str:
    """A unit's name at the supervisor."""
    return f"{unit.project}.{unit.environment}.{unit.release}"


def write(path: Path, content: str) -> None:
    """Whole or not at all, also after a power cut; readable by us alone. Raises OSError."""
    half = path.with_name(f".{path.name}.half")
    with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    half.replace(path)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """As ``write``."""
    write(path, json.dumps(content))


def read_said(path: Path) -> tuple[str, str] | None:
    """Kind and sentence of how a program ended; None when it has not said it."""
    try:
        said = json.loads(path.read_text())
        return str(said["kind"]), str(said["sentence"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def log_end(path: Path, *, characters: int = 4_000) -> str:
    """The end of a log: untrusted text."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4 * characters))
            return file.read().decode(errors="replace")[-characters:]
    except OSError:
        return ""
