"""Mirrors kept small: what no ref holds goes once it is old, beside fetches and commits, and nothing else ever does."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from adapters.git.mirror import Mirror
from adapters.git.objects.keeping import GitKeeping
from domain.errors import RepositoryRefused

DAY = 86_400


class Scene:
    """A user's repository, its mirror, and builds b1, b2, … on it."""

    def __init__(self, folder: Path) -> None:
        self.user = UserRepository(folder / "user")
        self.ports: GitPorts = open_git(folder / "state")
        self.mirror = folder / "state" / "mirrors" / "shop.git"
        self.keeping = GitKeeping(folder=folder / "state" / "mirrors")

    async def build(self, name: str, content: str = "") -> str:
        """A build with one commit on its head."""
        base = await self.ports.mirrors.fetch_base(self.user.project(), build=name)
        text = (content or name) * 2_000
        change = request(base, operation("create", f"{name}.txt", text), build=name, file_bytes=1_000_000)
        made = await self.ports.workspaces.commit(change)
        await self.ports.mirrors.advance("shop", build=name, old=base, new=made.commit)
        return made.commit

    async def has(self, commit: str) -> bool:
        try:
            await Mirror(folder=self.mirror.parent, project="shop").require(commit)
        except RepositoryRefused:
            return False
        return True

    def age(self, days: float) -> None:
        """Everything in the mirror was written so long ago."""
        at = time.time() - days * DAY
        for path in (self.mirror / "objects").rglob("*"):
            os.utime(path, (at, at))

    async def tidy(self, *, older_than: float = 1) -> int:
        return await self.keeping.tidy("shop", before=int((time.time() - older_than * DAY) * 1000))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_builds_and_snapshots_are_listed_oldest_first(scene: Scene) -> None:
    commits = [await scene.build(name) for name in ("build-shop-2", "build-shop-10", "build-shop-1")]
    for number in (1, 2, 10):
        await scene.ports.mirrors.pin_snapshot("shop", build="build-shop-1", number=number, commits=[commits[2]])
    pins = await scene.keeping.pins("shop")
    assert pins.builds == ("build-shop-1", "build-shop-2", "build-shop-10")
    assert pins.snapshots == ("build-shop-1@1", "build-shop-1@2", "build-shop-1@10")
    assert pins.bytes > 0
    assert list(await scene.keeping.projects()) == ["shop"]


async def test_a_dropped_build_goes_with_its_old_commits_and_the_others_stay(scene: Scene) -> None:
    gone, stays = await scene.build("b1", os.urandom(50).hex()), await scene.build("b2")
    scene.age(3)
    assert await scene.keeping.drop("shop", builds=["b1"], snapshots=[]) >= 3
    await scene.tidy()
    assert (await scene.has(gone), await scene.has(stays)) == (False, True)
    assert (await scene.keeping.pins("shop")).builds == ("b2",)
    assert await scene.ports.sources.read("shop", stays, "b2.txt") == b"b2" * 2_000
    assert await scene.keeping.drop("shop", builds=["b1"], snapshots=["b1@1"]) == 0, "gone already is fine"


async def test_what_a_snapshot_pins_outlives_its_build(scene: Scene) -> None:
    commit = await scene.build("b1")
    await scene.ports.mirrors.pin_snapshot("shop", build="b1", number=1, commits=[commit])
    await scene.ports.mirrors.pin_snapshot("shop", build="b1", number=10, commits=[commit])
    scene.age(3)
    await scene.keeping.drop("shop", builds=["b1"], snapshots=["b1@1"])
    await scene.tidy()
    assert await scene.has(commit)
    assert (await scene.keeping.pins("shop")).snapshots == ("b1@10",)
    await scene.keeping.drop("shop", builds=[], snapshots=["b1@10"])
    scene.age(3)
    await scene.tidy()
    assert not await scene.has(commit)


async def test_young_objects_without_a_ref_stay(scene: Scene) -> None:
    """A commit is made first and pinned a moment later."""
    commit = await scene.build("b1")
    await scene.keeping.drop("shop", builds=["b1"], snapshots=[])
    await scene.tidy()
    assert await scene.has(commit)


async def test_young_objects_without_a_ref_stay_out_of_a_pack_too(scene: Scene) -> None:
    commit = await scene.build("b1")
    await scene.tidy()
    assert not list((scene.mirror / "objects").glob("??/*")), "all is packed"
    await scene.keeping.drop("shop", builds=["b1"], snapshots=[])
    await scene.tidy()
    assert await scene.has(commit)
    scene.age(3)
    await scene.tidy()
    assert not await scene.has(commit)


async def test_builds_go_on_beside_it(scene: Scene) -> None:
    """Fetching, committing and moving heads while refs go and objects are packed and pruned, again and again."""
    await scene.build("b0")
    over = asyncio.Event()

    async def keep_house() -> int:
        rounds = 0
        while not over.is_set():
            await scene.tidy(older_than=0.01)
            rounds += 1
        return rounds

    house = asyncio.create_task(keep_house())
    try:
        made: list[str] = []
        for number in range(1, 7):
            scene.user.commit({f"user-{number}": str(number).encode()})
            made += await asyncio.gather(scene.build(f"b{number}"), scene.build(f"c{number}"))
            await scene.keeping.drop("shop", builds=[f"c{number}"], snapshots=[])
    finally:
        over.set()
        assert await house > 0
    for number, commit in enumerate(made[::2], 1):
        assert await scene.ports.mirrors.head("shop", build=f"b{number}") == commit
    fsck = UserRepository.__new__(UserRepository)
    fsck.path = scene.mirror
    assert "missing" not in fsck.git("fsck", "--connectivity-only", "--no-dangling")


async def test_a_builds_own_commits_are_measured_without_its_base(scene: Scene) -> None:
    scene.user.commit({"large": os.urandom(400_000)})
    await scene.build("b1", os.urandom(200).hex())
    size = await scene.keeping.commits("shop", build="b1")
    assert 200 < size < 100_000
    assert await scene.keeping.commits("shop", build="unknown") == 0


async def test_a_project_without_a_mirror_has_nothing_to_keep(scene: Scene) -> None:
    assert await scene.keeping.tidy("cafe", before=0) == 0
    assert await scene.keeping.drop("cafe", builds=["b1"], snapshots=[]) == 0
    assert list(await scene.keeping.projects()) == []


async def test_packing_frees_what_many_loose_objects_take(scene: Scene) -> None:
    for number in range(8):
        await scene.build(f"b{number}")
    assert await scene.tidy() > 0
    assert await scene.tidy() == 0
