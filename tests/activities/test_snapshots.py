"""Taking a snapshot and going on from it, at the activities' grain: real git, blobs, a store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.intake import AdmittedBuild, Engine
from activities.repository.landing import CompensateInput
from activities.repository.snapshots import (
    MAX_STATE_BYTES,
    FindSnapshotInput,
    FoundSnapshot,
    PinSnapshotInput,
    RestoreSnapshotInput,
    SnapshotBook,
    Snapshots,
)
from adapters.blobs.memory import MemoryBlobs
from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import GitPorts, open_git
from adapters.store.memory import MemoryStore
from domain.build.project import Limits
from domain.errors import AlreadyRunning, InvalidInput, RepositoryRefused, TooLarge, UnknownName
from domain.flow.board import TaskState
from domain.human.asks import Ask
from domain.human.book import Book
from domain.money.budget import Budget
from domain.ports.sagas import ENDED, RUNNING, STOPPED, UNKNOWN, Standing
from domain.ports.store import Event
from workflows.state import BuildState, Head, Undo

OLD, NEW = "build-shop-1", "build-shop-2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A build of two commits, one of them its head, and what snapshots it."""

    user: UserRepository
    git: GitPorts
    blobs: MemoryBlobs
    snapshots: Snapshots
    state: BuildState
    base: str
    head: str

    async def pin(self, number: int = 1, **changes: Any) -> str:
        wanted = PinSnapshotInput(
            project="shop", build=OLD, number=number, state=asdict(self.state), commits=(self.base, self.head)
        )
        digest = await ActivityEnvironment().run(self.snapshots.pin_snapshot, replace(wanted, **changes))
        assert isinstance(digest, str)
        return digest

    async def restore(self, digest: str, **changes: Any) -> Mapping[str, Any]:
        wanted = RestoreSnapshotInput(project="shop", build=NEW, state=digest, base=self.base, head=self.head)
        state = await ActivityEnvironment().run(self.snapshots.restore_snapshot, replace(wanted, **changes))
        assert isinstance(state, Mapping)
        return state


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    user = UserRepository(tmp_path / "user")
    git, blobs = open_git(tmp_path / "state"), MemoryBlobs()
    engine = Engine(projects={"shop": user.project()}, reasoning=("m",), coding=("m",), heartbeat=5)
    base = await git.mirrors.fetch_base(user.project(), build=OLD)
    head = (await git.workspaces.commit(request(base, operation("create", "new", "1"), build=OLD))).commit
    await git.mirrors.advance("shop", build=OLD, old=base, new=head)
    plan, spec = await blobs.put(b"plan"), await blobs.put(b"spec")
    return Desk(
        user=user,
        git=git,
        blobs=blobs,
        snapshots=Snapshots(engine=engine, pins=git.mirrors, blobs=blobs, models=("m", "other")),
        state=carried(base, head, plan, spec),
        base=base,
        head=head,
    )


def carried(base: str, head: str, plan: str, spec: str) -> BuildState:
    """What a build carries in the middle of its tasks: one merged, one at work, one that a person is asked about."""
    ask = Ask(id="task-1", about="task", digest="d" * 64, sentence="?", choices=("retry",), opened=1, deadline=2)
    admitted = AdmittedBuild(
        project="shop", spec=spec, limits=Limits(attempts=7), reasoning=("m",), coding=("m",), heartbeat=5,
        budget=Budget(build=123),
    )  # fmt: skip
    return BuildState(
        phase="tasks",
        admitted=admitted,
        base=Head(commit=base, ran=3),
        head=Head(commit=head, ran=4),
        plan=plan,
        plans=2,
        tasks={
            "a": TaskState(status="merged", attempt=2, commit=head),
            "b": TaskState(status="running", attempt=1, locks=("caf\udce9.txt",)),
            "c": TaskState(status="asking", attempt=3, kind="AttemptsExhausted", sentence="red"),
        },
        used={"a": 1, "gone": 4},
        book=Book(open={"task-1": ask}),
        asks=1,
        asked={"task:c": ask},
        undo=[Undo(key="k", action="forget_build", request=CompensateInput(project="shop", build=OLD))],
    )


async def test_a_build_goes_on_where_another_stood(desk: Desk) -> None:
    digest = await desk.pin()
    await desk.git.mirrors.forget("shop", build=OLD)
    state = await desk.restore(digest, models=("coding=other",))
    assert await desk.git.mirrors.head("shop", build=NEW) == desk.head
    assert (state["phase"], state["plan"], state["plans"]) == ("tasks", desk.state.plan, 2)
    assert (state["base"]["commit"], state["head"]["commit"], state["head"]["ran"]) == (desk.base, desk.head, 4)
    assert {name: task["status"] for name, task in state["tasks"].items()} == {
        "a": "merged", "b": "waiting", "c": "waiting",
    }  # fmt: skip
    assert state["used"] == {"a": 2, "b": 1, "c": 3, "gone": 4}
    assert (state["asked"], state["undo"], state["book"]["open"], state["asks"]) == ({}, [], {}, 1)
    admitted = state["admitted"]
    assert (admitted["reasoning"], admitted["coding"]) == (["m"], ["other"])
    assert (admitted["limits"]["attempts"], admitted["budget"]["build"]) == (7, 123), "as they were, not as they are"


