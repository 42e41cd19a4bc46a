"""The demo's reading of an event log, and its person who decides: what they tell can fail."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from examples.stage import engine as stage_engine
from examples.stage.engine import Build, Engine
from examples.stage.narrator import Narrator
from examples.stage.person import Decision, decide, decision_promises, undone_promises
from examples.stage.processes import StageFailure
from examples.stage.scene import Scene, git, make_repository
from examples.stage.story import Story, story_promises

Event = dict[str, Any]
DIGEST = "0123456789abcdef" * 4
NAME = "build-notes-1"


def event(kind: str, task: str = "", **data: Any) -> Event:
    return {"kind": kind, "task": task, "data": data}


def answered(role: str, model: str) -> Event:
    return event("call.answered", role=role, model=model)


def back(task: str, why: str) -> Event:
    return event("task.sent_back", task, why=why, sentence="it does not fit")


WHOLE = [
    answered("reasoning", "writer"),
    event("task.started", "storage"),
    event("task.ended", "storage"),
    event("task.merged", "storage"),
    event("task.started", "api"),
    event("task.started", "export"),
    answered("coding", "writer"),
    event("task.ended", "api"),
    event("task.ended", "export"),
    event("task.merged", "api"),
    back("export", "conflict"),
    event("task.merged", "export"),
    answered("validation", "reviewer"),
    event("review.ended", high=1),
    back("export", "finding"),
    event("task.merged", "export"),
    event("review.ended", high=0),
    event("ask.opened", id="change-1", about="change", digest=DIGEST),
    event("ask.closed", id="change-1", choice="approve", by="ann"),
]


def broken(events: list[Event]) -> list[int]:
    return [number for number, promise in enumerate(story_promises(Story(events))) if not promise.holds]


def without(kind: str, **data: Any) -> list[Event]:
    return [e for e in WHOLE if e["kind"] != kind or not data.items() <= e["data"].items()]


class TestStory:
    def test_a_build_with_all_of_it_keeps_every_promise(self) -> None:
        story = Story.of("".join(json.dumps(each) + "\n" for each in WHOLE))
        assert [promise.holds for promise in story_promises(story)] == [True] * 4
        assert story.side_by_side() == ("api", "export")
        assert story.approved() == DIGEST

    def test_tasks_one_after_the_other_are_seen(self) -> None:
        apart = [e for e in WHOLE if (e["kind"], e["task"]) != ("task.started", "export")]
        assert broken(apart) == [0]

    @pytest.mark.parametrize(("why", "number"), [("conflict", 1), ("finding", 2)])
    def test_what_was_never_sent_back_is_seen(self, why: str, number: int) -> None:
        assert broken(without("task.sent_back", why=why)) == [number]

    def test_what_was_sent_back_and_not_merged_again_is_seen(self) -> None:
        after = WHOLE.index(back("export", "finding")) + 1
        assert broken(WHOLE[:after] + WHOLE[after + 1 :]) == [2]

    def test_a_last_review_with_a_serious_finding_is_seen(self) -> None:
        assert broken([*WHOLE, event("review.ended", high=1)]) == [2]
        assert broken(without("review.ended")) == [2]

    def test_a_model_that_reviews_itself_is_seen(self) -> None:
        assert broken([*WHOLE, answered("validation", "writer")]) == [3]
        assert broken(without("call.answered", role="validation")) == [3]

    def test_only_an_approval_of_the_change_counts_as_one(self) -> None:
        assert Story(without("ask.closed")).approved() == ""
        assert Story([*without("ask.closed"), event("ask.closed", id="change-1", choice="reject")]).approved() == ""
        plan = event("ask.opened", id="plan-1", about="plan", digest=DIGEST)
        assert Story([plan, event("ask.closed", id="plan-1", choice="approve")]).approved() == ""


# A command line that answers from a file, by the words it is given, and notes them.
FAKE = """
import json, os, pathlib, sys
folder = pathlib.Path(os.environ["FAKE"])
with (folder / "said").open("a") as said:
    said.write(" ".join(sys.argv[1:]) + "\\n")
