"""A tree's object ids and its contents in one go, from a real mirror, as an index wants them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from activities.repository.selecting import Selector, Wish
from adapters.code import open_code
from adapters.compliance.repository.code import oid
from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import GitPorts, open_git
from domain.context.packing import Measure
from domain.errors import InvalidInput


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    return UserRepository(tmp_path / "user")


@pytest.fixture
def git(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


async def test_contents_come_by_object_id_byte_for_byte(git: GitPorts, user: UserRepository) -> None:
    (user.path / "link").symlink_to("app.py")
    base = user.commit({"bytes": bytes(range(256)), "empty": b"", "twin": bytes(range(256)), "crlf": b"a\r\nb\r\n"})
    await git.mirrors.fetch_base(user.project(), build="b1")
    tree = await git.sources.files("shop", base)
    found = await git.sources.read_many("shop", tree)
    assert set(found) == {file.path for file in tree} - {"link"}, "a link has no content of its own"
    assert found["bytes"] == found["twin"] == bytes(range(256))
    assert (found["empty"], found["crlf"]) == (b"", b"a\r\nb\r\n")
    assert all(file.oid == oid(found[file.path]) for file in tree if file.path in found)


async def test_what_the_mirror_does_not_have_is_left_out_and_no_name_can_be_an_option(
    git: GitPorts, user: UserRepository
) -> None:
    base = await git.mirrors.fetch_base(user.project(), build="b1")
    (first, *_) = await git.sources.files("shop", base)
    assert await git.sources.read_many("shop", [replace(first, oid="0" * 40)]) == {}
    assert await git.sources.read_many("shop", [replace(first, oid="")]) == {}
    with pytest.raises(InvalidInput):
        await git.sources.read_many("shop", [replace(first, oid="--batch-check")])


async def test_a_tree_of_a_mirror_is_indexed_and_a_new_commit_reads_only_what_is_new(
    git: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    files = {f"m{n}.py": f"def price{n}(): ...\n".encode() for n in range(40)}
    base = user.commit(files)
    await git.mirrors.fetch_base(user.project(), build="b1")
    selector = Selector(sources=git.sources, index=open_code(tmp_path / "state"))
    tree = await git.sources.files("shop", base)
    assert await selector.prepare("shop", tree) == len({file.oid for file in tree})
    after = user.commit({"m3.py": b"def stock(): ...\n", "new.py": b"def shelf(): ...\n"})
    await git.mirrors.fetch_base(user.project(), build="b2")
    newer = await git.sources.files("shop", after)
    assert await selector.prepare("shop", newer) == 2
    wish = Wish(project="shop", commit=after, named={}, text="the shelf", measure=Measure(budget=1_000))
    chosen = await selector.select(wish, newer)
    assert [file.path for file in chosen.files] == ["new.py"]
