"""What every adapter of the workspace ports must hold, against real repositories of a user.

A subclass gives the fixture ``ports``. The reference is real git in a temporary folder: it is as fast as a copy in
memory would be, and a copy would have to imitate git.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Protocol

import pytest

from adapters.compliance.user_repository import UserRepository, contents, operation, request
from domain.build.change import FileOperation
from domain.errors import BranchTaken, InvalidChange, InvalidInput, InvalidName, Overtaken, RepositoryRefused
from domain.ports.workspace import Landing, Mirrors, Sources, TreeFile, Workspaces


class WorkspacePorts(Protocol):
    """The ports of one adapter."""

    @property
    def mirrors(self) -> Mirrors: ...
    @property
    def sources(self) -> Sources: ...
    @property
    def workspaces(self) -> Workspaces: ...
    @property
    def landing(self) -> Landing: ...


class WorkspaceCompliance:
    """Subclass it and give the fixture ``ports``."""

    @pytest.fixture
    def repository(self, tmp_path: Path) -> UserRepository:
        return UserRepository(tmp_path / "user")

    async def test_a_base_is_pinned_once(self, ports: WorkspacePorts, repository: UserRepository) -> None:
        first = repository.git("rev-parse", "HEAD")
        assert await ports.mirrors.fetch_base(repository.project(), build="b1") == first
        second = repository.commit({"app.py": b"later\n"})
        assert await ports.mirrors.fetch_base(repository.project(), build="b1") == first
        assert await ports.mirrors.head("shop", build="b1") == first
        assert await ports.mirrors.fetch_base(repository.project(), build="b2") == second

    async def test_the_head_moves_only_from_where_the_writer_saw_it(
        self, ports: WorkspacePorts, repository: UserRepository
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        mine = (await ports.workspaces.commit(request(base, operation("create", "mine", "1")))).commit
        late = (await ports.workspaces.commit(request(base, operation("create", "late", "1")))).commit
        await ports.mirrors.advance("shop", build="b1", old=base, new=mine)
        await ports.mirrors.advance("shop", build="b1", old=base, new=mine)
        with pytest.raises(Overtaken):
            await ports.mirrors.advance("shop", build="b1", old=base, new=late)
        assert await ports.mirrors.head("shop", build="b1") == mine

    async def test_of_racing_writers_one_wins(self, ports: WorkspacePorts, repository: UserRepository) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        news = [
            (await ports.workspaces.commit(request(base, operation("create", f"f{n}", "1")))).commit for n in range(4)
        ]
        moves = (ports.mirrors.advance("shop", build="b1", old=base, new=new) for new in news)
        ends = await asyncio.gather(*moves, return_exceptions=True)
        assert sorted(type(end).__name__ for end in ends) == ["NoneType", "Overtaken", "Overtaken", "Overtaken"]
        assert await ports.mirrors.head("shop", build="b1") == news[ends.index(None)]

    async def test_a_forgotten_build_has_no_head(self, ports: WorkspacePorts, repository: UserRepository) -> None:
        await ports.mirrors.forget("shop", build="b1")
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        await ports.workspaces.commit(request(base, operation("create", "new", "1")))
        await ports.mirrors.fetch_base(repository.project(), build="b10")
        for _ in range(2):
            await ports.mirrors.forget("shop", build="b1")
        with pytest.raises(RepositoryRefused):
            await ports.mirrors.head("shop", build="b1")
        assert await ports.mirrors.head("shop", build="b10") == base

    async def test_files_are_listed_and_read(self, ports: WorkspacePorts, repository: UserRepository) -> None:
        (repository.path / "link").symlink_to("lib/tool.py")
        (repository.path / "run").write_bytes(b"#!/bin/sh\n")
        (repository.path / "run").chmod(0o755)
        base = repository.commit({"bytes": bytes(range(256))})
        await ports.mirrors.fetch_base(repository.project(), build="b1")
        listed = await ports.sources.files("shop", base)
        assert [file.path for file in listed] == ["README", "app.py", "bytes", "lib/tool.py", "link", "run"]
        assert listed[2] == TreeFile(path="bytes", size=256, kind="file")
        assert [file.kind for file in listed[3:]] == ["file", "symlink", "executable"]
        assert await ports.sources.read("shop", base, "bytes") == bytes(range(256))
        assert await ports.sources.read("shop", base, "link") == b"lib/tool.py"
        for missing in ("lib", "nothing", "../app.py", "lib/", "*", ":/app.py", "--help", "\udc80"):
            with pytest.raises(InvalidInput):
                await ports.sources.read("shop", base, missing)

    async def test_a_diff_is_text(self, ports: WorkspacePorts, repository: UserRepository) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        made = await ports.workspaces.commit(request(base, operation("edit", "app.py", "", ("two", "2"))))
        text = await ports.sources.diff("shop", base, made.commit)
        assert text.startswith("diff --git a/app.py b/app.py\n")
        assert "\n-two\n+2\n" in text
        assert await ports.sources.diff("shop", base, base) == ""

    async def test_a_checkout_is_the_commit_and_nothing_else(
        self, ports: WorkspacePorts, repository: UserRepository
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        async with ports.workspaces.checkout("shop", base, label="b1/t1/1") as folder:
            assert contents(folder) == {
                "app.py": b"one\ntwo\nthree\n", "lib/tool.py": b"tool\n", "README": b"read me\n",
            }  # fmt: skip
            assert sorted(path.name for path in folder.iterdir()) == ["README", "app.py", "lib"]
            (folder / "app.py").write_text("spoiled")
        assert not folder.exists()

    async def test_a_label_has_one_folder(self, ports: WorkspacePorts, repository: UserRepository) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        async with (
            ports.workspaces.checkout("shop", base, label="b1/t1/1") as first,
            ports.workspaces.checkout("shop", base, label="b1/t1/11") as other,
            ports.workspaces.checkout("shop", base, label="b1/t1/1") as second,
        ):
            assert not first.exists()
            assert other.is_dir()
            assert second.is_dir()

    async def test_a_change_becomes_one_commit(self, ports: WorkspacePorts, repository: UserRepository) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        wanted = request(
            base,
            operation("create", "new/deep/file.txt", "größe\r\n"),
            operation("replace", "lib/tool.py", "other\n"),
            operation("edit", "app.py", "", ("one", "1"), ("1\n", "0\n1\n")),
            operation("delete", "README"),
        )
        made = await ports.workspaces.commit(wanted)
        assert await ports.workspaces.commit(wanted) == made
        assert await ports.mirrors.head("shop", build="b1") == base
        async with ports.workspaces.checkout("shop", made.commit, label="read back") as folder:
            found = contents(folder)
        assert found["app.py"] == b"0\n1\ntwo\nthree\n"
        assert found["new/deep/file.txt"] == "größe\r\n".encode()
        expected = {path: hashlib.sha256(content).hexdigest() for path, content in found.items()}
        assert dict(made.written) == expected | {"README": ""}

    @pytest.mark.parametrize(
        ("wanted", "reason"),
        [
            ([operation("create", "../out", "x")], "'..'"),
            ([operation("create", "/out", "x")], "absolute"),
            ([operation("create", ".git/hooks/pre-commit", "x")], ".git"),
            ([operation("create", "lib/.GIT/config", "x")], ".git"),
            ([operation("create", "app.py", "x")], "exists already"),
            ([operation("create", "lib", "x")], "folder"),
            ([operation("create", "app.py/inner", "x")], "app.py, which is a file"),
            ([operation("replace", "none", "x")], "does not exist"),
            ([operation("delete", "lib")], "folder"),
            ([operation("edit", "none", "", ("a", "b"))], "does not exist"),
            ([operation("edit", "app.py", "", ("nowhere", "b"))], "does not occur"),
            ([operation("edit", "app.py", "", ("o", "b"))], "more than once"),
            ([operation("edit", "app.py")], "no edits"),
            ([operation("create", "big", "x" * 1001)], "1001 bytes"),
            ([operation("create", f"f{n}", "x") for n in range(6)], "6 files"),
            ([operation("create", "Same", "x"), operation("create", "same", "x")], "twice"),
            ([operation("replace", "README", "read me\n")], "as it was"),
            ([operation("create", "half", "\ud800")], "UTF-8"),
            ([], "no file"),
        ],
    )
    async def test_a_change_that_does_not_fit_is_refused_with_a_reason(
        self, ports: WorkspacePorts, repository: UserRepository, wanted: list[FileOperation], reason: str
    ) -> None:
        base = await ports.mirrors.fetch_base(repository.project(), build="b1")
        with pytest.raises(InvalidChange) as refused:
            await ports.workspaces.commit(request(base, *wanted))
        assert reason in str(refused.value)

    async def test_a_result_lands_once(self, ports: WorkspacePorts, repository: UserRepository) -> None:
        project = repository.project()
        base = await ports.mirrors.fetch_base(project, build="b1")
        before = repository.refs()
        made = (await ports.workspaces.commit(request(base, operation("create", "new", "1")))).commit
        other = (await ports.workspaces.commit(request(base, operation("create", "new", "2")))).commit
        for _ in range(2):
            assert await ports.landing.land(project, build="b1", commit=made) == "mendwork/b1"
        assert repository.refs() == before | {"refs/heads/mendwork/b1": made}
        assert repository.git("show", "mendwork/b1:new") == "1"
        with pytest.raises(BranchTaken):
            await ports.landing.land(project, build="b1", commit=other)
        assert not await ports.landing.retract(project, build="b1", commit=other)
        for _ in range(2):
            assert await ports.landing.retract(project, build="b1", commit=made)
        assert repository.refs() == before

    async def test_a_branch_in_the_way_is_seen_at_the_start(
        self, ports: WorkspacePorts, repository: UserRepository
    ) -> None:
        repository.git("branch", "mendwork/b1")
        with pytest.raises(BranchTaken):
            await ports.mirrors.fetch_base(repository.project(), build="b1")
        await ports.mirrors.fetch_base(repository.project(), build="b2")

    async def test_names_that_lead_out_are_refused(self, ports: WorkspacePorts, repository: UserRepository) -> None:
        for build in ("../x", "a/b", "", "a..b", "x.lock"):
            with pytest.raises(InvalidName):
                await ports.mirrors.fetch_base(repository.project(), build=build)
        with pytest.raises(InvalidName):
            await ports.mirrors.head("../shop", build="b1")
        for commit in ("HEAD", "--help", "refs/heads/main", "0" * 39):
            with pytest.raises(InvalidInput):
                await ports.sources.files("shop", commit)