known = json.loads((folder / "known.json").read_text())
code, out, err = next(answer for words, *answer in known if " ".join(sys.argv[1:]).startswith(words))
sys.stderr.write(err)
sys.stdout.write(out)
sys.exit(code)
"""
Answer = tuple[str, int, str, str]
PACKET: Mapping[str, Any] = {"about": "change", "commit": "c" * 40, "cost": 1}
ASK = {"id": "change-1", "about": "change", "digest": DIGEST, "sentence": "all tests pass"}
ASKED: list[Answer] = [
    (f"pending {NAME} --json", 0, json.dumps([ASK]), ""),
    (f"pending {NAME}", 0, "change-1 waits\n", ""),
    (f"show {NAME} --packet {DIGEST}", 0, json.dumps(PACKET, indent=2) + "\n\ndiff --git a/x b/x\n+new\n", ""),
]
Make = Callable[[list[Answer]], Engine]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """An engine whose ``mendwork`` is the fake one."""
    program = tmp_path / "mendwork"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(tmp_path / "fake.py"))} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "fake.py").write_text(FAKE)
    monkeypatch.setattr(stage_engine, "MENDWORK", str(program))

    def engine(known: list[Answer]) -> Engine:
        (tmp_path / "known.json").write_text(json.dumps(known))
        scene = Scene(folder=tmp_path / "demo")
        scene.folder.mkdir(exist_ok=True)
        return Engine(scene=scene, environment={**os.environ, "FAKE": str(tmp_path)}, narrator=Narrator())

    return engine


def said(tmp_path: Path) -> list[str]:
    return (tmp_path / "said").read_text().splitlines()


class TestPerson:
    def test_without_anybody_the_demo_says_so_and_approves_what_it_showed(
        self, make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        engine = make([*ASKED, (f"approve {NAME} {DIGEST[:12]} --by demo", 0, "", "")])
        assert decide(engine, NAME, ask=False) == Decision(about="change", yes=True, digest=DIGEST, commit="c" * 40)
        printed = capsys.readouterr().out
        assert f"$ mendwork approve {NAME} {DIGEST[:12]}" in printed
        assert "Nobody is asked here" in printed
        assert printed.index("+new") < printed.index("Nobody is asked here")
        assert said(tmp_path)[-1] == f"approve {NAME} {DIGEST[:12]} --by demo"

    def test_somebody_at_the_terminal_is_asked_by_mendwork_itself(self, make: Make, tmp_path: Path) -> None:
        decision = decide(make([*ASKED, (f"approve {NAME}", 0, "", "")]), NAME, ask=True)
        assert decision is not None
        assert (decision.yes, said(tmp_path)[-1]) == (True, f"approve {NAME}")

    def test_a_no_ends_the_build(self, make: Make, tmp_path: Path) -> None:
        engine = make([*ASKED, (f"approve {NAME}", 3, "", "nothing was sent"), (f"abort {NAME}", 0, "", "")])
        decision = decide(engine, NAME, ask=True)
        assert decision is not None
        assert not decision.yes
        assert said(tmp_path)[-1].startswith(f"abort {NAME} --reason")

    def test_a_release_is_shown_with_its_risk_line_by_line(
        self, make: Make, capsys: pytest.CaptureFixture[str]
    ) -> None:
        term = {"name": "lines", "weight": 0.15, "amount": 0.5, "share": 0.075, "why": "400 lines touched"}
        packet = {"about": "release", "release": 2, "commit": "c" * 40, "risk": {"risk": 0.1, "terms": [term]}}
        release = {**ASK, "about": "release", "id": "release-1"}
        known: list[Answer] = [
            (f"pending {NAME} --json", 0, json.dumps([ASK, release]), ""),
            (f"pending {NAME}", 0, "release-1 waits\n", ""),
            (f"show {NAME} --packet", 0, json.dumps(packet) + "\n\ndiff --git a/x b/x\n+new\n", ""),
            (f"approve {NAME}", 0, "", ""),
        ]
        with pytest.raises(StageFailure, match="something else than an approval"):
            decide(make(known), NAME, ask=False)
        known[0] = (f"pending {NAME} --json", 0, json.dumps([release]), "")
        decision = decide(make(known), NAME, ask=False, answered=["f" * 64])
        assert decision is not None
        assert (decision.about, decision.digest) == ("release", DIGEST)
        printed = capsys.readouterr().out
        assert "0.15 × 0.50 = 0.07  400 lines touched" in printed or "0.15 × 0.50 = 0.08  400 lines" in printed
        assert "+new" not in printed, "the diff was shown when the change was approved"

    def test_what_was_answered_a_moment_ago_is_not_answered_again(self, make: Make, tmp_path: Path) -> None:
        assert decide(make(ASKED), NAME, ask=False, answered=[DIGEST]) is None
        assert decide(make([(f"pending {NAME} --json", 0, "[]", "")]), NAME, ask=False, answered=[DIGEST]) is None
        assert not [line for line in said(tmp_path) if line.startswith("approve")]

    def test_another_question_than_the_approval_is_told(self, make: Make) -> None:
        stuck = {**ASK, "about": "task", "sentence": "task api is stuck"}
        with pytest.raises(StageFailure, match=r"something else .* task api is stuck"):
            decide(make([(f"pending {NAME}", 0, json.dumps([stuck]), "")]), NAME, ask=False)

    def test_an_approval_that_does_not_get_through_is_told(self, make: Make) -> None:
        with pytest.raises(StageFailure, match="too late"):
            decide(make([*ASKED, (f"approve {NAME}", 3, "", "too late")]), NAME, ask=False)

    def test_what_was_landed_is_compared_with_what_was_approved(self, make: Make) -> None:
        engine = make([])
        base = make_repository(engine.scene)
        git(engine.scene, "branch", "mendwork/b")
        good = Decision(about="change", yes=True, digest=DIGEST, commit=base)
        for decision, holds in (
            (good, True),
            (Decision(about="change", yes=True, digest=DIGEST, commit="c" * 40), False),
            (Decision(about="change", yes=True, digest="f" * 64, commit=base), False),
        ):
            (promise,) = decision_promises(engine, Story(WHOLE), decision, branch="mendwork/b")
            assert promise.holds is holds
        assert not undone_promises(engine, base)[0].holds
        git(engine.scene, "branch", "-D", "mendwork/b")
        assert undone_promises(engine, base)[0].holds


def test_a_build_that_is_followed_again_tells_only_what_is_new(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    first = f"{NAME} started: Tags\nplanning\n  still at it\n  still at it\nwaits for an answer\n"
    second = (
        "planning\n  still at it\nwaits for an answer\nanswered: approve\n  still at it\n  still at it\nsucceeded\n"
    )
    engine = make([("build", 7, f"{NAME}\n", first), (f"watch {NAME} --no-wait", 0, f"{NAME}\n", second)])
    build = Build(engine, ["build"])
    build.wait_for_start()
    code, output = build.program.result()
    assert (code, output.strip(), build.name, build.waits) == (7, NAME, NAME, True)
    capsys.readouterr()
    build.follow_again()
    assert build.program.result() == (0, f"{NAME}\n")
    told = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert told == ["build │ answered: approve", "build │   still at it", "build │ succeeded"]
    assert not build.waits


def test_the_windows_of_a_watch_are_drawn_instead_of_told(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    lines = f"{NAME} started: Tags\nwatching it\nwindow 1 going on (0 of 40 failed, p95 8 ms)\nwindows are open\n"
    engine, drawn = make([("build", 0, f"{NAME}\n", lines)]), list[str]()
    build = Build(engine, ["build"], on_window=drawn.append)
    build.wait_for_start()
    build.program.result()
    assert drawn == [NAME]
    printed = capsys.readouterr().out
    assert "windows are open" in printed
    assert "window 1" not in printed
    assert build.has_told("watching it")
    assert not build.has_told("promoted")


def test_the_series_is_what_the_watch_measured() -> None:
    window: dict[str, Any] = {"release": 3, "number": 1, "verdict": "going on", "asked": 200, "failed": 0, "p95": 8.0}
    bad = {**window, "number": 2, "verdict": "fail", "failed": 150, "p95": 512.0, "baseline_asked": 200}
    events = [event("release.switched", release=3), event("watch.window", **window), event("watch.window", **bad)]
    rows = Story(events).series()
    assert [style for _, style in rows] == ["dim", "bold", "", "red"]
    assert "traffic goes to release 3" in rows[1][0]
    assert "75.0%" in rows[3][0]
    assert "512 ms" in rows[3][0]
