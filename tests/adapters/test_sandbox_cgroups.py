"""Control groups: version 1 or 2 as this kernel has them for real, version 2 also on a tree of plain files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.sandbox.cgroup_folder import Limits
from adapters.sandbox.cgroups import ControlGroups, Group, label_name

LIMITS = Limits(memory=50_000_000, processes=8)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


class Tree:
    """A kernel of plain files with version 2. ``enable`` says which controllers a group hands on to its children."""

    def __init__(self, root: Path, *, here: str = "/user/app.scope") -> None:
        self.root = root / "cgroup"
        self.membership = root / "membership"
        self.membership.write_text(f"0::{here}\n")
        for folder in (self.root, *self._below(here)):
            folder.mkdir(parents=True)
            self.enable(folder, "")
        (self.root / "cgroup.controllers").write_text("cpu memory pids")
        self.here = self.root / here.strip("/")

    def _below(self, here: str) -> list[Path]:
        inside = self.root / here.strip("/")
        return [p for p in (*reversed(inside.parents), inside) if p.is_relative_to(self.root) and p != self.root]

    def enable(self, folder: Path, controllers: str) -> None:
        (folder / "cgroup.subtree_control").write_text(controllers)

    def refuse(self, folder: Path) -> None:
        """As the kernel does where a group holds processes itself: nothing can be handed on."""
        (folder / "cgroup.subtree_control").unlink()
        (folder / "cgroup.subtree_control").mkdir()

    def groups(self) -> ControlGroups:
        return ControlGroups(root=self.root, membership=self.membership)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def only_folder(group: Group) -> Path:
    (folder,) = set(group.folders.values())
    return folder


def test_version_2_sets_both_limits_in_one_group(tree: Tree) -> None:
    tree.enable(tree.here, "memory pids")
    group = tree.groups().create("a label", limits=LIMITS)
    folder = only_folder(group)
    assert folder.parent == tree.here
    assert folder.name.startswith(label_name("a label") + ".")
    files = {file.name: file.read_text() for file in folder.iterdir()}
    assert files == {
        "memory.max": "50000000",
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "pids.max": "8",
    }
    assert group.entrances() == (folder / "cgroup.procs",)


def test_version_2_hands_on_the_controllers_that_are_lacking(tree: Tree) -> None:
    tree.enable(tree.here, "memory")
    tree.groups().create("a", limits=LIMITS)
    assert (tree.here / "cgroup.subtree_control").read_text() == "+pids"


def test_a_group_that_holds_processes_is_passed_over_for_its_parent(tree: Tree) -> None:
    tree.refuse(tree.here)
    tree.enable(tree.here.parent, "memory pids")
    assert only_folder(tree.groups().create("a", limits=LIMITS)).parent == tree.here.parent


def test_a_path_that_the_mount_does_not_show_is_passed_over_for_the_top(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.membership.write_text("0::/docker/not-shown-in-here\n")
    assert only_folder(tree.groups().create("a", limits=LIMITS)).parent == tree.root


def test_one_limit_alone_can_be_had(tree: Tree) -> None:
    group = tree.groups().create("a", limits=LIMITS, controllers={"pids"})
    assert [file.name for file in only_folder(group).iterdir()] == ["pids.max"]
    assert group.killed_for_memory() == 0


def test_where_nothing_is_writable_both_limits_are_declared_missing(tree: Tree) -> None:
    for folder in (tree.here, tree.here.parent, tree.root):
        tree.refuse(folder)
    missing = tree.groups().missing()
    assert missing.keys() == {"memory", "pids"}
    assert "systemd-run --user --scope -p Delegate=yes" in missing["memory"]
    assert "--allow-missing pids" in missing["pids"]


@pytest.mark.parametrize("membership", ["", "0::/\n", "1:name=systemd:/\n", "3:memory:/a\n4:pids:/a\n0::/\n"])
def test_a_kernel_without_these_controllers_is_declared_missing(tmp_path: Path, membership: str) -> None:
    (tmp_path / "membership").write_text(membership)
    groups = ControlGroups(root=tmp_path / "none", membership=tmp_path / "membership")
    assert groups.missing().keys() == {"memory", "pids"}


def test_the_limit_that_was_hit_is_read(tree: Tree) -> None:
    group = tree.groups().create("a", limits=LIMITS)
    assert (group.killed_for_memory(), group.refused_forks()) == (0, 0)
    (only_folder(group) / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n")
    (only_folder(group) / "pids.events").write_text("max 7\n")
    assert (group.killed_for_memory(), group.refused_forks()) == (2, 7)


def test_a_group_is_killed_by_the_kernel_where_it_can(tree: Tree, child: subprocess.Popen[bytes]) -> None:
    group = tree.groups().create("a", limits=LIMITS)
    (only_folder(group) / "cgroup.kill").write_text("")
    (only_folder(group) / "cgroup.procs").write_text(f"{child.pid}\n")
    group.kill()
    assert (only_folder(group) / "cgroup.kill").read_text() == "1"
    assert child.poll() is None


def test_an_older_kernels_group_is_killed_process_by_process(tree: Tree, child: subprocess.Popen[bytes]) -> None:
    group = tree.groups().create("a", limits=LIMITS)
    (only_folder(group) / "cgroup.procs").write_text(f"0\n{child.pid}\n")
    group.kill()
    assert child.wait(timeout=10) == -9
    assert (only_folder(group) / "pids.max").read_text() == "0"


def test_this_machine_limits_kills_and_clears_up(child: subprocess.Popen[bytes]) -> None:
    groups = ControlGroups()
    available = {"memory", "pids"} - groups.missing().keys()
    label = f"test-{uuid4().hex}"
    group = groups.create(label, limits=LIMITS, controllers=available)
    for entrance in group.entrances():
        entrance.write_text(str(child.pid))
    groups.sweep(label)
    assert not any(folder.exists() for folder in group.folders.values())
    assert (child.wait(timeout=10) == -9) if available else (child.poll() is None)


def test_sweeping_leaves_the_groups_of_other_labels(child: subprocess.Popen[bytes]) -> None:
    groups = ControlGroups()
    available = {"memory", "pids"} - groups.missing().keys()
    group = groups.create(f"test-{uuid4().hex}", limits=LIMITS, controllers=available)
    for entrance in group.entrances():
        entrance.write_text(str(child.pid))
    groups.sweep("another label")
    assert all(folder.exists() for folder in group.folders.values())
    assert child.poll() is None
    group.remove()


def test_what_a_dead_worker_left_is_swept_whatever_its_label(tree: Tree) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    orphan = tree.here / f"{label_name('x')}.{dead.pid}.0"
    orphan.mkdir()
    tree.groups().sweep("another label")
    assert not orphan.exists()


def test_labels_make_safe_names() -> None:
    assert label_name("../a b/c\n") != label_name("../a b/d")
    assert label_name("../a b/c\n").replace("-", "").isalnum()
    assert len(label_name("x" * 10_000)) < 64
