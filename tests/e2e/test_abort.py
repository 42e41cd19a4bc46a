"""Ending, pausing and beginning again, while a model answers and while tests run."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from adapters.compliance.user_repository import contents
from tests.e2e.projects import (
    Scene,
    answered,
    begun,
    change,
    create,
    events,
    plan,
    repository,
    result,
    serving,
    task,
    told,
)
from tests.e2e.workshop import Workshop, git, wait_for

SLEEPY = (
    "import time\nimport unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        time.sleep(600)\n"
)
ONE = plan(task("one", "one.py"))
HANGING = Scene(
    name="hanging",
    answers=[ONE, change("one", 1, create("one.py", "A = 1\n"), faults=[{"kind": "hang"}])],
)
MARK = f"sleeping-{os.getpid()}"
SLEEPING = Scene(
    name="sleeping",
    test=f"python3 -X {MARK} -m unittest",
    answers=[ONE, change("one", 1, create("one.py", "A = 1\n"), create("test_one.py", SLEEPY))],
)
CHAIN = Scene(
    name="chain",
    builds=3,
    answers=[
        plan(task("one", "one.py"), task("two", "two.py", depends_on=["one"])),
        change("one", 1, create("one.py", "A = 1\n"), faults=[{"kind": "slow", "seconds": 4}]),
        change("two", 1, create("two.py", "B = 1\n"), faults=[{"kind": "slow", "seconds": 4}]),
    ],
)


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with serving(tmp_path_factory.mktemp("abort"), (HANGING, SLEEPING, CHAIN)) as at:
        yield at


def asked(at: Workshop, build: str, step: str) -> bool:
    """Whether the provider was asked; the line is there before the answer is."""
    return any(line["key"].startswith(build) and f"/{step}/" in line["key"] for line in at.billed())


def pinned(at: Workshop, scene: Scene, build: str) -> str:
    return git(at.state / "mirrors" / f"{scene.project}.git", "for-each-ref", f"refs/mendwork/builds/{build}")


def sandboxed() -> list[int]:
    """Processes of the sleeping tests, inside their sandbox and around it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            argv = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if MARK.encode() in argv:
            found.append(int(folder.name))
    return found


def places(at: Workshop) -> list[str]:
    with closing(sqlite3.connect(at.state / "mendwork.db", timeout=10)) as store:
        return [row[0] for row in store.execute("SELECT holder FROM places")]


def undone(at: Workshop, build: str) -> set[str]:
    """How the build's undo records were closed."""
    with closing(sqlite3.connect(at.state / "mendwork.db", timeout=10)) as store:
        return {row[0] for row in store.execute("SELECT outcome FROM undo WHERE build = ?", (build,))}


def is_gone(at: Workshop, scene: Scene, build: str) -> None:
    assert at.mendwork("watch", build).code == 3
    status = at.status(build)
    assert (status["status"], "could not be undone" in status["sentence"]) == ("aborted", False)
    assert pinned(at, scene, build) == ""
    assert [holder for holder in places(at) if holder.startswith(build)] == []
    assert undone(at, build) == {"undone"}
    assert list((at.state / "work").iterdir()) == []


class TestAbort:
    def test_while_a_model_answers_leaves_nothing(self, at: Workshop) -> None:
        before = contents(repository(at, HANGING))
        build = begun(at, HANGING)
        wait_for(lambda: asked(at, build, "change"), seconds=90, why="the call that hangs")
        assert pinned(at, HANGING, build) != ""
        assert answered(at, "abort", build, "--reason", "it takes too long")["outcome"] == "accepted"
        is_gone(at, HANGING, build)
        assert "it takes too long" in at.status(build)["sentence"]
        assert contents(repository(at, HANGING)) == before
        assert at.status(build)["calls_unknown"] == 1  # nobody knows what the provider will bill for it
        assert answered(at, "abort", build)["code"] == 3

    def test_while_tests_run_ends_their_processes_before_anything_is_undone(self, at: Workshop) -> None:
        before = contents(repository(at, SLEEPING))
        build = begun(at, SLEEPING)
        wait_for(lambda: told(at, build, "change.applied") and sandboxed(), seconds=90, why="the sleeping test")
        with ThreadPoolExecutor(1) as beside:
            watching = beside.submit(outlived, at, build)
            assert answered(at, "abort", build)["outcome"] == "accepted"
            assert watching.result() == []
        is_gone(at, SLEEPING, build)
        assert sandboxed() == []
        assert contents(repository(at, SLEEPING)) == before


def outlived(at: Workshop, build: str) -> list[int]:
    """Processes that still ran when the refs of their build were gone."""
    wait_for(lambda: pinned(at, SLEEPING, build) == "", seconds=60, why="the end of the build's refs")
    return sandboxed()


class TestPause:
    def test_no_call_and_no_merge_starts_until_it_is_ended(self, at: Workshop) -> None:
        build = begun(at, CHAIN)
        wait_for(lambda: asked(at, build, "change"), seconds=90, why="the first call")
        assert answered(at, "pause", build, "--by", "ann")["outcome"] == "accepted"
        assert "already" in answered(at, "pause", build)["reason"]
        wait_for(lambda: told(at, build, "task.ended"), seconds=60, why="the end of what ran already")
        asks = len(at.billed())
        assert at.status(build)["paused"] is True
        wait_for(lambda: steady(at, asks), seconds=30, why="some seconds without a call")
        assert answered(at, "resume-now", build)["outcome"] == "accepted"
        assert at.mendwork("watch", build).code == 0
        kinds = [event.kind for event in events(at, build)]
        meanwhile = kinds[kinds.index("build.paused") : kinds.index("build.resumed")]
        assert not {"task.merged", "task.started"} & set(meanwhile)
        assert {"one.py", "two.py"} <= set(result(at, CHAIN, build))
        assert [data["by"] for data in told(at, build, "build.paused")] == ["ann"]

    def test_an_abort_ends_a_paused_build_too(self, at: Workshop) -> None:
        build = begun(at, CHAIN)
        wait_for(lambda: asked(at, build, "plan"), seconds=90, why="the first call")
        assert answered(at, "pause", build)["outcome"] == "accepted"
        assert answered(at, "abort", build)["outcome"] == "accepted"
        is_gone(at, CHAIN, build)


_SEEN: dict[int, float] = {}


def steady(at: Workshop, asks: int) -> bool:
    """Whether nobody was asked anything for two seconds; fails at once when somebody was."""
    assert len(at.billed()) == asks
    return time.monotonic() - _SEEN.setdefault(asks, time.monotonic()) > 2


class TestRerun:
    def test_builds_the_same_spec_again_under_a_new_name(self, at: Workshop) -> None:
        build = begun(at, CHAIN)
        assert answered(at, "abort", build)["outcome"] == "accepted"
        assert at.mendwork("watch", build).code == 3
        again = at.mendwork("rerun", build, "--detach", "--json")
        assert again.code == 0, again.err
        name = json.loads(again.out)["build"]
        assert name != build
        assert at.status(name)["title"] == at.status(build)["title"]

    def test_what_was_never_started_cannot_be_run_again(self, at: Workshop) -> None:
        ran = at.mendwork("rerun", "build-task-chain-999")
        assert (ran.code, os.linesep in ran.err) == (2, True)
        assert "unknown build" in ran.err
