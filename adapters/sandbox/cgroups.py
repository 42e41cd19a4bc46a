"""Memory and process limits by the kernel's control groups, version 1, version 2, or one controller of each."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from adapters.sandbox.cgroup_folder import MEMORY, PIDS, Hierarchy, Limits, kill_all, make, read, remove

BOTH = frozenset({MEMORY, PIDS})
CURE = (
    "start Mendwork as root or under `systemd-run --user --scope -p Delegate=yes`, "
    "or accept it with `--allow-missing {0}`"
)
_numbers = itertools.count()


def label_name(label: str) -> str:
    """The name that everything of one label bears: short, and safe as a host or folder name."""
    return "mendwork-" + hashlib.sha256(label.encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The folders of one run, by controller; both in one folder with version 2."""

    folders: Mapping[str, Path]

    def entrances(self) -> tuple[Path, ...]:
        """The files that a process writes its id into to be held by every limit."""
        return tuple(folder / "cgroup.procs" for folder in dict.fromkeys(self.folders.values()))

    def killed_for_memory(self) -> int:
        """How many processes the kernel killed because the memory was used up."""
        return self._count(MEMORY, ("memory.events", "memory.oom_control"), "oom_kill")

    def refused_forks(self) -> int:
        """How many new processes and threads the kernel refused."""
        return self._count(PIDS, ("pids.events",), "max")

    def kill(self) -> None:
        """Send SIGKILL to every process; the group may take a moment to become empty."""
        for folder in dict.fromkeys(self.folders.values()):
            kill_all(folder)

    def remove(self) -> None:
        """Kill what is left, wait until it is gone, remove the folders. Raises TimeoutError after ten seconds."""
        for folder in dict.fromkeys(self.folders.values()):
            remove(folder)

    def _count(self, controller: str, files: tuple[str, ...], field: str) -> int:
        for file in files if controller in self.folders else ():
            for line in read(self.folders[controller] / file).splitlines():
                name, _, value = line.partition(" ")
                if name == field:
                    return int(value)
        return 0


class ControlGroups:
    """Makes, finds and removes groups. ``root`` is the kernel's mount point, ``membership`` the file that says where
    this process is in each hierarchy."""

    def __init__(self, *, root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> None:
        self._root = root
        self._membership = membership

    def missing(self) -> dict[str, str]:
        """The limits that cannot be had here, each with its cure; found out by making a group."""
        lacking = {}
        for controller, word in ((MEMORY, "memory"), (PIDS, "the number of processes")):
            try:
                group = self.create("probe", limits=Limits(memory=1 << 30, processes=64), controllers={controller})
                group.remove()
            except OSError:
                cure = CURE.format(controller)
                lacking[controller] = f"{word} cannot be limited here, no control group is writable: {cure}"
        return lacking

    def create(self, label: str, *, limits: Limits, controllers: Collection[str] = BOTH) -> Group:
        """An empty group with its limits set. Raises OSError when a controller cannot be had."""
        name = f"{label_name(label)}.{os.getpid()}.{next(_numbers)}"
        folders: dict[str, Path] = {}
        try:
            for hierarchy in self._hierarchies():
                wanted = hierarchy.controllers.intersection(controllers)
                if wanted:
                    folders |= dict.fromkeys(wanted, make(hierarchy, name, limits, wanted))
            if len(folders) < len(controllers):
                raise FileNotFoundError("no control group controller for " + ", ".join({*controllers} - {*folders}))
        except OSError:
            Group(folders=folders).remove()
            raise
        return Group(folders=folders)

    def sweep(self, label: str) -> None:
        """End what an earlier run of ``label``, or a process of ours that is dead, left behind."""
        for hierarchy in self._hierarchies():
            for parent in hierarchy.parents():
                for folder in sorted(parent.glob("mendwork-*.*.*")):
                    if folder.name.startswith(label_name(label) + ".") or _is_orphan(folder):
                        remove(folder)

    def end_of(self, maker: int, *, born: float) -> int:
        """End what the process ``maker``, which is dead, made after ``born`` (seconds since 1970), and count it."""
        ended = set()
        for hierarchy in self._hierarchies():
            for parent in hierarchy.parents():
                for folder in sorted(parent.glob(f"mendwork-*.{maker}.*")):
                    if folder.stat().st_mtime >= born:
                        remove(folder)
                        ended.add(folder.name)
        return len(ended)

    def _hierarchies(self) -> list[Hierarchy]:
        paths: dict[str, str] = {}
        for line in read(self._membership).splitlines():
            _, names, path = line.split(":", 2)
            paths |= dict.fromkeys(names.split(","), path)
        old = [
            Hierarchy(mount=self._root / name, here=paths[name], controllers=frozenset({name}), unified=False)
            for name in sorted(BOTH.intersection(paths))
        ]
        rest = BOTH.difference(paths)
        if not rest or "" not in paths or not (self._root / "cgroup.controllers").exists():
            return old
        return [*old, Hierarchy(mount=self._root, here=paths[""], controllers=rest, unified=True)]


def _is_orphan(folder: Path) -> bool:
    maker = folder.name.split(".")[1]
    return maker.isdigit() and not Path("/proc", maker).exists()
