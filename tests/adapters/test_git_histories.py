"""Shallow, rewritten and thrown away histories: fetched and landed in, or refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from domain.build.project import Project
from domain.errors import RepositoryRefused


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    return UserRepository(tmp_path / "user")


def shallow_project(tmp_path: Path) -> Project:
    return Project(name="shop", repository=str(tmp_path / "shallow"), branch="main", test=("true",))


async def made(ports: GitPorts, user: UserRepository, build: str = "b1") -> str:
    base = await ports.mirrors.fetch_base(user.project(), build=build)
    change = request(base, operation("create", "new.txt", "new"), operation("delete", "README"), build=build)
    return (await ports.workspaces.commit(change)).commit


async def test_a_shallow_repository_works_to_the_end(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    user.commit({"second": b"2"})
    user.git("clone", "--quiet", "--depth=1", f"file://{user.path}", str(tmp_path / "shallow"))
    shallow = shallow_project(tmp_path)
    base = await ports.mirrors.fetch_base(shallow, build="b1")
    made = await ports.workspaces.commit(request(base, operation("create", "new", "1")))
    await ports.landing.land(shallow, build="b1", commit=made.commit)
    user.path = tmp_path / "shallow"
    assert user.git("log", "--format=%H", "mendwork/b1").split() == [made.commit, base]


async def test_a_shallow_fetch_survives_the_lock_of_a_killed_one(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    await ports.mirrors.fetch_base(user.project(), build="b1")
    head = user.commit({"second": b"2"})
    user.git("clone", "--quiet", "--depth=1", f"file://{user.path}", str(tmp_path / "shallow"))
    mirror = tmp_path / "state" / "mirrors" / "shop.git"
    (mirror / "shallow.lock").touch()
    (mirror / "packed-refs.lock").touch()
    heads = mirror / "refs" / "mendwork" / "builds" / "b2"
    heads.mkdir(parents=True)
    (heads / "head.lock").touch()
    assert await ports.mirrors.fetch_base(shallow_project(tmp_path), build="b2") == head
    assert await ports.mirrors.head("shop", build="b2") == head


async def test_a_repository_of_sha256_objects_works(ports: GitPorts, tmp_path: Path) -> None:
    user = UserRepository(tmp_path / "new", "--object-format=sha256")
    base = await ports.mirrors.fetch_base(user.project(), build="b1")
    made = await ports.workspaces.commit(request(base, operation("delete", "README")))
    await ports.landing.land(user.project(), build="b1", commit=made.commit)
    assert len(made.commit) == 64
    assert user.git("rev-parse", "mendwork/b1") == made.commit


async def test_a_base_that_the_user_threw_away_comes_along(ports: GitPorts, user: UserRepository) -> None:
    commit = await made(ports, user)
    user.git("checkout", "--quiet", "--orphan", "fresh")
    user.commit({"app.py": b"rewritten\n"})
    user.git("branch", "-D", "main")
    user.git("reflog", "expire", "--expire=now", "--all")
    user.git("gc", "--quiet", "--prune=now")
    await ports.landing.land(user.project(), build="b1", commit=commit)
    assert user.git("show", "mendwork/b1:app.py") == "one\ntwo\nthree"
    user.git("fsck", "--full", "--strict")


async def test_a_shallow_repository_gets_the_old_blobs_that_a_result_brings_back(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    user.commit({"old": b"an old text\n"})
    (user.path / "old").unlink()
    base = user.commit({"app.py": b"1\n"})
    await ports.mirrors.fetch_base(user.project(), build="b1")
    change = request(base, operation("create", "old", "an old text\n"))
    commit = (await ports.workspaces.commit(change)).commit
    user.git("clone", "--quiet", "--depth=1", f"file://{user.path}", str(tmp_path / "shallow"))
    user.path = tmp_path / "shallow"
    await ports.landing.land(user.project(), build="b1", commit=commit)
    assert user.git("show", "mendwork/b1:old") == "an old text"
    user.git("fsck", "--full")


async def test_a_repository_that_became_shallow_gets_the_history_that_it_lost(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    commit = await made(ports, user)
    user.commit({"later": b"1\n"})
    await ports.mirrors.fetch_base(user.project(), build="b2")
    user.git("clone", "--quiet", "--depth=1", f"file://{user.path}", str(tmp_path / "shallow"))
    user.path = tmp_path / "shallow"
    await ports.landing.land(user.project(), build="b1", commit=commit)
    assert user.git("show", "mendwork/b1~1:app.py") == "one\ntwo\nthree"
    user.git("fsck", "--full")


async def test_a_history_that_neither_side_has_is_refused(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    user.commit({"second": b"1\n"})
    user.git("clone", "--quiet", "--depth=1", f"file://{user.path}", str(tmp_path / "shallow"))
    user.path = tmp_path / "shallow"
    commit = await made(ports, user)
    other = UserRepository(tmp_path / "other", commit=False)
    other.commit({"unrelated": b"1\n"})
    with pytest.raises(RepositoryRefused, match="lacks part of the history"):
        await ports.landing.land(other.project(), build="b1", commit=commit)
    assert "refs/heads/mendwork/b1" not in other.refs()
