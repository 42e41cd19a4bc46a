"""Landing changes one ref of the user's repository, and runs nothing of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from adapters.git.mirror import Mirror
from adapters.git.objects.transfer import send
from adapters.git.origin import open_origin
from domain.errors import BranchTaken, RepositoryRefused

HOOKS = (
    "pre-receive", "update", "post-receive", "post-update", "reference-transaction", "post-checkout", "pre-auto-gc",
    "post-index-change", "pre-commit", "post-commit", "post-merge", "proc-receive", "push-to-checkout", "fsmonitor",
)  # fmt: skip


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    return UserRepository(tmp_path / "user")


async def made(ports: GitPorts, user: UserRepository, build: str = "b1") -> str:
    base = await ports.mirrors.fetch_base(user.project(), build=build)
    change = request(base, operation("create", "new.txt", "new"), operation("delete", "README"), build=build)
    return (await ports.workspaces.commit(change)).commit


def everything(user: UserRepository) -> dict[str, bytes]:
    """Every file of the repository and its working tree, but for objects and the one new branch."""
    found = {}
    for path in user.path.rglob("*"):
        name = str(path.relative_to(user.path))
        if path.is_file() and not name.startswith((".git/objects/", ".git/refs/heads/mendwork/")):
            found[name] = path.read_bytes() + str(path.stat().st_mtime_ns).encode()
    return found


def arm(user: UserRepository, folder: Path, marker: Path) -> None:
    """Every hook there is writes to ``marker``, and so does whatever configuration can start."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in HOOKS:
        hook = folder / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {marker}\nexit 1\n")
        hook.chmod(0o755)
    for key, value in {
        "core.fsmonitor": str(folder / "fsmonitor"), "core.hooksPath": str(folder), "gc.auto": "1",
        "gc.autoDetach": "false", "maintenance.auto": "true", "uploadpack.packObjectsHook": str(folder / "update"),
        "filter.evil.clean": str(folder / "update"), "filter.evil.smudge": str(folder / "update"),
        "filter.evil.required": "true", "diff.external": str(folder / "update"), "core.pager": str(folder / "update"),
        "core.alternateRefsCommand": str(folder / "update"), "core.sshCommand": str(folder / "update"),
        "credential.helper": f"!{folder}/update", "receive.denyCurrentBranch": "updateInstead",
    }.items():  # fmt: skip
        user.git("config", key, value)


async def test_nothing_but_the_branch_changes(ports: GitPorts, user: UserRepository) -> None:
    user.git("branch", "other")
    user.git("tag", "v1")
    user.git("pack-refs", "--all")
    (user.path / "app.py").write_text("dirty\n")
    (user.path / "staged").write_text("staged\n")
    user.git("add", "staged")
    (user.path / "untracked").write_text("x")
    status, refs = user.git("status", "--porcelain=v2", "--branch"), user.refs()
    before = everything(user)
    commit = await made(ports, user)
    await ports.landing.land(user.project(), build="b1", commit=commit)
    assert everything(user) == before
    assert user.refs() == refs | {"refs/heads/mendwork/b1": commit}
    assert user.git("status", "--porcelain=v2", "--branch") == status
    user.git("fsck", "--full", "--strict")


async def test_after_a_retract_nothing_is_left(ports: GitPorts, user: UserRepository) -> None:
    user.git("pack-refs", "--all")
    before, refs = everything(user), user.refs()
    commit = await made(ports, user)
    await ports.landing.land(user.project(), build="b1", commit=commit)
    assert await ports.landing.retract(user.project(), build="b1", commit=commit)
    assert everything(user) == before
    assert user.refs() == refs
    assert not (user.path / ".git" / "logs" / "refs" / "heads" / "mendwork").exists()


