"""From a test command to the folders that the sandbox has to show for it."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from domain.errors import InvalidInput

SYSTEM = tuple(Path(name) for name in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"))
ALTERNATIVES = Path("/etc/alternatives")
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
_DEEPEST = 5


def default_toolchain(argv: Sequence[str], path: str, *, homes: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The folders, files and links outside the system's folders that ``argv`` needs; ``path`` is a PATH to look on.

    A program's prefix is shown whole (a virtual environment together with its interpreter's prefix, a pyenv shim as
    the version that pyenv has chosen globally), never a home folder: those of this machine, and ``homes``. A relative
    path stands for a file of the checkout and needs nothing. Raises InvalidInput when the program cannot be found.
    """
    name = argv[0] if argv else ""
    if "/" in name and not name.startswith("/"):
        return ()
    return tuple(dict.fromkeys(_Finder(path, homes).needed(name)))


def is_system(path: Path) -> bool:
    """Whether the sandbox shows ``path`` anyway."""
    return any(path.is_relative_to(folder) for folder in (*SYSTEM, ALTERNATIVES))


class _Finder:
    def __init__(self, path: str, homes: Sequence[Path]) -> None:
        self._path = path
        self._homes = {*homes, Path("/root"), Path(pwd.getpwuid(os.getuid()).pw_dir)}

    def needed(self, name: str, depth: int = 0) -> list[Path]:
        found = shutil.which(name, path=self._path)
        if not found or depth > _DEEPEST:
            raise InvalidInput(
                f"the command {name!r} cannot be found on PATH; install it, or name its full path in the test command"
            )
        program = _behind_shim(Path(os.path.abspath(found)), self._path)
        places = [*_links(program), real := program.resolve()]
        shown = [folder for place in places for folder in self._environment(place)]
        if not is_system(real):
            shown.append(self._prefix(places))
        for place in places:
            if place.is_symlink() and not any(place.is_relative_to(folder) for folder in shown):
                shown.append(place)
        needed = [place for place in shown if not is_system(place)] + self._interpreter(real, depth)
        by_default = shutil.which(name, path=os.pathsep.join(SYSTEM_PATH))
        if "/" not in name and is_system(program) and not (by_default and Path(by_default).resolve() == real):
            needed.append(program.parent)
        return needed

    def _environment(self, place: Path) -> list[Path]:
        """The virtual environment that ``place`` is a program of, and the installation that it was made from."""
        folder = place.parent.parent
        config = folder / "pyvenv.cfg"
        if not config.is_file():
            return []
        pairs = (line.partition("=") for line in config.read_text(encoding="utf-8").splitlines())
        home = {key.strip(): value.strip() for key, _, value in pairs}.get("home", "/usr/bin")
        base = Path(home).resolve().parent
        return [folder.resolve()] if self._is_private(base) else [folder.resolve(), base]

    def _prefix(self, places: list[Path]) -> Path:
        """The installation that holds the real program; the program alone where that would be a home folder."""
        real = places[-1]
        for place in places:
            prefix = place.parent.parent.resolve()
            if place.parent.name == "bin" and real.is_relative_to(prefix) and not self._is_private(prefix):
                return prefix
        return real

    def _is_private(self, folder: Path) -> bool:
        """Homes, and the hidden folders right inside one (``~/.local``, ``~/.cargo``), which hold credentials."""
        near = (folder, folder.parent) if folder.name.startswith(".") else (folder,)
        at_home = any(place in self._homes or place.parent == Path("/home") for place in near)
        return at_home or folder in {Path("/"), Path("/home"), Path("/tmp")}  # noqa: S108

    def _interpreter(self, real: Path, depth: int) -> list[Path]:
        with real.open("rb") as file:
            first = file.read(512).partition(b"\n")[0]
        if not first.startswith(b"#!"):
            return []
        words = shlex.split(os.fsdecode(first[2:]))
        if words and Path(words[0]).name == "env":
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return self.needed(words[0], depth + 1) if words else []


def _behind_shim(program: Path, path: str) -> Path:
    root = program.parent.parent
    if program.parent.name != "shims" or not (root / "versions").is_dir():
        return program
    chosen = (root / "version").read_text().split() if (root / "version").is_file() else []
    for version in chosen:
        candidate = root / "versions" / version / "bin" / program.name
        if candidate.exists():
            return candidate
    rest = os.pathsep.join(p for p in path.split(os.pathsep) if Path(p) != program.parent)
    behind = shutil.which(program.name, path=rest)
    if behind:
        return Path(os.path.abspath(behind))
    raise InvalidInput(f"pyenv has no {program.name!r} in its global version; choose one with `pyenv global`")


def _links(path: Path) -> list[Path]:
    """Every symbolic link, of files and of folders, that leads from ``path`` to the real file."""
    links: list[Path] = []
    current, rest = Path("/"), list(path.parts[1:])
    while rest:
        part = rest.pop(0)
        step = current.parent if part == ".." else current / part
        if not step.is_symlink():
            current = step
            continue
        links.append(step)
        target = step.readlink()
        current = Path("/") if target.is_absolute() else current
        rest = [*(target.parts[1:] if target.is_absolute() else target.parts), *rest]
    return links
