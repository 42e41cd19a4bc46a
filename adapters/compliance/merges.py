"""What every adapter must hold of bringing commits together.

A subclass gives the fixture ``ports``. The user's repository is a real one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.compliance.workspace import WorkspacePorts
from domain.build.change import FileOperation
from domain.errors import InvalidInput, RepositoryRefused
from domain.ports.workspace import Merges, Rebased, RebaseRequest

TEN = "".join(f"line {number}\n" for number in range(10))


class MergingPorts(WorkspacePorts, Protocol):
    """The ports of one adapter, with merges."""

    @property
    def merges(self) -> Merges: ...


async def started(ports: MergingPorts, repository: UserRepository) -> str:
    """The base of build b1: a file of ten lines beside those that every repository has."""
    repository.commit({"ten": TEN.encode()})
    return await ports.mirrors.fetch_base(repository.project(), build="b1")


async def written(ports: MergingPorts, base: str, *operations: FileOperation) -> str:
    return (await ports.workspaces.commit(request(base, *operations))).commit


async def rebased(ports: MergingPorts, onto: str, base: str, head: str) -> Rebased:
    return await ports.merges.rebase(RebaseRequest(project="shop", build="b1", onto=onto, base=base, head=head))


def line(number: int, text: str) -> FileOperation:
    return operation("edit", "ten", "", (f"line {number}\n", f"{text}\n"))


class MergesCompliance:
    """Subclass it and give the fixture ``ports``."""

    @pytest.fixture
    def repository(self, tmp_path: Path) -> UserRepository:
        return UserRepository(tmp_path / "user")

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ([operation("create", "a", "1")], [operation("create", "b", "2")]),
            ([line(2, "two")], [line(7, "seven")]),
            ([operation("delete", "README")], [line(0, "zero"), operation("create", "b", "2")]),
            ([operation("replace", "lib/tool.py", "x\n")], [operation("create", "lib/other.py", "y\n")]),
        ],
    )
    async def test_changes_apart_come_together_in_either_order(
        self,
        ports: MergingPorts,
        repository: UserRepository,
        first: list[FileOperation],
        second: list[FileOperation],
    ) -> None:
        base = await started(ports, repository)
        one, two = await written(ports, base, *first), await written(ports, base, *second)
        there, back = await rebased(ports, one, base, two), await rebased(ports, two, base, one)
        assert (there.conflicts, there.report, back.conflicts) == ((), "", ())
        assert there.commit not in (one, two, back.commit)
        assert await ports.sources.diff("shop", there.commit, back.commit) == ""
        assert there.touched == tuple(sorted(operation.path for operation in second))
        assert back.touched == tuple(sorted(operation.path for operation in first))
        assert await ports.mirrors.head("shop", build="b1") == base

    @pytest.mark.parametrize("other", [2, 3])
    async def test_changes_of_the_same_or_the_next_line_conflict(
        self, ports: MergingPorts, repository: UserRepository, other: int
    ) -> None:
        base = await started(ports, repository)
        one, two = await written(ports, base, line(2, "theirs")), await written(ports, base, line(other, "mine"))
        found = await rebased(ports, one, base, two)
        assert (found.commit, found.conflicts, found.touched) == ("", ("ten",), ())
        shown = found.report.splitlines()
        newer, middle, mine = (
            next(n for n, text in enumerate(shown) if text.startswith(m)) for m in ("<<<", "===", ">>>")
        )
        assert "theirs" in shown[newer:middle]
        assert "mine" in shown[middle:mine]
        assert "line 9" not in shown
        assert found == await rebased(ports, one, base, two)

    async def test_every_commit_keeps_its_author_time_and_message(
        self, ports: MergingPorts, repository: UserRepository
    ) -> None:
        base = await started(ports, repository)
        head, newer = base, await written(ports, base, line(0, "zero"))
        for number in range(5, 9):
            head = await written(ports, head, line(number, "mine"))
        done = await rebased(ports, newer, base, head)
        assert done == await rebased(ports, newer, base, head)
        await ports.landing.land(repository.project(), build="b1", commit=head)
        await ports.landing.land(repository.project(), build="b2", commit=done.commit)
        shown = [
            repository.git("log", "--format=%an %ae %at %cn %ce %ct %B", f"{since}..mendwork/{build}")
            for since, build in ((base, "b1"), (newer, "b2"))
        ]
        assert shown[0] == shown[1]
        assert repository.git("rev-list", "--count", f"{newer}..{done.commit}") == "4"
        assert repository.git("show", f"{done.commit}:ten").split("\n")[0] == "zero"

    async def test_onto_its_own_base_nothing_is_written_again(
        self, ports: MergingPorts, repository: UserRepository
    ) -> None:
        base = await started(ports, repository)
        head = await written(ports, await written(ports, base, line(1, "one")), line(2, "two"))
        assert await rebased(ports, base, base, head) == Rebased(commit=head, conflicts=(), report="", touched=("ten",))

    async def test_what_is_there_already_leaves_nothing(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        newer = await written(ports, await written(ports, base, line(1, "one")), operation("create", "more", "1"))
        same = await written(ports, base, line(1, "one"))
        for head in (same, base):
            nothing = Rebased(commit=newer, conflicts=(), report="", touched=())
            assert await rebased(ports, newer, base, head) == nothing
        partly = await written(ports, same, operation("create", "rest", "1"))
        assert (await rebased(ports, newer, base, partly)).touched == ("rest",)

    async def test_a_renamed_file_is_touched_by_both_names(
        self, ports: MergingPorts, repository: UserRepository
    ) -> None:
        base = await started(ports, repository)
        newer = await written(ports, base, line(1, "one"))
        moved = await written(ports, base, operation("delete", "README"), operation("create", "READ", "read me\n"))
        assert (await rebased(ports, newer, base, moved)).touched == ("READ", "README")

    async def test_a_deletion_against_an_edit_conflicts(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        edited, deleted = (
            await written(ports, base, line(4, "four")),
            await written(ports, base, operation("delete", "ten")),
        )
        for onto, head in ((edited, deleted), (deleted, edited)):
            found = await rebased(ports, onto, base, head)
            assert found.conflicts == ("ten",)
            assert "[not there]" in found.report
            assert "+four" in found.report

    async def test_the_conflict_of_any_commit_of_a_chain_is_found(
        self, ports: MergingPorts, repository: UserRepository
    ) -> None:
        base = await started(ports, repository)
        newer = await written(ports, base, operation("replace", "app.py", "theirs\n"))
        first = await written(ports, base, line(1, "one"))
        head = await written(ports, first, operation("replace", "app.py", "mine\n"))
        assert (await rebased(ports, newer, base, head)).conflicts == ("app.py",)

    async def test_what_does_not_fit_together_is_refused(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        one, two = await written(ports, base, line(1, "1")), await written(ports, base, line(2, "2"))
        with pytest.raises(InvalidInput, match="does not descend"):
            await rebased(ports, base, one, two)
        with pytest.raises(RepositoryRefused, match="no commit"):
            await rebased(ports, base, base, "0" * 40)
        with pytest.raises(InvalidInput):
            await rebased(ports, "main", base, one)

    async def test_a_persons_commit_is_taken_by_branch_or_digits(
        self, ports: MergingPorts, repository: UserRepository
    ) -> None:
        base = await started(ports, repository)
        repository.git("checkout", "--quiet", "-b", "by/hand")
        commit = repository.commit({"hand": b"made\n"})
        repository.git("checkout", "--quiet", "--detach", "main")
        loose = repository.commit({"loose": b"made\n"})
        names = dict.fromkeys(("by/hand", commit, commit[:7], commit[:12].upper()), commit)
        for name, expected in (names | {loose[:8]: loose}).items():
            taken = await ports.merges.take(repository.project(), build="b1", onto=base, name=name)
            assert (taken.commit, taken.base) == (expected, base)
        head = await written(ports, base, line(1, "one"))
        assert (await rebased(ports, head, base, commit)).touched == ("hand",)
        assert await ports.mirrors.head("shop", build="b1") == base

    async def test_what_cannot_be_taken_names_the_branches(
        self, ports: MergingPorts, repository: UserRepository
    ) -> None:
        base = await started(ports, repository)
        repository.git("branch", "work")
        blob = repository.git("rev-parse", "main:ten")
        for name in (
            "nothing",
            "",
            "--all",
            "HEAD",
            "main~0",
            "m*",
            base[:6],
            blob,
            "f" * 40,
            "refs/heads/work",
            "a\nb",
        ):
            with pytest.raises(InvalidInput, match=r"its branches are: .*work"):
                await ports.merges.take(repository.project(), build="b1", onto=base, name=name)

    async def test_a_foreign_history_cannot_be_taken(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        repository.git("checkout", "--quiet", "--orphan", "foreign")
        repository.commit({"foreign": b"1"})
        with pytest.raises(InvalidInput, match="shares no history"):
            await ports.merges.take(repository.project(), build="b1", onto=base, name="foreign")

    async def test_a_name_of_two_commits_is_not_guessed(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        commit = repository.commit({"later": b"1"})
        repository.git("branch", commit[:8], base)
        with pytest.raises(InvalidInput, match="give all digits"):
            await ports.merges.take(repository.project(), build="b1", onto=base, name=commit[:8])
        assert (await ports.merges.take(repository.project(), build="b1", onto=base, name=commit)).commit == commit

    async def test_the_target_is_seen_as_it_is_now(self, ports: MergingPorts, repository: UserRepository) -> None:
        base = await started(ports, repository)
        assert await ports.merges.target(repository.project(), build="b1") == base
        later = repository.commit({"later": b"1"})
        for _ in range(2):
            assert await ports.merges.target(repository.project(), build="b1") == later
        assert [file.path for file in await ports.sources.files("shop", later)] == [
            "README", "app.py", "later", "lib/tool.py", "ten",
        ]  # fmt: skip
        with pytest.raises(RepositoryRefused):
            await ports.merges.target(repository.project(branch="gone"), build="b1")
