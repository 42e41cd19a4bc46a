"""Files of every kind come through unchanged: fetched, listed, checked out, tested, committed beside, landed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.compliance.sandbox import PYTHON
from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from adapters.sandbox.arguments import HOST_PATH
from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.toolchain import default_toolchain
from domain.build.change import Change, FileOperation
from domain.errors import InvalidInput, RepositoryRefused
from domain.ports.sandbox import SandboxRun
from domain.ports.workspace import CommitRequest, RebaseRequest
from tests.adapters.odd_files import (
    FILE,
    LINK,
    MODULE,
    ODD,
    PROGRAM,
    Stored,
    expected,
    on_disk,
    raw,
    tree_of,
    write_tree,
)

# The same walk as ``on_disk``, inside.
WALK = """
import hashlib, os, stat
for place, folders, files in os.walk(b"."):
    for name in files + folders:
        path = os.path.join(place, name)
        state = os.lstat(path)
        if stat.S_ISLNK(state.st_mode):
            kind, content = "120000", os.readlink(path)
        elif stat.S_ISREG(state.st_mode):
            kind = "100755" if state.st_mode & 0o100 else "100644"
            content = open(path, "rb").read()
        elif not os.listdir(path):
            kind, content = "160000", b""
        else:
            continue
        print(path[2:].hex(), kind, hashlib.sha256(content).hexdigest())
"""


@pytest.fixture
def ports(tmp_path: Path) -> GitPorts:
    return open_git(tmp_path / "state")


@pytest.fixture
def user(tmp_path: Path) -> UserRepository:
    """A repository of nothing but odd files, none of which is in its working tree."""
    user = UserRepository(tmp_path / "user", commit=False)
    write_tree(user, ODD)
    return user


async def based(ports: GitPorts, user: UserRepository, build: str = "b1") -> str:
    return await ports.mirrors.fetch_base(user.project(), build=build)


def wide(base: str, *operations: FileOperation) -> CommitRequest:
    """A request with room for many files."""
    change = Change(summary="work", operations=operations)
    return CommitRequest(project="shop", build="b1", base=base, change=change, message="Work", at=1_700_000_000,
                         file_bytes=100_000, files=1_000)  # fmt: skip


async def landed(ports: GitPorts, user: UserRepository, commit: str) -> dict[bytes, Stored]:
    """The tree of what has landed, read by git in the user's repository after it was found sound."""
    await ports.landing.land(user.project(), build="b1", commit=commit)
    user.git("fsck", "--full", "--no-dangling", "--no-progress")
    return tree_of(user.path, "mendwork/b1")


async def test_a_change_of_one_file_leaves_every_other_object_as_it_was(ports: GitPorts, user: UserRepository) -> None:
    base = await based(ports, user)
    made = await ports.workspaces.commit(request(base, operation("edit", "app.py", "", ("two", "2"))))
    before, after = tree_of(user.path, "main"), await landed(ports, user, made.commit)
    assert before.pop(b"app.py") != after.pop(b"app.py")
    assert after == before
    assert len(after) == len(ODD) - 1
    assert raw(user.path, "cat-file", "blob", f"{made.commit}:app.py") == b"one\n2\nthree\n"


async def test_a_checkout_has_the_bytes_modes_and_links_of_the_commit(ports: GitPorts, user: UserRepository) -> None:
    base = await based(ports, user)
    async with ports.workspaces.checkout("shop", base, label="x") as folder:
        assert on_disk(folder) == expected(ODD)


