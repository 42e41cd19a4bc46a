"""One folder of the kernel's control groups: made with its limits, read, emptied, removed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MEMORY, PIDS = "memory", "pids"
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one group may use. ``memory`` in bytes, what it writes to memory file systems included."""

    memory: int
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """One tree of groups: where it is mounted, where in it this process is, and which controllers it has for us."""

    mount: Path
    here: str
    controllers: frozenset[str]
    unified: bool

    def parents(self) -> Iterator[Path]:
        """Where a group can be made, nearest first: limits that hold us should go on to hold the run."""
        inside = self.mount / self.here.strip("/")
        for folder in (inside, *inside.parents):
            if folder.is_relative_to(self.mount) and folder.is_dir():
                yield folder


def make(hierarchy: Hierarchy, name: str, limits: Limits, wanted: frozenset[str]) -> Path:
    """A new group under the nearest parent that allows it. Raises OSError."""
    failure: OSError = FileNotFoundError(f"no control group under {hierarchy.mount}")
    for parent in hierarchy.parents():
        try:
            if hierarchy.unified:
                _enable(parent, wanted)
            (parent / name).mkdir()
        except OSError as error:
            failure = error
            continue
        try:
            (_limit_unified if hierarchy.unified else _limit_old)(parent / name, limits, wanted)
        except OSError as error:
            failure = error
            (parent / name).rmdir()
            continue
        return parent / name
    raise failure


def _enable(parent: Path, wanted: frozenset[str]) -> None:
    # A group that holds processes refuses this (EBUSY), unless it is the root: then the next parent is tried.
    lacking = wanted - set(read(parent / "cgroup.subtree_control").split())
    if lacking:
        (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(lacking)))


def _limit_unified(folder: Path, limits: Limits, wanted: frozenset[str]) -> None:
    if MEMORY in wanted:
        (folder / "memory.max").write_text(str(limits.memory))
        (folder / "memory.oom.group").write_text("1")
        with contextlib.suppress(OSError):  # a kernel that does not account for swap
            (folder / "memory.swap.max").write_text("0")
    if PIDS in wanted:
        (folder / "pids.max").write_text(str(limits.processes))


def _limit_old(folder: Path, limits: Limits, wanted: frozenset[str]) -> None:
    if MEMORY in wanted:
        (folder / "memory.limit_in_bytes").write_text(str(limits.memory))
        with contextlib.suppress(OSError):  # a kernel that does not account for swap
            (folder / "memory.memsw.limit_in_bytes").write_text(str(limits.memory))
    if PIDS in wanted:
        (folder / "pids.max").write_text(str(limits.processes))


def read(file: Path) -> str:
    """The text of a file of the kernel's; empty where this kernel has no such file."""
    try:
        return file.read_text()
    except OSError:
        return ""


def kill_all(folder: Path) -> None:
    """Send SIGKILL to every process of the group."""
    with contextlib.suppress(OSError):  # there from Linux 5.14 on, and only with version 2
        _order(folder / "cgroup.kill", "1")
        return
    with contextlib.suppress(OSError):  # stops a fork bomb from outrunning the loop; absent without the controller
        _order(folder / "pids.max", "0")
    for process in map(int, read(folder / "cgroup.procs").split()):
        if process > 0:  # 0 is how the kernel shows a process that our process tree does not hold; kill(0) is suicide
            with contextlib.suppress(ProcessLookupError):  # ended by itself
                os.kill(process, signal.SIGKILL)


def _order(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def remove(folder: Path) -> None:
    """Kill what is in it, wait until it is empty, remove it. Raises TimeoutError after ten seconds."""
    give_up = time.monotonic() + _PATIENCE
    while folder.is_dir():
        kill_all(folder)
        try:
            folder.rmdir()
        except OSError as error:
            if time.monotonic() > give_up:
                raise TimeoutError(f"processes in the control group {folder} do not end") from error
            time.sleep(0.005)
