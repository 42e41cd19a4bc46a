"""Checkouts come fresh and go completely, whatever happened inside or to the worker that made them."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import GitPorts, open_git
from adapters.git.folders import private_index, remove_tree
from domain.errors import RepositoryRefused


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    return UserRepository(tmp_path / "user")


async def based(ports: GitPorts, user: UserRepository) -> str:
    return await ports.mirrors.fetch_base(user.project(), build="b1")


async def test_a_checkout_is_private_and_leaves_no_index(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    base = await based(ports, user)
    work = tmp_path / "state" / "work"
    async with ports.workspaces.checkout("shop", base, label="../../b1 / größe") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert list(work.iterdir()) == [folder]
    assert list(work.iterdir()) == []


async def test_links_stay_links(ports: GitPorts, user: UserRepository) -> None:
    (user.path / "out").symlink_to("/etc/passwd")
    (user.path / "folder").symlink_to("lib")
    base = user.commit({})
    await based(ports, user)
    async with ports.workspaces.checkout("shop", base, label="x") as folder:
        assert os.readlink(folder / "out") == "/etc/passwd"
        assert os.readlink(folder / "folder") == "lib"


async def test_what_a_killed_worker_left_is_removed_with_its_label(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base = await based(ports, user)
    killed = ports.workspaces.checkout("shop", base, label="b1/t1/1")
    left = await killed.__aenter__()
    (left / "read only").mkdir(mode=0o500)
    async with open_git(tmp_path / "state").workspaces.checkout("shop", base, label="b1/t1/1") as fresh:
        assert not left.exists()
        assert not (fresh / "read only").exists()
    await killed.__aexit__(None, None, None)


async def test_a_folder_that_a_stranded_process_still_writes_to_goes(ports: GitPorts, user: UserRepository) -> None:
    base = await based(ports, user)
    stop, wrote = threading.Event(), threading.Event()

    def write(folder: Path) -> None:
        number = 0
        while not stop.is_set() and folder.exists():
            number += 1
            try:
                (folder / f"f{number}").write_text("x")
            except FileNotFoundError:
                return
            wrote.set()

    async with ports.workspaces.checkout("shop", base, label="x") as folder:
        writer = threading.Thread(target=write, args=(folder,))
        writer.start()
        await asyncio.to_thread(wrote.wait)
    assert not folder.exists()
    stop.set()
    writer.join()


async def test_a_cancelled_caller_leaves_no_folder(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    base = await based(ports, user)
    inside = asyncio.Event()

    async def work() -> None:
        async with ports.workspaces.checkout("shop", base, label="x"):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list((tmp_path / "state" / "work").iterdir()) == []


async def test_five_thousand_files_come_as_fast_as_a_plain_copy(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base = user.commit({f"d{n % 50}/s{n % 7}/f{n}.py": b"x = %d\n" % (n % 50) for n in range(5000)})
    await based(ports, user)
    for again in range(10):  # a busy machine may hold one of the two up
        began = time.monotonic()
        async with ports.workspaces.checkout("shop", base, label="x") as folder:
            taken = time.monotonic() - began
            began = time.monotonic()
            shutil.copytree(folder, copy := tmp_path / f"copy-{again}")
            copied = time.monotonic() - began
        assert sum(len(files) for _, _, files in os.walk(copy)) == 5003
        if taken < 2 * copied:
            return
    pytest.fail(f"a checkout takes {taken:.2f} s, a copy {copied:.2f} s")


async def test_a_tree_with_a_git_folder_in_it_is_not_checked_out(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    blob = user.git("hash-object", "-w", "app.py")
    (tmp_path / "tree").write_bytes(b"100644 config\0" + bytes.fromhex(blob))
    inner = user.git("hash-object", "-w", "-t", "tree", "--literally", str(tmp_path / "tree"))
    (tmp_path / "tree").write_bytes(b"40000 .git\0" + bytes.fromhex(inner))
    outer = user.git("hash-object", "-w", "-t", "tree", "--literally", str(tmp_path / "tree"))
    commit = user.git("commit-tree", "-m", "evil", outer)
    user.git("update-ref", "refs/heads/main", commit)
    await based(ports, user)
    with pytest.raises(RepositoryRefused, match="could not check out"):
        async with ports.workspaces.checkout("shop", commit, label="x"):
            pass
    assert list((tmp_path / "state" / "work").iterdir()) == []


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of a user to whom modes matter, and this process as that user: root could remove anything."""
    folder = Path(tempfile.mkdtemp())
    before = os.geteuid()
    if before == 0:
        os.chown(folder, 12345, -1)
        os.seteuid(12345)
    yield folder
    os.seteuid(before)
    remove_tree(folder)


def test_removal_copes_with_depth_locks_and_links(unprivileged: Path) -> None:
    tmp_path = unprivileged
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    doomed = tmp_path / "doomed"
    doomed.mkdir()
    (doomed / "link").symlink_to(tmp_path / "kept")
    (doomed / "locked" / "in").mkdir(parents=True)
    (doomed / "locked" / "in" / "file").write_text("x")
    (doomed / "locked" / "in").chmod(0)
    (doomed / "locked").chmod(0o500)
    os.mkfifo(doomed / "pipe")
    here = os.open(doomed, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        (below, here) = (here, os.open("d", os.O_RDONLY, dir_fd=here))
        os.close(below)
    os.close(here)
    remove_tree(doomed)
    assert not os.path.lexists(doomed)
    assert (tmp_path / "kept" / "file").read_text() == "kept"


def test_removing_a_link_keeps_its_target(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == [tmp_path / "kept"]


def test_indexes_of_killed_workers_go_after_a_day(tmp_path: Path) -> None:
    for name, age in (("index-old", 100_000), ("index-new", 0)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age, time.time() - age))
    with private_index(tmp_path) as index:
        assert index.parent.parent == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["index-new"]