async def test_tests_see_the_bytes_modes_and_links_of_the_commit(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    base = await based(ports, user)
    sandbox = Bubblewrap()
    async with ports.workspaces.checkout("shop", base, label="x") as folder:
        run = SandboxRun(label=f"odd-{uuid4().hex}", argv=(PYTHON, "-c", WALK), folder=folder, log=tmp_path / "log",
                         toolchain=default_toolchain((PYTHON,), HOST_PATH),
                         allow_missing=frozenset(sandbox.missing()) - {"engine"})  # fmt: skip
        assert (await sandbox.run(run)).exit_code == 0, run.log.read_text()
    rows = (line.split() for line in run.log.read_text().splitlines())
    found = {bytes.fromhex(path): (mode, digest) for path, mode, digest in rows}
    wanted = {path: (mode, hashlib.sha256(data).hexdigest()) for path, (mode, data) in expected(ODD).items()}
    assert found == wanted


async def test_every_file_is_listed_once_and_can_be_read_by_its_listed_name(
    ports: GitPorts, user: UserRepository
) -> None:
    base = await based(ports, user)
    listed = await ports.sources.files("shop", base)
    assert len({file.path for file in listed}) == len(ODD)
    contents = sorted(content for mode, content in ODD.values() if mode != MODULE)
    assert sorted([await ports.sources.read("shop", base, f.path) for f in listed if f.kind != "submodule"]) == contents
    assert await ports.sources.read("shop", base, "latin-\\xe9") == b"a name that looks like it\n"
    assert await ports.sources.read("shop", base, "\\latin-\\xe9") == b"a name of bytes\n"
    with pytest.raises(InvalidInput):
        await ports.sources.read("shop", base, "vendored")


async def test_listed_names_and_diffs_are_text_that_any_channel_takes(ports: GitPorts, user: UserRepository) -> None:
    base = await based(ports, user)
    listed = await ports.sources.files("shop", base)
    assert json.loads(json.dumps([file.path for file in listed], ensure_ascii=False).encode()) == [
        file.path for file in listed
    ]
    written = dict(ODD) | {path: (mode, b"2" * 40) for path, (mode, _) in ODD.items()}
    later = write_tree(user, written, onto=base)
    await based(ports, user, "b2")
    diff = await ports.sources.diff("shop", base, later)
    diff.encode()
    assert "latin-" in diff
    assert "Subproject commit" in diff


async def test_what_lies_around_a_rebase_comes_through(ports: GitPorts, user: UserRepository) -> None:
    base = await based(ports, user)
    mine = await ports.workspaces.commit(request(base, operation("edit", "app.py", "", ("two", "2"))))
    moved = {
        **ODD,
        b"latin-\xe9": (PROGRAM, b"a name of bytes\n"),
        b"bytes link": (LINK, b"\xfe"),
        b"new": (FILE, b"\r"),
    }
    theirs = write_tree(user, moved, onto=base)
    assert await ports.merges.target(user.project(), build="b1") == theirs
    rebased = await ports.merges.rebase(
        RebaseRequest(project="shop", build="b1", onto=theirs, base=base, head=mine.commit)
    )
    assert (rebased.conflicts, rebased.touched) == ((), ("app.py",))
    before, after = tree_of(user.path, theirs), await landed(ports, user, rebased.commit)
    del before[b"app.py"], after[b"app.py"]
    assert after == before


@pytest.mark.parametrize(
    ("path", "now"),
    [
        (b"run.sh", (FILE, b"#!/bin/sh\necho run\n")),
        (b"crlf.txt", (PROGRAM, b"one\r\ntwo\r\n")),
        (b"link", (FILE, b"run.sh")),
        (b"empty", (LINK, b"nowhere")),
        (b"vendored", (MODULE, b"3" * 40)),
        (b"vendored", (FILE, b"no submodule any more")),
    ],
    ids=["no longer executable", "executable", "a link as a file", "a file as a link", "a submodule", "and as a file"],
)
async def test_a_persons_change_of_a_mode_alone_is_taken_rebased_and_landed(
    ports: GitPorts, user: UserRepository, path: bytes, now: tuple[str, bytes]
) -> None:
    base = await based(ports, user)
    mine = await ports.workspaces.commit(request(base, operation("edit", "app.py", "", ("two", "2"))))
    person = write_tree(user, {**ODD, path: now}, onto=base)
    taken = await ports.merges.take(user.project(), build="b1", onto=mine.commit, name=person)
    rebased = await ports.merges.rebase(
        RebaseRequest(project="shop", build="b1", onto=mine.commit, base=taken.base, head=taken.commit)
    )
    assert (rebased.conflicts, rebased.touched) == ((), (path.decode(),))
    wanted = tree_of(user.path, person)
    found = await landed(ports, user, rebased.commit)
    assert found.pop(b"app.py") != wanted.pop(b"app.py")
    assert found == wanted


async def test_a_change_of_two_hundred_files_lands_as_it_was_written(ports: GitPorts, user: UserRepository) -> None:
    many = {f"many/{n // 20}/file {n}.txt".encode(): (FILE, f"old {n}\r\n".encode()) for n in range(150)}
    base = write_tree(user, {**ODD, **many}, onto=user.git("rev-parse", "main"))
    await based(ports, user)
    paths = [path.decode() for path in many]
    operations = [operation("edit", path, "", ("old", "new\n")) for path in paths[:50]]
    operations += [operation("replace", path, f"größe {path}\n") for path in paths[50:100]]
    operations += [operation("delete", path) for path in paths[100:]]
    operations += [operation("create", f"more/{n}/é {n}", f"{n}") for n in range(50)]
    made = await ports.workspaces.commit(wide(base, *operations))
    before, after = tree_of(user.path, base), await landed(ports, user, made.commit)
    assert {path: entry for path, entry in before.items() if path not in many} == {
        path: entry for path, entry in after.items() if path not in many and not path.startswith(b"more/")
    }
    assert len(after) == len(before)
    for path, digest in made.written.items():
        present = path.encode() in after
        content = raw(user.path, "cat-file", "blob", f"{made.commit}:{path}") if present else None
        assert digest == ("" if content is None else hashlib.sha256(content).hexdigest())
    assert raw(user.path, "cat-file", "blob", f"{made.commit}:{paths[7]}") == b"new\r\n 7\r\n"


async def test_files_that_swap_names_and_kinds_in_one_change_land(ports: GitPorts, user: UserRepository) -> None:
    base = await based(ports, user)
    made = await ports.workspaces.commit(
        wide(
            base,
            operation("delete", "sub.d/x"),
            operation("create", "sub.d", "a folder became a file\n"),
            operation("delete", "sub-d"),
            operation("create", "sub-d/a/b", "a file became a folder\n"),
            operation("replace", "Case", "lower\n"),
            operation("delete", "CASE/inner"),
            operation("delete", "empty"),
        )
    )
    after = await landed(ports, user, made.commit)
    wanted = set(ODD) - {b"sub.d/x", b"sub-d", b"CASE/inner", b"empty"} | {b"sub.d", b"sub-d/a/b"}
    assert set(after) == wanted
    assert after[b"Case"].name == after[b"case"].name


@pytest.mark.parametrize("content", ["#!/bin/sh\necho run\n", "#!/bin/sh\necho ran\n"], ids=["as it was", "edited"])
@pytest.mark.parametrize("order", [1, -1], ids=["deleted first", "created first"])
async def test_a_program_that_a_change_moves_stays_a_program(
    ports: GitPorts, user: UserRepository, content: str, order: int
) -> None:
    base = await based(ports, user)
    moved = [operation("delete", "run.sh"), operation("create", "bin/run.sh", content)]
    made = await ports.workspaces.commit(wide(base, *moved[::order], operation("create", "bin/other.sh", content)))
    after = await landed(ports, user, made.commit)
    assert after[b"bin/run.sh"].mode == PROGRAM
    assert after[b"bin/other.sh"].mode == FILE


async def test_a_tree_with_an_entry_that_leads_into_git_is_refused_in_a_sentence(
    ports: GitPorts, user: UserRepository, tmp_path: Path
) -> None:
    inner = raw(user.path, "mktree", stdin=f"100644 blob {'0' * 40}\thooks\n".encode().replace(b"0" * 40, b"".join(
        [raw(user.path, "hash-object", "-w", "--stdin", stdin=b"#!/bin/sh\n").strip()])))  # fmt: skip
    tree = raw(user.path, "mktree", stdin=b"040000 tree " + inner.strip() + b"\t.git\n").decode().strip()
    user.git("update-ref", "refs/heads/main", user.git("commit-tree", tree, "-m", "bad"))
    base = await based(ports, user)
    with pytest.raises(RepositoryRefused, match=r"\.git"):
        async with ports.workspaces.checkout("shop", base, label="x"):
            raise AssertionError("there is no such checkout")
    assert list((tmp_path / "state" / "work").iterdir()) == []