async def test_a_state_is_small_enough_for_a_history_or_refused(desk: Desk) -> None:
    state = {"admitted": {}, "note": "x" * MAX_STATE_BYTES}
    with pytest.raises(TooLarge, match=f"at most {MAX_STATE_BYTES}"):
        await desk.pin(state=state)
    assert await desk.git.mirrors.snapshots("shop") == (), "nothing is kept for it"


async def test_taking_one_twice_is_taking_it_once(desk: Desk) -> None:
    first = await desk.pin()
    assert await desk.pin() == first
    assert json.loads(await desk.blobs.get(first)) == json.loads(json.dumps(asdict(desk.state)))
    assert await desk.git.mirrors.snapshots("shop") == ((OLD, 1),)
    assert await desk.restore(first) == await desk.restore(first)


async def test_one_whose_commits_are_missing_is_not_taken(desk: Desk) -> None:
    with pytest.raises(RepositoryRefused, match="has no commit " + "0" * 40):
        await desk.pin(commits=(desk.base, "0" * 40))


@pytest.mark.parametrize("what", ["state", "plan", "spec"])
async def test_what_is_not_kept_any_more_is_said(desk: Desk, what: str) -> None:
    digest = await desk.pin()
    admitted = desk.state.admitted
    assert admitted is not None
    lost = {"state": digest, "plan": desk.state.plan, "spec": admitted.spec}[what]
    await desk.blobs.remove(lost, before=2**62)
    with pytest.raises(InvalidInput, match=r"is gone.*project shop keeps snapshots for 30 days"):
        await desk.restore(digest)
    with pytest.raises(RepositoryRefused):
        await desk.git.mirrors.head("shop", build=NEW)


async def test_commits_that_are_not_kept_any_more_are_named(desk: Desk) -> None:
    digest = await desk.pin()
    with pytest.raises(RepositoryRefused, match=f"no commit {'0' * 40}: what the snapshot needs is not kept any more"):
        await desk.restore(digest, head="0" * 40)


async def test_an_unknown_model_pins_nothing(desk: Desk) -> None:
    digest = await desk.pin()
    with pytest.raises(UnknownName, match="unknown model 'best'; known: m, other"):
        await desk.restore(digest, models=("best",))
    with pytest.raises(RepositoryRefused):
        await desk.git.mirrors.head("shop", build=NEW)


async def test_a_project_that_is_not_on_the_list_any_more_is_refused(desk: Desk) -> None:
    with pytest.raises(UnknownName, match="unknown project 'gone'; known: shop"):
        await desk.restore(await desk.pin(), project="gone")


class Standings:
    """``domain.ports.sagas.Sagas`` that says what it is told."""

    def __init__(self, state: str) -> None:
        self.state = state

    async def standings(self, ids: Sequence[str]) -> Mapping[str, Standing]:
        return {each: Standing(state=self.state) for each in ids}


def event(sequence: int, kind: str, **data: Any) -> Event:
    return Event(first_run="r", run="r", sequence=sequence, build=OLD, kind=kind, at=sequence, data=data)


def taken(number: int, **changes: Any) -> dict[str, Any]:
    return {"token": f"{OLD}@{number}", "number": number, "after": "plan", "phase": "tasks", "state": "s", "base": "b",
            "head": "h", "plan": "p", "spent": 900, "calls": 3, **changes}  # fmt: skip


async def find(token: str, *, standing: str = ENDED, fork: bool = False, snapshots: int = 2) -> FoundSnapshot:
    store = MemoryStore()
    rows = [event(9 + n, "snapshot.taken", **taken(n)) for n in range(1, snapshots + 1)]
    await store.events.append([event(1, "build.started", project="", title="T")])
    await store.events.append([event(2, "build.admitted", project="shop", spec="x"), *rows])
    book = SnapshotBook(store=store, sagas=Standings(standing))
    found = await ActivityEnvironment().run(book.find_snapshot, FindSnapshotInput(token=token, fork=fork))
    assert isinstance(found, FoundSnapshot)
    return found


@pytest.mark.parametrize("standing", [ENDED, STOPPED, UNKNOWN])
async def test_a_token_is_found_once_its_build_is_over(standing: str) -> None:
    assert await find(f"{OLD}@2", standing=standing) == FoundSnapshot(
        token=f"{OLD}@2", build=OLD, number=2, project="shop", phase="tasks", state="s", base="b", head="h",
        spent=900, calls=3,
    )  # fmt: skip


async def test_a_build_that_is_open_is_forked_only_on_purpose() -> None:
    with pytest.raises(AlreadyRunning, match=f"{OLD} is still open: .*{OLD}@2.*--fork"):
        await find(f"{OLD}@2", standing=RUNNING)
    assert (await find(f"{OLD}@2", standing=RUNNING, fork=True)).number == 2


@pytest.mark.parametrize(
    ("token", "error", "sentence"),
    [
        ("build-shop-9@1", UnknownName, f"unknown build 'build-shop-9'; known: {OLD}"),
        (f"{OLD}@3", InvalidInput, f"no snapshot 3; there are {OLD}@1 .next: tasks., {OLD}@2"),
        (OLD, InvalidInput, "BUILD@NUMBER"),
    ],
)
async def test_a_token_that_stands_for_nothing_is_answered_with_what_there_is(
    token: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        await find(token, standing=RUNNING)


async def test_a_build_without_snapshots_says_so() -> None:
    with pytest.raises(InvalidInput, match="none was taken yet"):
        await find(f"{OLD}@1", snapshots=0)
