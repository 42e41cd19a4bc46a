"""What killed workers of one state folder left on this machine: processes, control groups, mounts, folders.

Only what is provably this folder's: control groups carry the number of the process that made them, and the folder knows
the numbers of its dead; processes are known by where they stand, mounts and folders by where they are.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol

from adapters.house.presence import Dead, dead, living
from domain.errors import MendworkError

_GRACE = 10.0
_PLURALS = {"processes": "process", "groups": "control group", "mounts": "mount", "folders": "folder"}
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Groups(Protocol):
    """The kernel's control groups of runs."""

    def end_of(self, maker: int, *, born: float) -> int:
        """Kill and remove the groups that the process ``maker``, which is dead, made after ``born`` (seconds since
        1970); how many there were. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How many there were, of each kind."""

    processes: int = 0
    groups: int = 0
    mounts: int = 0
    folders: int = 0

    def sentence(self) -> str:
        """For the log; "" when there was nothing."""
        counts = [(getattr(self, each.name), _PLURALS[each.name]) for each in fields(self)]
        parts = [f"{count} {word}{_ending(word) if count > 1 else ''}" for count, word in counts if count]
        return f"ended what killed workers had left: {', '.join(parts)}" if parts else ""


class Leftovers:
    """Of ``state``. ``remove`` takes a folder away, whatever is in it."""

    def __init__(self, state: Path, *, groups: Groups, remove: Callable[[Path], None]) -> None:
        self._state = state.resolve()
        self._work = self._state / "work"
        self._groups = groups
        self._remove = remove

    def end(self, *, say: Callable[[str], object] = lambda _: None) -> Found:
        """End all of it, and tell ``say`` in one line when there was something. May be called by several at once, and
        beside workers that live: theirs is left alone."""
        gone = dead(self._state)
        groups = sum(self._end_groups(each) for each in gone)
        alive = living(self._state)
        processes = sum(_kill(pid) for pid in self._strays(alive))
        others = alive - {os.getpid()}
        mounts = 0 if others else sum(_unmount(place) for place in self._mounts())
        folders = 0 if others else sum(self._removed(folder) for folder in self._folders())
        for each in gone:
            each.file.unlink(missing_ok=True)
        found = Found(processes=processes, groups=groups, mounts=mounts, folders=folders)
        if sentence := found.sentence():
            say(sentence)
        return found

    def _end_groups(self, maker: Dead) -> int:
        if Path("/proc", str(maker.pid)).exists():
            return 0  # the number is another process's by now, whose groups these may be
        with contextlib.suppress(OSError):
            return self._groups.end_of(maker.pid, born=maker.born)
        return 0

    def _strays(self, alive: set[int]) -> Iterator[int]:
        """Processes that stand in ``work/``, have no terminal and no living worker above them."""
        for entry in Path("/proc").iterdir():
            stray = entry.name.isdigit() and self._stands_here(entry) and not _has_terminal(entry)
            if stray and not alive & _ancestry(int(entry.name)):
                yield int(entry.name)

    def _stands_here(self, process: Path) -> bool:
        with contextlib.suppress(OSError):
            return Path(os.readlink(process / "cwd")).is_relative_to(self._work)
        return False

    def _mounts(self) -> list[Path]:
        """Deepest first."""
        with contextlib.suppress(OSError):
            lines = Path("/proc/self/mountinfo").read_text().splitlines()
            return sorted(mount_points(lines, below=self._work), key=lambda path: len(path.parts), reverse=True)
        return []

    def _folders(self) -> list[Path]:
        with contextlib.suppress(OSError):
            return sorted(self._work.iterdir())
        return []

    def _removed(self, folder: Path) -> bool:
        with contextlib.suppress(MendworkError):  # the housekeeper comes again
            self._remove(folder)
            return True
        return False


def mount_points(lines: Collection[str], *, below: Path) -> list[Path]:
    """Where the lines of ``mountinfo`` say that something is mounted, inside ``below``."""
    points = (_ESCAPED.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[4]) for line in lines if line)
    return [Path(point) for point in points if Path(point).is_relative_to(below)]


def _unmount(place: Path) -> bool:
    done = subprocess.run(
        ["umount", "--lazy", "--", str(place)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_GRACE,
        check=False,
    )
    return done.returncode == 0


def _has_terminal(process: Path) -> bool:
    """A person's shell stands where it wants."""
    return _stat(process)[4] != "0"


def _ancestry(pid: int) -> set[int]:
    """The process and those above it."""
    found: set[int] = set()
    while pid > 0 and pid not in found:
        found.add(pid)
        pid = int(_stat(Path("/proc", str(pid)))[1])
    return found


def _stat(process: Path) -> list[str]:
    """State, parent, group, session, terminal; zeros of one that has ended."""
    with contextlib.suppress(OSError):
        return (process / "stat").read_text().rpartition(")")[2].split()
    return ["X", "0", "0", "0", "0"]


def _kill(pid: int) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        select.select([handle], [], [], _GRACE)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _ending(word: str) -> str:
    return "es" if word.endswith("s") else "s"
