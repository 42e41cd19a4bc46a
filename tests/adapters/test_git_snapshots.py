"""Git keeps what snapshots need: through its own collection, and through a worker that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.compliance.repository.snapshots import SnapshotPinsCompliance, SnapshotPorts
from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git import REGISTRY
from adapters.git.adapter import GitPorts, open_git
from adapters.registry import resolve
from domain.errors import InvalidName, RepositoryRefused

ROOT = Path(__file__).resolve().parents[2]
PINNING = """
import asyncio, sys
from pathlib import Path
from adapters.git.adapter import open_git
from adapters.git.mirror import Mirror

async def hold():
    mirrors = open_git(Path(sys.argv[1])).mirrors
    mirror = Mirror(folder=mirrors.folder, project="shop")
    prefix = "refs/mendwork/snapshots/b1/1"
    async with mirror.lock("refs"):
        for number in (1, 2):
            path = mirror.path / prefix / f"{number}.lock"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        print("holding", flush=True)
        await asyncio.sleep(60)

asyncio.run(hold())
"""
"""What is left when a git that writes pins is killed: its own lock files."""


class TestGit(SnapshotPinsCompliance):
    @pytest.fixture
    def ports(self, tmp_path: Path) -> SnapshotPorts:
        opened: SnapshotPorts = resolve(REGISTRY, "workspace", "git")(tmp_path / "state")
        return opened


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    return UserRepository(tmp_path / "user")


@pytest.fixture
def git(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


def mirror_of(tmp_path: Path) -> UserRepository:
    mirror = UserRepository.__new__(UserRepository)
    mirror.path = tmp_path / "state" / "mirrors" / "shop.git"
    return mirror


async def written(git: GitPorts, base: str, path: str = "new") -> str:
    return (await git.workspaces.commit(request(base, operation("create", path, "1")))).commit


async def test_a_collection_takes_what_no_snapshot_holds_and_nothing_else(
    git: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base = await git.mirrors.fetch_base(user.project(), build="b1")
    pinned, loose = await written(git, base, "pinned"), await written(git, base, "loose")
    await git.mirrors.pin_snapshot("shop", build="b1", number=3, commits=(base, pinned))
    await git.mirrors.forget("shop", build="b1")
    mirror = mirror_of(tmp_path)
    assert mirror.refs() == {
        "refs/mendwork/snapshots/b1/3/1": base,
        "refs/mendwork/snapshots/b1/3/2": pinned,
    }
    mirror.git("gc", "--quiet", "--prune=now")
    await git.mirrors.restore(user.project(), build="b2", base=base, head=pinned)
    assert await git.sources.read("shop", pinned, "pinned") == b"1"
    with pytest.raises(RepositoryRefused, match=f"no commit {loose}"):
        await git.mirrors.pin_snapshot("shop", build="b1", number=4, commits=(loose,))
    await git.mirrors.unpin("shop", build="b1", number=3)
    await git.mirrors.forget("shop", build="b2")
    mirror.git("gc", "--quiet", "--prune=now")
    with pytest.raises(RepositoryRefused, match="not kept any more"):
        await git.mirrors.restore(user.project(), build="b3", base=base, head=pinned)


async def test_pins_that_git_packed_are_found_and_removed(git: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    base = await git.mirrors.fetch_base(user.project(), build="b1")
    await git.mirrors.pin_snapshot("shop", build="b1", number=1, commits=(base,))
    mirror_of(tmp_path).git("pack-refs", "--all")
    await git.mirrors.pin_snapshot("shop", build="b1", number=1, commits=(base,))
    assert await git.mirrors.snapshots("shop") == (("b1", 1),)
    await git.mirrors.unpin("shop", build="b1", number=1)
    assert await git.mirrors.snapshots("shop") == ()


def kill_one_that_pins(state: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PINNING, str(state)], cwd=ROOT, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"holding\n"
        os.kill(killed.pid, signal.SIGKILL)


async def test_a_writer_that_is_killed_leaves_no_lock_behind(
    git: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base = await git.mirrors.fetch_base(user.project(), build="b1")
    head = await written(git, base)
    kill_one_that_pins(tmp_path / "state")
    for _ in range(2):
        await git.mirrors.pin_snapshot("shop", build="b1", number=1, commits=(base, head))
    assert sorted(mirror_of(tmp_path).refs()) == [
        "refs/mendwork/builds/b1/base",
        f"refs/mendwork/builds/b1/candidates/{head}",
        "refs/mendwork/builds/b1/head",
        "refs/mendwork/snapshots/b1/1/1",
        "refs/mendwork/snapshots/b1/1/2",
    ]


async def test_a_restored_build_does_not_touch_the_users_repository(git: GitPorts, user: UserRepository) -> None:
    base = await git.mirrors.fetch_base(user.project(), build="b1")
    before = user.refs()
    await git.mirrors.restore(user.project(), build="b2", base=base, head=base)
    assert user.refs() == before


async def test_a_project_without_a_mirror_has_no_snapshots(git: GitPorts) -> None:
    assert await git.mirrors.snapshots("shop") == ()
    await git.mirrors.unpin("shop", build="b1", number=1)
    with pytest.raises(InvalidName):
        await git.mirrors.snapshots("../shop")
