"""``snapshots``, ``compare`` and what ``resume`` refuses, on a store, blobs and a mirror as builds leave them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.blobs import open_blobs
from adapters.cli.cost import CostWanted, cost
from adapters.cli.lines import line_of
from adapters.cli.log.trace import TraceWanted, trace
from adapters.cli.resume.comparing import Pair, compare
from adapters.cli.resume.listing import snapshots
from adapters.cli.resume.resuming import ResumeWanted, resume
from adapters.cli.show import Wanted, show
from adapters.cli.status import one
from adapters.compliance.calls import ANSWER, CALL, KEY, PAYER
from adapters.compliance.user_repository import UserRepository, operation, request
from adapters.git.adapter import open_git
from adapters.settings import Settings
from adapters.store import open_store
from domain.build.details import fold_details
from domain.errors import InvalidInput, UnknownName
from domain.ports.store import Event
from tests.conftest import TemporalServer
from tests.domain.trace_stories import BUILD, GREEN, RED, Saga, begun, called, reviewed, waiting, whole, written

TOKEN = f"{BUILD}@1"
FORK = "build-calc-2"
Read = Callable[[], Any]


def taken(number: int, **changes: Any) -> dict[str, Any]:
    return {"token": f"{BUILD}@{number}", "number": number, "after": "plan", "phase": "tasks", "state": "s" * 64,
            "base": "c0", "head": "c0", "plan": "plan-digest", "spent": 1000, "calls": 1, **changes}  # fmt: skip


def restored(**changes: Any) -> dict[str, Any]:
    return {"token": TOKEN, "parent": BUILD, "phase": "tasks", "base": "c0", "head": "c0", "plan": "plan-digest",
            "spent": 1000, "calls": 1, **changes}  # fmt: skip


def of_build(build: str, events: Iterable[Event]) -> list[Event]:
    return [replace(e, build=build, first_run=f"{build}-{e.first_run}", run=f"{build}-{e.run}") for e in events]


def snapshotted() -> list[Event]:
    root = Saga("snapshots")
    second = taken(2, after="tasks", phase="review", head="m2", spent=6000, calls=6)
    return [
        *whole(),
        root.note(1000, "snapshot.taken", **taken(1)),
        root.note(2800, "snapshot.taken", **second),
    ]


def forked(*, base: str = "c0", head: str = "c0") -> list[Event]:
    """Goes on from the plan; its one attempt is red, and it still runs."""
    root, api = Saga("root"), Saga("api", task="api")
    return of_build(FORK, [
        root.note(5000, "build.started", project="calc", title="Tags", user="ann"),
        root.note(5000, "build.admitted", project="calc", spec="s"),
        root.note(5010, "build.restored", **restored(base=base, head=head)),
        root.note(5010, "build.phase", phase="tasks"),
        api.note(5020, "task.started", base=base),
        api.note(5120, "call.answered", attempt=1, **called(model="strong")),
        api.note(5300, "gates.ran", attempt=1, **RED, new=1, fixed=2),
    ])  # fmt: skip


async def keep(settings: Settings, *builds: list[Event]) -> None:
    async with await open_store(settings.store_url) as store:
        for events in builds:
            await store.events.append(events)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: capsys.readouterr().out


class TestSnapshots:
    async def test_are_a_line_each_with_what_one_needs_to_go_on(self, settings: Settings, printed: Read) -> None:
        await keep(settings, snapshotted())
        assert await snapshots(settings, BUILD, json=False) == 0
        first, second = [line.split() for line in printed().splitlines()]
        assert first == f"{TOKEN} after plan next: tasks c0 1 calls $0.0010 1970-01-01 00:00:01".split()
        assert second[:7] == f"{BUILD}@2 after tasks next: review m2 6".split()

    async def test_a_script_reads_them(self, settings: Settings, printed: Read) -> None:
        await keep(settings, snapshotted(), forked())
        await snapshots(settings, BUILD, json=True)
        read = json.loads(printed())
        assert (read["build"], read["parent"], len(read["snapshots"])) == (BUILD, "", 2)
        assert read["snapshots"][0] == {**taken(1), "build": BUILD, "at": 1000}
        await snapshots(settings, FORK, json=True)
        assert json.loads(printed()) == {"build": FORK, "parent": TOKEN, "snapshots": []}

    async def test_none_yet_is_no_error(self, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
        await keep(settings, forked())
        assert await snapshots(settings, FORK, json=False) == 0
        said = capsys.readouterr()
        assert (said.out, said.err.splitlines()[0]) == ("", f"{FORK} goes on from {TOKEN}")
        assert "has no snapshot yet" in said.err

    async def test_an_unknown_build_lists_the_known_ones(self, settings: Settings) -> None:
        await keep(settings, snapshotted())
        with pytest.raises(UnknownName, match=f"known: {BUILD}"):
            await snapshots(settings, FORK, json=False)


class TestTheParent:
    async def test_is_named_wherever_a_build_is_shown(self, settings: Settings, printed: Read) -> None:
        await keep(settings, snapshotted(), forked())
        await one(settings, FORK, json=False)
        assert f"  goes on from {TOKEN}, by which $0.0010 was spent" in printed().splitlines()
        await one(settings, FORK, json=True)
        status = json.loads(printed())
        assert (status["parent"], status["carried_micros"]) == (TOKEN, 1000)
        await show(settings, Wanted(build=FORK))
        assert f"  goes on from {TOKEN}" in printed().splitlines()
        await trace(settings, TraceWanted(build=FORK))
        assert any(f"went on from  +0.0 s  {TOKEN}" in line for line in printed().splitlines())
        await one(settings, BUILD, json=False)
        assert "goes on from" not in printed()

    async def test_is_told_to_those_who_follow(self) -> None:
        (row,) = [event for event in forked() if event.kind == "build.restored"]
        assert line_of(row) == f"goes on from {TOKEN}, before tasks; $0.0010 was spent by then"
        skipped = Saga("r").note(1, "snapshot.skipped", number=2, after="plan", sentence="disk\x1b[2J full")
        assert line_of(skipped) == "no snapshot could be taken after plan: disk [2J full"

    async def test_what_it_had_spent_is_told_with_the_cost(self, settings: Settings, printed: Read) -> None:
        await keep(settings, snapshotted(), forked())
        await cost(settings, CostWanted(build=FORK))
        assert printed() == f"carried over from {TOKEN}: 1 calls, $0.0010\n"
        async with await open_store(settings.store_url) as store:
            call = replace(CALL, payer=replace(PAYER, project="calc", build=FORK))
            await store.calls.end(KEY, await store.calls.begin(KEY, call), outcome=ANSWER)
        await cost(settings, CostWanted(build=FORK))
        assert printed().splitlines()[-1] == f"carried over from {TOKEN}: 1 calls, $0.0010"
        await cost(settings, CostWanted(build=FORK, json=True))
        read = json.loads(printed())
        assert read["carried"] == {"token": TOKEN, "calls": 1, "micros": 1000}
        assert read["total"]["settled_micros"] == 8100, "its own calls alone"

    def test_tasks_that_were_done_by_then_are_done(self) -> None:
        root = Saga("r")
        tasks: list[Any] = [{"id": "api", "status": "merged", "commit": "m1"}, {"id": "store", "status": "waiting"}]
        details = fold_details(FORK, [root.note(5, "build.restored", **restored(tasks=tasks))])
        assert {name: task.status for name, task in details.tasks.items()} == {"api": "merged", "store": "waiting"}
        assert (details.base, details.head, details.plan) == ("c0", "c0", "plan-digest")


class TestCompare:
    async def table(self, settings: Settings, printed: Read, *pair: str) -> dict[str, list[str]]:
        assert await compare(settings, Pair(left=pair[0], right=pair[1])) == 0
        lines = [line for line in printed().splitlines() if line[:13].strip()]
        return {line[:13].strip(): [part for part in line[13:].strip().split("  ") if part] for line in lines}

    async def test_two_are_shown_side_by_side_while_one_still_runs(self, settings: Settings, printed: Read) -> None:
        diff = await open_blobs(settings.state).put(
            b"diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -0,0 +1 @@\n+1\n"
        )
        events = [replace(e, data={**e.data, "diff": diff}) if e.kind == "build.ended" else e for e in snapshotted()]
        await keep(settings, events, forked())
        rows = await self.table(settings, printed, BUILD, FORK)
        stripped = {name: [part.strip() for part in parts] for name, parts in rows.items()}
        assert stripped["status"] == ["succeeded", "running (tasks)"]
        assert stripped["goes on from"] == ["(its own start)", TOKEN]
        assert stripped["head"] == ["m2", "c0"]
        assert stripped["models"] == ["planner, coder, reviewer", "strong"]
        assert stripped["tasks"] == ["2 of 2 merged", "0 of 1 merged"]
        assert stripped["attempts"] == ["4", "1"]
        assert stripped["tests"] == ["green: 4 tests passed", "red: 1 of 4 tests failed, 1 new, 2 fixed"]
        assert stripped["findings"] == ["0 high, 1 medium, 0 low", "(not reviewed)"]
        assert stripped["cost"] == ["$0.0000", "$0.0000 + $0.0010 before"]
        assert stripped["calls"] == ["0", "0 + 1 before"]
        assert stripped["time"][0] == "9.3 s"
        assert stripped["files"] == ["1: x.py", "none"]
        assert stripped["differ in"] == ["x.py", "+0 -2"]

    async def test_a_script_gets_numbers_under_stable_names(self, settings: Settings, printed: Read) -> None:
        await keep(settings, snapshotted()[:9], forked())
        await compare(settings, Pair(left=BUILD, right=FORK, json=True))
        read = json.loads(printed())
        left, right = read["builds"]
        assert set(left) == {
            "build", "title", "parent", "base", "head", "status", "phase", "models", "tasks", "attempts", "gates",
            "findings", "millis", "calls", "cost_micros", "held_micros", "carried_calls", "carried_micros",
            "input_tokens", "output_tokens", "files",
        }  # fmt: skip
        assert (right["parent"], right["carried_micros"], right["gates"]["new"]) == (TOKEN, 1000, 1)
        assert read["difference"] == {"source": "patches", "files": [], "diff": None}

    @pytest.mark.parametrize(
        ("left", "right", "error", "sentence"),
        [
            (BUILD, BUILD, InvalidInput, "the same build twice"),
            (BUILD, "build-calc-9", UnknownName, f"known: {BUILD}"),
        ],
    )
    async def test_two_different_builds_are_needed(
        self, settings: Settings, left: str, right: str, error: type[Exception], sentence: str
    ) -> None:
        await keep(settings, snapshotted())
        with pytest.raises(error, match=sentence):
            await compare(settings, Pair(left=left, right=right))

    async def test_results_in_the_mirror_are_compared_as_commits(
        self, settings: Settings, printed: Read, tmp_path: Path
    ) -> None:
        user = UserRepository(tmp_path / "user")
        git, project = open_git(settings.state), replace(user.project(), name="calc")
        base = await git.mirrors.fetch_base(project, build=BUILD)
        heads = []
        for content in ("same\nleft\n", "same\nright\n"):
            wanted = request(base, operation("create", "both.py", content), build=BUILD)
            heads.append((await git.workspaces.commit(replace(wanted, project="calc"))).commit)
        await keep(settings, over(BUILD, base, heads[0]), over(FORK, base, heads[1]))
        await compare(settings, Pair(left=BUILD, right=FORK, diff=True))
        text = printed()
        assert text.startswith("diff --git a/both.py b/both.py\n")
        assert text.endswith("@@ -1,2 +1,2 @@\n same\n-left\n+right\n")
        await compare(settings, Pair(left=BUILD, right=FORK, json=True, diff=True))
        read = json.loads(printed())
        assert read["difference"]["source"] == "commits"
        assert read["difference"]["files"] == [{"path": "both.py", "added": 1, "removed": 1}]
        assert [side["files"] for side in read["builds"]] == [[{"path": "both.py", "added": 2, "removed": 0}]] * 2

    async def test_commits_that_are_gone_leave_the_diffs(self, settings: Settings, printed: Read) -> None:
        blobs = open_blobs(settings.state)
        texts = [
            f"diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-0\n+{n}\n{tail}"
            for n, tail in (
                (1, ""),
                (2, "diff --git a/y\x1b[2J b/y\x1b[2J\n--- /dev/null\n+++ b/y\x1b[2J\n@@ -0,0 +1 @@\n+1\n"),
            )
        ]
        digests = [await blobs.put(text.encode()) for text in texts]
        await keep(settings, over(BUILD, "0" * 40, "1" * 40, digests[0]), over(FORK, "0" * 40, "2" * 40, digests[1]))
        await compare(settings, Pair(left=BUILD, right=FORK))
        assert "\x1b" not in (text := printed())
        assert "told from the builds' diffs" in text
        await compare(settings, Pair(left=BUILD, right=FORK, diff=True))
        assert "\n-+1\n++2\n" in (text := printed())
        assert "\x1b" not in text

    async def test_equal_results_are_said_to_be_equal(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        digest = await open_blobs(settings.state).put(b"diff --git a/x b/x\n@@ -1 +1 @@\n-0\n+1\n")
        await keep(settings, over(BUILD, "a", "b", digest), over(FORK, "a", "b", digest))
        await compare(settings, Pair(left=BUILD, right=FORK))
        assert "differ in      nothing: the results are the same" in capsys.readouterr().out
        await compare(settings, Pair(left=BUILD, right=FORK, diff=True))
        assert "the two results do not differ" in capsys.readouterr().err


def over(build: str, base: str, head: str, diff: str = "") -> list[Event]:
    """A build that has ended with ``head``."""
    root = Saga("r")
    return of_build(build, [
        root.note(10, "build.started", project="calc", title="T"),
        root.note(20, "build.base", commit=base, **GREEN),
        root.note(90, "build.ended", status="succeeded", sentence="on x", branch="mendwork/x", commit=head, diff=diff),
    ])  # fmt: skip


class TestResume:
    """What is refused before anything is started; that it starts is told in tests/e2e/test_resume.py."""

    @pytest.fixture
    def at(self, make_settings: Callable[..., Settings], temporal: TemporalServer, monkeypatch: Any) -> Settings:
        for name, value in temporal.environment.items():
            monkeypatch.setenv(name, value)
        return make_settings(
            models={name: {"model": f"openai/{name}"} for name in ("coder", "other")},
            projects={"calc": {"repository": "r", "test": "true"}},
        )

    @pytest.mark.parametrize(
        ("wanted", "error", "sentence"),
        [
            (ResumeWanted(token="build-calc-1"), InvalidInput, "BUILD@NUMBER"),
            (ResumeWanted(token=f"{BUILD}@9"), InvalidInput, f"no snapshot 9; there are {TOKEN} .next: tasks."),
            (ResumeWanted(token=f"{FORK}@1"), UnknownName, f"unknown build '{FORK}'; known: {BUILD}"),
            (ResumeWanted(token=TOKEN, models=("best",)), UnknownName, "unknown model 'best'; known: coder, other"),
            (ResumeWanted(token=TOKEN, models=("painting=coder",)), UnknownName, "unknown role 'painting'"),
            (ResumeWanted(token=TOKEN, role_models=("coder",)), InvalidInput, "it reads ROLE=MODEL"),
            (ResumeWanted(token=TOKEN, strategy="magic"), UnknownName, "unknown strategy 'magic'; known: smallest"),
        ],
        ids=lambda value: value.token if isinstance(value, ResumeWanted) else "",
    )
    async def test_what_stands_for_nothing_is_answered_with_what_there_is(
        self, at: Settings, wanted: ResumeWanted, error: type[Exception], sentence: str
    ) -> None:
        await keep(at, snapshotted())
        with pytest.raises(error, match=sentence):
            await resume(at, wanted)
        async with await open_store(at.store_url) as store:
            assert await store.builds.reserve_number("calc") == 1, "no number was used up"


def test_the_heads_of_a_build_follow_its_merges() -> None:
    root = Saga("run-1")
    events = [*begun(root), *written(root)]
    assert fold_details(BUILD, events[:9]).head == "c0"
    assert fold_details(BUILD, events).head == "m2"
    assert fold_details(BUILD, [*events, *reviewed(root)]).head == "m2"
    assert fold_details(BUILD, waiting()).head == "m2"
