"""Commits are made on trees: no link is followed, no attribute changes a byte, all of a change or nothing."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from adapters.compliance.user_repository import UserRepository, contents, operation, request
from adapters.git.adapter import GitPorts, open_git
from domain.build.change import FileOperation
from domain.errors import InvalidChange, RepositoryRefused

HOSTILE = b"""
[attr]mine text eol=crlf ident filter=lfs working-tree-encoding=UTF-16
* mine
* text=auto eol=crlf ident filter=lfs diff=lfs merge=lfs export-subst working-tree-encoding=UTF-16LE
*.txt text eol=crlf
"""
BYTES = "$Id$ $Format:%H$\r\nmixed\nends\r\n\ufefftail é".encode()


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    return UserRepository(tmp_path / "user")


async def based(ports: GitPorts, user: UserRepository) -> str:
    return await ports.mirrors.fetch_base(user.project(), build="b1")


async def reasons(ports: GitPorts, base: str, *operations: FileOperation) -> str:
    with pytest.raises(InvalidChange) as refused:
        await ports.workspaces.commit(request(base, *operations))
    return str(refused.value)


async def test_attributes_change_no_byte_of_what_was_written(ports: GitPorts, user: UserRepository) -> None:
    (user.path / ".git" / "info" / "attributes").write_text("* -text -filter -ident !working-tree-encoding\n")
    user.commit({"sub/.gitattributes": HOSTILE, ".gitattributes": HOSTILE, "old.txt": BYTES, "sub/old.txt": BYTES})
    base = await based(ports, user)
    text = BYTES.decode()
    made = await ports.workspaces.commit(
        request(base, operation("create", "new.txt", text), operation("edit", "sub/old.txt", "", ("mixed", "m\n")))
    )
    expected = {"new.txt": BYTES, "sub/old.txt": BYTES.replace(b"mixed", b"m\n")}
    assert made.written == {path: hashlib.sha256(content).hexdigest() for path, content in expected.items()}
    async with ports.workspaces.checkout("shop", made.commit, label="x") as folder:
        found = contents(folder)
    assert found["old.txt"] == BYTES
    assert {path: found[path] for path in expected} == expected
    for path, content in expected.items():
        assert await ports.sources.read("shop", made.commit, path) == content


async def test_a_diff_hides_nothing_that_attributes_would_hide(ports: GitPorts, user: UserRepository) -> None:
    user.commit({".gitattributes": b"*.py -diff\n"})
    base = await based(ports, user)
    made = await ports.workspaces.commit(
        request(base, operation("edit", "app.py", "", ("two", "2")), operation("create", "größe.py", "x\n"))
    )
    text = await ports.sources.diff("shop", base, made.commit)
    assert "\n-two\n+2\n" in text
    assert "\n+++ b/größe.py\n" in text


@pytest.mark.parametrize("target", ["/etc", "../..", "lib", "nowhere"])
async def test_no_path_leads_through_a_link(ports: GitPorts, user: UserRepository, tmp_path: Path, target: str) -> None:
    (user.path / "link").symlink_to(target)
    user.commit({})
    base = await based(ports, user)
    outside = contents(tmp_path / "user")
    assert "which is a symlink" in await reasons(ports, base, operation("create", "link/new", "x"))
    assert "which is a symlink" in await reasons(ports, base, operation("edit", "link/tool.py", "", ("tool", "x")))
    for action in ("create", "replace", "delete"):
        assert "is a symlink" in await reasons(ports, base, operation(action, "link", "x"))
    sneaky = [operation("delete", "link"), operation("create", "link/new", "x")]
    assert "is a symlink" in await reasons(ports, base, *sneaky)
    assert contents(tmp_path / "user") == outside


async def test_submodules_are_not_written_to(ports: GitPorts, user: UserRepository) -> None:
    user.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendored")
    user.git("commit", "--quiet", "--message=submodule")
    base = await based(ports, user)
    assert "which is a submodule" in await reasons(ports, base, operation("create", "vendored/x", "x"))
    assert "is a submodule" in await reasons(ports, base, operation("delete", "vendored"))
    listed = {file.path: file for file in await ports.sources.files("shop", base)}
    assert (listed["vendored"].kind, listed["vendored"].size) == ("submodule", 0)
    async with ports.workspaces.checkout("shop", base, label="x") as folder:
        assert list((folder / "vendored").iterdir()) == []
    made = await ports.workspaces.commit(request(base, operation("create", "x", "x")))
    assert {file.path for file in await ports.sources.files("shop", made.commit)} == {*listed, "x"}


async def test_the_executable_bit_is_kept(ports: GitPorts, user: UserRepository) -> None:
    for name in ("run", "edit"):
        (user.path / name).write_text("old\n")
        (user.path / name).chmod(0o755)
    base = user.commit({})
    await based(ports, user)
    made = await ports.workspaces.commit(
        request(base, operation("replace", "run", "new"), operation("edit", "edit", "", ("old", "new")))
    )
    async with ports.workspaces.checkout("shop", made.commit, label="x") as folder:
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()}
    assert modes == {"run": 0o755, "edit": 0o755, "app.py": 0o644, "README": 0o644}


async def test_a_file_may_become_a_folder_within_one_change(ports: GitPorts, user: UserRepository) -> None:
    base = await based(ports, user)
    made = await ports.workspaces.commit(
        request(
            base,
            operation("delete", "README"),
            operation("create", "README/inner", "x"),
            operation("delete", "lib/tool.py"),
            operation("create", "lib", "now a file"),
        )
    )
    listed = [file.path for file in await ports.sources.files("shop", made.commit)]
    assert listed == ["README/inner", "app.py", "lib"]


async def test_one_bad_file_refuses_all_and_every_reason_is_told(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base = await based(ports, user)
    told = await reasons(
        ports, base, operation("create", "good", "x"), operation("replace", "a", "x"), operation("delete", "b")
    )
    assert told == "a: does not exist, so there is nothing to replace; b: does not exist, so there is nothing to delete"
    refs = tmp_path / "state" / "mirrors" / "shop.git" / "refs" / "mendwork" / "builds" / "b1"
    assert sorted(path.name for path in refs.iterdir()) == ["base", "head"]


async def test_a_file_that_is_no_text_can_only_be_replaced(ports: GitPorts, user: UserRepository) -> None:
    base = user.commit({"latin": "größe".encode("latin-1")})
    await based(ports, user)
    assert "not UTF-8" in await reasons(ports, base, operation("edit", "latin", "", ("gr", "x")))
    made = await ports.workspaces.commit(request(base, operation("replace", "latin", "größe")))
    assert await ports.sources.read("shop", made.commit, "latin") == "größe".encode()


async def test_a_file_that_is_too_large_is_not_even_read(ports: GitPorts, user: UserRepository) -> None:
    base = user.commit({"big": b"x" * 5_000_000})
    await based(ports, user)
    assert "5000000 bytes" in await reasons(ports, base, operation("edit", "big", "", ("x", "y")))


async def test_paths_that_only_look_different_are_one_file(ports: GitPorts, user: UserRepository) -> None:
    base = await based(ports, user)
    for one, other in (("Straße", "STRASSE"), ("e\u0301", "\u00e9"), ("same", "same")):
        assert "twice" in await reasons(ports, base, operation("create", one, "1"), operation("create", other, "2"))


async def test_odd_names_of_the_repository_are_kept(ports: GitPorts, user: UserRepository) -> None:
    names = [b"latin-\xe9", b"tab\there", b"line\nend", b"-dash", b"back\\slash", b'quo"te', b":(glob)*", b"sp ace"]
    base = user.commit({os.fsdecode(name): name for name in names})
    await based(ports, user)
    made = await ports.workspaces.commit(request(base, operation("edit", "sp ace", "", ("sp", "SP"))))
    async with ports.workspaces.checkout("shop", made.commit, label="x") as folder:
        found = {os.fsencode(path.name): path.read_bytes() for path in folder.glob("[!aRl]*")}
    expected = {name: name for name in names if name[:1] != b"l"} | {b"sp ace": b"SP ace"}
    assert found == expected
    assert "latin-\\xe9" in [file.path for file in await ports.sources.files("shop", base)]
    assert await ports.sources.read("shop", base, ":(glob)*") == b":(glob)*"


async def test_a_message_holds_no_escape_codes(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    base = await based(ports, user)
    wanted = request(base, operation("create", "x", "x"))
    loud = type(wanted)(
        project="shop", build="b1", base=base, change=wanted.change, at=0, file_bytes=10, files=1,
        message="# Add\x1b[31m red\0\x9b\n\n-- \u202eTask: größe\ud800\n\n\n",
    )  # fmt: skip
    made = await ports.workspaces.commit(loud)
    user.git("fetch", "--quiet", str(tmp_path / "state" / "mirrors" / "shop.git"), made.commit)
    shown = user.git("log", "-1", "--format=%an|%ae|%cn|%ce|%aI|%cI|%P|%B", made.commit)
    who = "Mendwork|mendwork@localhost"
    when = "1970-01-01T00:00:00+00:00"
    assert shown == f"{who}|{who}|{when}|{when}|{base}|# Add[31m red\n\n-- Task: größe"


async def test_equal_requests_at_the_same_time_make_one_commit(ports: GitPorts, user: UserRepository) -> None:
    wanted = request(await based(ports, user), operation("create", "x", "x"))
    made = await asyncio.gather(*(ports.workspaces.commit(wanted) for _ in range(4)))
    assert len({candidate.commit for candidate in made}) == 1


async def test_two_hosts_make_the_same_commit(ports: GitPorts, user: UserRepository, tmp_path: Path) -> None:
    wanted = request(await based(ports, user), operation("create", "x", "x"))
    other = open_git(tmp_path / "other state")
    await based(other, user)
    assert await ports.workspaces.commit(wanted) == await other.workspaces.commit(wanted)


async def test_an_unknown_base_is_said(ports: GitPorts, user: UserRepository) -> None:
    with pytest.raises(RepositoryRefused, match="no mirror"):
        await ports.workspaces.commit(request("1" * 40, operation("create", "x", "x")))
    await based(ports, user)
    with pytest.raises(RepositoryRefused, match="has no commit"):
        await ports.workspaces.commit(request("1" * 40, operation("create", "x", "x")))
