"""A repository of another user is reached as that user, and stays all theirs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from adapters.git.folders import remove_tree
from domain.errors import RepositoryRefused

ROOT = os.geteuid() == 0
# Only root can give a repository away; for anybody else these tests hold with a repository of their own.
STRANGER = 12345 if ROOT else os.geteuid()
GROUP = 12345 if ROOT else os.getegid()


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def strange(tmp_path: Path) -> Iterator[UserRepository]:
    """A repository of another user; pytest's own folders are closed to that user, so it is elsewhere."""
    home = Path(tempfile.mkdtemp())
    home.chmod(0o755)
    user = UserRepository(home / "repo")
    give_away(user.path)
    yield user
    home.chmod(0o700)
    remove_tree(home)


def give_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, STRANGER, GROUP)


def owners(folder: Path) -> set[tuple[int, int]]:
    states = [path.lstat() for path in (folder, *folder.rglob("*"))]
    return {(state.st_uid, state.st_gid) for state in states}


async def test_another_owners_repository_stays_all_theirs(ports: GitPorts, strange: UserRepository) -> None:
    base = await ports.mirrors.fetch_base(strange.project(), build="b1")
    made = await ports.workspaces.commit(request(base, operation("create", "deep/new", "1")))
    await ports.landing.land(strange.project(), build="b1", commit=made.commit)
    assert owners(strange.path) == {(STRANGER, GROUP)}
    assert strange.git("show", "mendwork/b1:deep/new") == "1"
    assert await ports.landing.retract(strange.project(), build="b1", commit=made.commit)
    assert owners(strange.path) == {(STRANGER, GROUP)}


async def test_a_target_of_another_owner_is_moved_as_that_owner(ports: GitPorts, strange: UserRepository) -> None:
    strange.git("checkout", "--quiet", "--detach")
    give_away(strange.path)
    base = await ports.mirrors.fetch_base(strange.project(), build="b1")
    new = (await ports.workspaces.commit(request(base, operation("create", "deep/new", "1")))).commit
    assert (await ports.merges.take(strange.project(), build="b1", onto=base, name=base[:7])).commit == base
    assert await ports.merges.target(strange.project(), build="b1") == base
    await ports.landing.forward(strange.project(), old=base, new=new)
    assert owners(strange.path) == {(STRANGER, GROUP)}
    assert strange.git("show", "main:deep/new") == "1"
    assert await ports.landing.rewind(strange.project(), old=base, new=new)
    assert owners(strange.path) == {(STRANGER, GROUP)}


async def test_a_repository_that_its_owner_cannot_reach_is_said_at_once(
    ports: GitPorts, strange: UserRepository
) -> None:
    strange.path.parent.chmod(0o700 if ROOT else 0)
    sentence = await refused(ports, strange)
    assert ("user 12345, who must be able to reach it" if ROOT else "cannot be read") in sentence


async def test_what_its_owner_cannot_read_is_not_read_for_them(ports: GitPorts, strange: UserRepository) -> None:
    objects = strange.path / ".git" / "objects"
    objects.chmod(0o700 if ROOT else 0)
    os.chown(objects, 0 if ROOT else STRANGER, -1)
    assert await refused(ports, strange)


async def refused(ports: GitPorts, strange: UserRepository) -> str:
    with pytest.raises(RepositoryRefused) as error:
        await ports.mirrors.fetch_base(strange.project(), build="b1")
    return str(error.value)


async def test_a_file_that_its_owner_cannot_read_is_not_fetched_for_them(
    ports: GitPorts, strange: UserRepository, tmp_path: Path
) -> None:
    blob = strange.git("rev-parse", "HEAD:app.py")
    name = Path(blob[:2]) / blob[2:]
    (tmp_path / "closed" / blob[:2]).mkdir(parents=True)
    shutil.move(strange.path / ".git" / "objects" / name, tmp_path / "closed" / name)  # perhaps another disk
    (strange.path / ".git" / "objects" / "info" / "alternates").write_text(f"{tmp_path}/closed\n")
    (tmp_path / "closed").chmod(0o700 if ROOT else 0)
    assert "could not fetch" in await refused(ports, strange)


async def test_a_repository_that_cannot_be_landed_in_is_refused_at_the_start(
    ports: GitPorts, strange: UserRepository
) -> None:
    (strange.path / ".git" / "objects").chmod(0o500)
    assert "may not be written to" in await refused(ports, strange)
