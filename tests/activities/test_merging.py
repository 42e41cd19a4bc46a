"""Bringing tasks together at the activities' grain: real git, contents as blobs, results that fit into a history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.testing import ActivityEnvironment

from activities.intake import Engine
from activities.repository.landing import CompensateInput, ForwardInput, Landings
from activities.repository.merging import (
    FetchTargetInput,
    Merging,
    RebasedCommit,
    RebaseInput,
    TakeCommitInput,
    TakenCommit,
    covering,
)
from adapters.blobs.memory import MemoryBlobs
from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from domain.build.project import Project
from domain.errors import InvalidInput, Overtaken, UnknownName
from domain.ports.workspace import Rebased, RebaseRequest, Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The activities on one user's repository, whose branch "main" nobody works on."""

    user: UserRepository
    git: GitPorts
    blobs: MemoryBlobs
    merging: Merging
    landings: Landings
    engine: Engine
    base: str

    async def commit(self, path: str, content: str) -> str:
        change = request(self.base, operation("replace" if path == "app.py" else "create", path, content))
        return (await self.git.workspaces.commit(change)).commit

    async def rebase(self, onto: str, head: str) -> RebasedCommit:
        wanted = RebaseInput(project="shop", build="b1", onto=onto, base=self.base, head=head)
        done = await ActivityEnvironment().run(self.merging.rebase_commits, wanted)
        assert isinstance(done, RebasedCommit)
        return done

    async def text(self, digest: str) -> str:
        return (await self.blobs.get(digest)).decode()


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    user = UserRepository(tmp_path / "user")
    user.git("checkout", "--quiet", "-b", "side")
    git, blobs = open_git(tmp_path / "state"), MemoryBlobs()
    engine = Engine(projects={"shop": user.project()}, reasoning=(), coding=(), heartbeat=5)
    return Desk(
        user=user,
        git=git,
        blobs=blobs,
        engine=engine,
        merging=Merging(engine=engine, merges=git.merges, sources=git.sources, blobs=blobs),
        landings=Landings(engine=engine, landing=git.landing, mirrors=git.mirrors, sources=git.sources, blobs=blobs),
        base=await git.mirrors.fetch_base(user.project(), build="b1"),
    )


async def test_a_merge_gives_its_diff_and_paths(desk: Desk) -> None:
    ours, theirs = await desk.commit("a", "1\n"), await desk.commit("b", "2\n")
    done = await desk.rebase(ours, theirs)
    assert done == await desk.rebase(ours, theirs)
    assert (done.conflicts, done.report, done.touched) == ((), "", ("b",))
    diff = await desk.text(done.diff)
    assert "+2" in diff
    assert "a/a" not in diff


async def test_a_conflict_is_a_result_with_its_report_as_a_blob(desk: Desk) -> None:
    ours, theirs = await desk.commit("app.py", "newer\n"), await desk.commit("app.py", "mine\n")
    found = await desk.rebase(ours, theirs)
    assert (found.commit, found.conflicts, found.diff, found.touched) == ("", ("app.py",), "", ())
    assert "<<<<<<< the newer state\nnewer\n" in await desk.text(found.report)


async def test_a_persons_commit_is_taken_with_what_it_changed(desk: Desk) -> None:
    commit = desk.user.commit({"hand": b"made\n"})
    asked = TakeCommitInput(project="shop", build="b1", onto=await desk.commit("a", "1\n"), name="side")
    taken = await ActivityEnvironment().run(desk.merging.take_commit, asked)
    assert isinstance(taken, TakenCommit)
    assert (taken.commit, taken.base) == (commit, desk.base)
    assert "+made" in await desk.text(taken.diff)
    with pytest.raises(InvalidInput, match=r"its branches are: (main, side|side, main)$"):
        await ActivityEnvironment().run(desk.merging.take_commit, replace(asked, name="sidee"))


async def test_the_target_is_fetched_as_it_is_now(desk: Desk) -> None:
    desk.user.git("checkout", "--quiet", "main")
    later = desk.user.commit({"later": b"1\n"})
    asked = FetchTargetInput(project="shop", build="b1")
    assert await ActivityEnvironment().run(desk.merging.fetch_target, asked) == later
    with pytest.raises(UnknownName):
        await ActivityEnvironment().run(desk.merging.fetch_target, replace(asked, project="other"))


async def test_the_target_moves_and_moves_back(desk: Desk) -> None:
    new = await desk.commit("a", "1\n")
    refs = desk.user.refs()
    run = ActivityEnvironment().run
    for _ in range(2):
        await run(desk.landings.forward_target, ForwardInput(project="shop", build="b1", old=desk.base, new=new))
    assert desk.user.refs() == refs | {"refs/heads/main": new}
    back = CompensateInput(project="shop", build="b1", commit=new, old=desk.base)
    assert await run(desk.landings.rewind_target, back) is True
    assert desk.user.refs() == refs
    other = await desk.commit("b", "1\n")
    await run(desk.landings.forward_target, ForwardInput(project="shop", build="b1", old=desk.base, new=other))
    with pytest.raises(Overtaken):
        await run(desk.landings.forward_target, ForwardInput(project="shop", build="b1", old=desk.base, new=new))


MANY = tuple(f"folder-{number % 7}/{'long-' * 20}{number}" for number in range(5_000))


class Endless:
    """Merges that give ``answer``, whatever is asked."""

    def __init__(self, answer: Rebased) -> None:
        self._answer = answer

    async def rebase(self, request: RebaseRequest) -> Rebased:
        return self._answer

    async def take(self, project: Project, *, build: str, onto: str, name: str) -> Taken:
        raise NotImplementedError

    async def target(self, project: Project, *, build: str) -> str:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("answer", "paths"),
    [
        (Rebased(commit="", conflicts=MANY, report="r", touched=()), MANY[:100]),
        (Rebased(commit="of base", conflicts=(), report="", touched=MANY), tuple(f"folder-{n}" for n in range(7))),
    ],
)
async def test_a_history_never_gets_thousands_of_paths(desk: Desk, answer: Rebased, paths: tuple[str, ...]) -> None:
    answer = replace(answer, commit=answer.commit and desk.base)
    merging = Merging(engine=desk.engine, merges=Endless(answer), sources=desk.git.sources, blobs=desk.blobs)
    done = await replace(desk, merging=merging).rebase(desk.base, desk.base)
    assert done.conflicts + done.touched == paths


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6).map("/".join), max_size=40))
def test_few_paths_stay_as_they_are(paths: list[str]) -> None:
    assert covering(paths) == tuple(sorted(set(paths)))


@given(st.integers(1, 900), st.integers(1, 12), st.integers(0, 3))
def test_many_paths_are_covered_by_few_folders(files: int, folders: int, depth: int) -> None:
    paths = [f"{'deep/' * (n % (depth + 1))}d{n % folders}/f{n}" for n in range(files)]
    found = covering(paths)
    assert len(found) <= 500
    assert all(any(path == each or path.startswith(f"{each}/") for each in found) for path in paths)