@pytest.mark.parametrize("place", [".git/hooks", "elsewhere"])
async def test_no_hook_filter_or_maintenance_runs(
    ports: GitPorts, user: UserRepository, tmp_path: Path, place: str
) -> None:
    user.commit({".gitattributes": b"* filter=evil diff=evil\n"})
    marker = tmp_path / "ran"
    arm(user, user.path / place, marker)
    commit = await made(ports, user)
    await ports.landing.land(user.project(), build="b1", commit=commit)
    async with ports.workspaces.checkout("shop", commit, label="x"):
        await ports.sources.diff("shop", await ports.mirrors.head("shop", build="b1"), commit)
    await ports.landing.retract(user.project(), build="b1", commit=commit)
    assert not marker.exists()
    with pytest.raises(AssertionError):
        user.git("update-ref", "refs/heads/x", "HEAD")
    assert marker.exists(), "the hooks of this test never run, whoever calls git"


async def test_a_landing_that_was_cut_between_objects_and_branch_is_repeated(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    commit = await made(ports, user)
    mirror = Mirror(folder=tmp_path / "state" / "mirrors", project="shop")
    origin = await open_origin(user.project(), mirror.git.home)
    for _ in range(2):
        await send(origin, mirror, commit, by=tmp_path)
    assert "refs/heads/mendwork/b1" not in user.refs()
    packs = list((user.path / ".git" / "objects" / "pack").glob("*.pack"))
    for _ in range(2):
        assert await ports.landing.publish(origin, "b1", commit) == commit
    assert await ports.landing.land(user.project(), build="b1", commit=commit) == "mendwork/b1"
    assert list((user.path / ".git" / "objects" / "pack").glob("*.pack")) == packs


async def test_a_branch_that_somebody_made_meanwhile_is_kept(ports: GitPorts, user: UserRepository) -> None:
    commit = await made(ports, user)
    user.git("branch", "mendwork/b1", "main")
    with pytest.raises(BranchTaken, match="mendwork/b1"):
        await ports.landing.land(user.project(), build="b1", commit=commit)
    assert user.refs()["refs/heads/mendwork/b1"] == user.git("rev-parse", "main")


async def test_a_branch_that_comes_between_objects_and_ref_is_kept(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    commit = await made(ports, user)
    mirror = Mirror(folder=tmp_path / "state" / "mirrors", project="shop")
    origin = await open_origin(user.project(), mirror.git.home)
    await send(origin, mirror, commit, by=tmp_path)
    user.git("branch", "mendwork/b1", "main")
    theirs = user.git("rev-parse", "main")
    assert await ports.landing.publish(origin, "b1", commit) == theirs
    assert user.git("rev-parse", "mendwork/b1") == theirs


async def test_a_result_that_the_user_has_under_another_name_lands(ports: GitPorts, user: UserRepository) -> None:
    commit = await made(ports, user)
    await ports.landing.land(user.project(), build="b1", commit=commit)
    user.git("branch", "-m", "mendwork/b1", "kept")
    packs = list((user.path / ".git" / "objects" / "pack").iterdir())
    await ports.landing.land(user.project(), build="b1", commit=commit)
    assert list((user.path / ".git" / "objects" / "pack").iterdir()) == packs
    assert user.git("rev-parse", "mendwork/b1") == user.git("rev-parse", "kept") == commit


async def test_a_branch_named_mendwork_that_came_meanwhile_is_named(ports: GitPorts, user: UserRepository) -> None:
    commit = await made(ports, user)
    user.git("branch", "mendwork")
    with pytest.raises(RepositoryRefused, match="rename that branch"):
        await ports.landing.land(user.project(), build="b1", commit=commit)


async def test_a_branch_that_is_checked_out_is_not_taken_away(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    commit = await made(ports, user)
    await ports.landing.land(user.project(), build="b1", commit=commit)
    user.git("worktree", "add", "--quiet", str(tmp_path / "look at it"), "mendwork/b1")
    assert not await ports.landing.retract(user.project(), build="b1", commit=commit)
    user.git("worktree", "remove", str(tmp_path / "look at it"))
    user.git("pack-refs", "--all")
    assert await ports.landing.retract(user.project(), build="b1", commit=commit)


async def test_a_bare_repository_is_landed_in(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    user.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    user.path = tmp_path / "bare.git"
    commit = await made(ports, user)
    await ports.landing.land(user.project(), build="b1", commit=commit)
    assert user.git("show", "mendwork/b1:new.txt") == "new"
