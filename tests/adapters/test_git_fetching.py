"""Fetching from every kind of repository that a user has, and from none that cannot work."""

from __future__ import annotations

import asyncio
import shutil
import stat
from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from adapters.git.mirror import Mirror
from domain.build.project import Project
from domain.errors import Overtaken, RepositoryRefused


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    return UserRepository(tmp_path / "user")


def at(path: Path, branch: str = "main") -> Project:
    return Project(name="shop", repository=str(path), branch=branch, test=("true",))


async def refused(ports: GitPorts, project: Project) -> str:
    with pytest.raises(RepositoryRefused) as error:
        await ports.mirrors.fetch_base(project, build="b1")
    sentence = str(error.value)
    assert "\n" not in sentence
    assert "\x1b" not in sentence
    return sentence


async def test_a_mirror_is_private_and_bare(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    await ports.mirrors.fetch_base(user.project(), build="b1")
    mirror = tmp_path / "state" / "mirrors" / "shop.git"
    assert (mirror / "HEAD").is_file()
    assert not (mirror / "hooks").exists()
    for folder in (tmp_path / "state" / "mirrors", tmp_path / "state" / "work", mirror):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_a_second_build_gets_what_was_committed_since(ports: GitPorts, user: UserRepository) -> None:
    await ports.mirrors.fetch_base(user.project(), build="b1")
    later = user.commit({"later": b"1"})
    assert await ports.mirrors.fetch_base(user.project(), build="b2") == later
    user.git("reset", "--quiet", "--hard", "HEAD~1")
    forced = user.commit({"instead": b"1"})
    assert await ports.mirrors.fetch_base(user.project(), build="b3") == forced


async def test_racing_first_fetches_agree(ports: GitPorts, user: UserRepository) -> None:
    head = user.git("rev-parse", "HEAD")
    builds = ["b1", "b1", "b1", "b2", "b3"]
    bases = await asyncio.gather(*(ports.mirrors.fetch_base(user.project(), build=build) for build in builds))
    assert set(bases) == {head}


async def test_a_worker_killed_between_base_and_head_is_made_good(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base = await ports.mirrors.fetch_base(user.project(), build="b1")
    mirror = Mirror(folder=tmp_path / "state" / "mirrors", project="shop")
    assert (await mirror.update_ref("refs/mendwork/builds/b1/head", "", base)).code == 0
    assert await ports.mirrors.fetch_base(user.project(), build="b1") == base
    assert await ports.mirrors.head("shop", build="b1") == base


async def test_a_pinned_build_does_not_need_the_repository(ports: GitPorts, user: UserRepository) -> None:
    base = await ports.mirrors.fetch_base(user.project(), build="b1")
    shutil.rmtree(user.path)
    assert await ports.mirrors.fetch_base(user.project(), build="b1") == base


async def test_bare_worktree_and_dirty_repositories_work(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    head = user.git("rev-parse", "HEAD")
    (user.path / "app.py").write_text("dirty")
    user.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    user.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "linked"))
    places = [user.path, user.path / ".git", tmp_path / "bare.git", tmp_path / "linked"]
    for number, place in enumerate(places):
        assert await ports.mirrors.fetch_base(at(place), build=f"b{number}") == head
    assert await ports.mirrors.fetch_base(at(tmp_path / "linked", "side"), build="side") == head


async def test_packed_refs_and_odd_branch_names_work(ports: GitPorts, user: UserRepository) -> None:
    for name in ("feature/größe", "it's;odd&$(touch)", "-dash"):
        user.git("update-ref", f"refs/heads/{name}", "HEAD")
    user.git("pack-refs", "--all")
    for number, name in enumerate(("feature/größe", "it's;odd&$(touch)", "-dash")):
        base = await ports.mirrors.fetch_base(user.project(branch=name), build=f"b{number}")
        assert base == user.git("rev-parse", "HEAD")


async def test_what_cannot_work_is_said_in_one_sentence(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("x")
    UserRepository(tmp_path / "empty", commit=False)
    assert "does not exist" in await refused(ports, at(tmp_path / "nowhere"))
    assert "not a git repository" in await refused(ports, at(tmp_path / "plain"))
    assert "not a git repository" in await refused(ports, at(tmp_path / "file"))
    assert "not a git repository" in await refused(ports, at(user.path / "lib"))
    assert "not an absolute path" in await refused(ports, at(Path("user")))
    assert "no commit on any branch" in await refused(ports, at(tmp_path / "empty"))
    assert not (tmp_path / "state" / "mirrors" / "shop.git").exists()


async def test_a_missing_branch_names_a_few_that_exist(ports: GitPorts, user: UserRepository) -> None:
    for number in range(9):
        user.git("branch", f"b{number}")
    sentence = await refused(ports, user.project(branch="master"))
    assert "no branch 'master'" in sentence
    assert "and 4 more" in sentence
    for name in ("ma*", "../heads/main", "--all", "main^{tree}", "\x1b[31m", "refs/heads/main"):
        assert "no branch" in await refused(ports, user.project(branch=name))


async def test_a_branch_named_mendwork_is_in_the_way(ports: GitPorts, user: UserRepository) -> None:
    user.git("branch", "mendwork")
    assert "rename that branch" in await refused(ports, user.project())
    user.git("branch", "-m", "mendwork", "mendwork/b1/part")
    assert "rename that branch" in await refused(ports, user.project())


async def test_a_broken_repository_is_said_in_one_sentence(ports: GitPorts, user: UserRepository) -> None:
    shutil.rmtree(user.path / ".git" / "objects")
    (user.path / ".git" / "objects").mkdir()
    assert "could not" in await refused(ports, user.project())


async def test_an_unknown_extension_is_said_in_one_sentence(ports: GitPorts, user: UserRepository) -> None:
    user.git("config", "core.repositoryFormatVersion", "1")
    user.git("config", "extensions.fromTheFuture", "true")
    assert "extension" in await refused(ports, user.project())


async def test_the_lock_of_a_user_is_waited_for(ports: GitPorts, user: UserRepository) -> None:
    base = await ports.mirrors.fetch_base(user.project(), build="b1")
    made = await ports.workspaces.commit(request(base, operation("create", "new", "1")))
    lock = user.path / ".git" / "refs" / "heads" / "mendwork" / "b1.lock"
    lock.parent.mkdir()
    lock.touch()
    with pytest.raises(Overtaken, match="another git process"):
        await ports.landing.land(user.project(), build="b1", commit=made.commit)
    assert lock.exists()
