"""CPU seconds of other processes, as /proc has them."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _OWN, _CHILDREN = 1, (11, 12), (13, 14)
"""Fields of /proc/PID/stat, counted after the name."""


def cpu_of(process: int) -> float:
    """Its own so far, all its threads together; 0 for one that is gone."""
    return _seconds(process, _OWN)


def cpu_below(leader: int) -> float:
    """That of a process and of everything below it, with what has ended and was waited for."""
    parents = {int(path.name): _field(int(path.name), _PARENT) for path in _processes()}
    found = [leader]
    for each in found:
        found += [process for process, parent in parents.items() if parent == each]
    return sum(_seconds(process, (*_OWN, *_CHILDREN)) for process in found)


def _processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _seconds(process: int, fields: tuple[int, ...]) -> float:
    return sum(max(0, _field(process, number)) for number in fields) / _TICKS


def _field(process: int, number: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[number])
    except (FileNotFoundError, ProcessLookupError):
        return -1
