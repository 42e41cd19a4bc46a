"""A person decides: at the terminal that started the build, by commands later, before and after it counts."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.person import Person
from tests.e2e.workshop import MENDWORK, MUL, PLAN, SQUARE, WRONG_MUL, Ran, Workshop, git

pytestmark = pytest.mark.timeout(300)  # whole builds, several of them, also on a busy machine

CONSENT = 'approve = ["plan", "change"]\nreview = false\n'
TWICE = [
    {"role": role, "task": task, "attempt": attempt, "answer": answer}
    for role, task, answer in (("Plan", None, PLAN), ("Change", "mul", MUL), ("Change", "square", SQUARE))
    for attempt in (1, 2)
]


@pytest.fixture(scope="module")
def asks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """A project that asks for its plan and for its change."""
    at = Workshop(tmp_path_factory.mktemp("asks") / "w", answers=TWICE)
    with at.running(consent=CONSENT):
        yield at


def begun(at: Workshop, *options: str) -> str:
    """A build that was followed until it waits for a person."""
    ran = at.mendwork("build", "spec.md", *options)
    assert ran.code == 7, ran.err
    return ran.out.strip()


def waits(at: Workshop, build: str) -> Ran:
    """Follow it until only a person helps, or to its end."""
    return at.mendwork("watch", build, "--no-wait")


def open_ask(at: Workshop, build: str) -> dict[str, Any]:
    [ask] = json.loads(at.mendwork("pending", build, "--json").out)
    found: dict[str, Any] = ask
    return found


def test_without_a_terminal_it_comes_back_with_7_and_the_commands_that_answer(asks: Workshop) -> None:
    ran = asks.mendwork("build", "spec.md")
    name = ran.out.strip()
    plan = open_ask(asks, name)
    assert (ran.code, plan["about"]) == (7, "plan")
    assert f"mendwork approve {name} {plan['digest'][:12]}" in ran.err
    assert "mul" in asks.mendwork("pending").out

    unnamed = asks.mendwork("approve", name)
    assert (unnamed.code, unnamed.out) == (2, "")
    assert f"mendwork approve {name} {plan['digest'][:12]}" in unnamed.err

    assert asks.mendwork("approve", name, plan["digest"][:8], "--by", "ann").code == 0
    assert waits(asks, name).code == 7
    change = open_ask(asks, name)
    assert change["about"] == "change"
    late = asks.mendwork("approve", name, plan["digest"][:8], "--by", "bob")
    assert (late.code, late.out) == (3, "refused: duplicate: plan-1 was answered approve by ann already\n")

    assert asks.mendwork("approve", name, change["digest"]).code == 0
    assert waits(asks, name).code == 0
    assert git(asks.repository, "log", "--format=%s", "-1", f"mendwork/{name}").strip() == "Add square"
    again = asks.mendwork("approve", name, change["digest"], "--json")
    assert (again.code, json.loads(again.out)["outcome"]) == (3, "refused")


def test_a_rejection_goes_back_into_planning_with_its_reason(asks: Workshop) -> None:
    name = begun(asks, "--approve", "plan")
    change = open_ask(asks, name)
    assert asks.mendwork("reject", name, change["digest"][:12]).code == 2  # a reason is needed
    rejected = asks.mendwork("reject", name, change["digest"][:12], "--reason", "square needs a docstring")
    assert rejected.code == 0
    assert asks.mendwork("abort", name, "--reason", "enough").code == 0
    assert asks.mendwork("watch", name).code == 3
    assert "enough" in asks.status(name)["sentence"]
    assert git(asks.repository, "for-each-ref", f"refs/heads/mendwork/{name}") == ""


def test_a_plan_by_hand_replaces_the_one_that_waits_and_the_old_digest_is_stale(asks: Workshop, tmp_path: Path) -> None:
    name = begun(asks)
    old = open_ask(asks, name)
    plan = json.loads(asks.mendwork("edit-plan", name).out)
    assert plan == PLAN
    bad = {**plan, "tasks": [{**plan["tasks"][0], "depends_on": ["nothing"]}]}
    for text, code, sentence in (
        ("{}", 2, "cannot be used"),
        (json.dumps(bad), 3, "the plan cannot be run"),
        (json.dumps({**plan, "tasks": plan["tasks"][:1]}), 0, "accepted"),
    ):
        (tmp_path / "plan.json").write_text(text)
        ran = asks.mendwork("edit-plan", name, str(tmp_path / "plan.json"))
        assert (ran.code, sentence in ran.out + ran.err) == (code, True), ran
    assert waits(asks, name).code == 7
    stale = asks.mendwork("approve", name, old["digest"][:12])
    assert (stale.code, "stale" in stale.out) == (3, True)
    assert asks.mendwork("approve", name, open_ask(asks, name)["digest"][:12]).code == 0
    assert waits(asks, name).code == 7
    assert [task["task"] for task in asks.status(name)["tasks"] if task["status"] == "merged"] == ["mul"]
    assert asks.mendwork("abort", name).code == 0
    assert asks.mendwork("watch", name).code == 3


def test_yes_asks_nothing_and_a_rerun_builds_the_same_spec_again(asks: Workshop) -> None:
    first = asks.mendwork("build", "spec.md", "--yes", "--title", "By ann")
    assert first.code == 0, first.err
    name = first.out.strip()
    again = asks.mendwork("rerun", name, "--yes")
    assert again.code == 0, again.err
    assert again.out.strip() != name
    assert asks.status(again.out.strip())["title"] == "By ann"
    trees = {git(asks.repository, "rev-parse", f"mendwork/{each}^{{tree}}") for each in (name, again.out.strip())}
    assert len(trees) == 1


def test_a_paused_build_starts_nothing_until_it_goes_on(asks: Workshop) -> None:
    name = begun(asks)
    assert asks.mendwork("pause", name).code == 0
    assert asks.mendwork("raise", name, "--build-budget", "20").code == 0
    assert asks.mendwork("raise", name).code == 2
    asks.mendwork("approve", name, open_ask(asks, name)["digest"][:12])
    assert not [line for line in asks.billed() if line["key"].startswith(f"{name}-task-")]
    assert asks.mendwork("resume-now", name).code == 0
    assert waits(asks, name).code == 7
    assert open_ask(asks, name)["about"] == "change"
    assert asks.mendwork("abort", name).code == 0


def test_what_nobody_started_cannot_be_told_anything(asks: Workshop) -> None:
    for arguments in (["approve", "build-x-9", "abcdef12"], ["pause", "build-x-9"], ["rerun", "build-x-9"]):
        ran = asks.mendwork(*arguments)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "unknown build 'build-x-9'" in ran.err


def person_at(at: Workshop, *arguments: str) -> Person:
    """At a terminal of their own, which ``mendwork`` runs on."""
    return Person([*MENDWORK, *arguments], folder=at.root, environment=at.environment)


def test_a_person_at_the_terminal_sees_the_plan_and_the_real_diff_and_approves_both(asks: Workshop) -> None:
    person = person_at(asks, "build", "spec.md")
    shown = person.sees("approve | reject REASON | later? ")
    assert "mul: Add mul" in shown
    person.types("a")
    person.sees("accepted: approve accepted")
    shown = person.sees("approve | reject REASON | diff | later? ")
    assert "+def mul(a, b):" in shown
    assert re.search(r"tests: .*5 (ran|tests passed)", shown)
    assert "cost so far: $0.0" in shown
    person.types("a")
    person.sees("succeeded: on branch mendwork/")
    code, name = person.leaves()
    assert (code, asks.status(name)["status"]) == (0, "succeeded")


def test_a_person_who_says_later_or_leaves_finds_the_build_waiting(asks: Workshop) -> None:
    person = person_at(asks, "build", "spec.md", "--approve", "plan")
    person.sees("diff | later? ")
    person.types("later")
    person.sees("shows the commands")
    person.process.send_signal(signal.SIGINT)
    person.sees("goes on. Come back with `mendwork watch")
    code, _ = person.leaves()
    assert code == 130
    listed = json.loads(asks.mendwork("pending", "--json").out)
    name = listed[0]["build"]
    assert asks.mendwork("approve", name, listed[0]["digest"][:12]).code == 0
    assert asks.mendwork("watch", name).code == 0


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """One attempt a question; the first one of the task ``mul`` is wrong."""
    answers: list[dict[str, Any]] = [
        {"role": "Plan", "answer": PLAN},
        {"role": "Change", "task": "mul", "attempt": 1, "answer": WRONG_MUL},
        {"role": "Change", "task": "mul", "attempt": 2, "answer": MUL},
        {"role": "Change", "task": "square", "answer": SQUARE},
    ]
    at = Workshop(tmp_path_factory.mktemp("stuck") / "w", answers=answers)
    with at.running(extra="\n[projects.calc.limits]\nattempts = 1\n"):
        yield at


class TestAStuckTask:
    def test_goes_on_with_a_hint(self, stuck: Workshop) -> None:
        name = begun(stuck)
        ask = open_ask(stuck, name)
        assert (ask["about"], ask["task"]) == ("task", "mul")
        assert stuck.mendwork("answer", name, ask["id"], "sing").code == 2
        assert stuck.mendwork("answer", name, "retry", "--hint", "multiply, do not add").code == 0
        assert stuck.mendwork("watch", name).code == 0
        duplicate = stuck.mendwork("answer", name, ask["id"], "retry")
        assert (duplicate.code, "comes too late" in duplicate.out) == (3, True)

    def test_takes_a_commit_that_a_person_made(self, stuck: Workshop) -> None:
        name = begun(stuck)
        wrong = stuck.mendwork("answer", name, "take", "--commit", "no-such-branch")
        assert wrong.code == 0  # the question comes again, with what was wrong
        assert waits(stuck, name).code == 7
        _by_hand(stuck, "by-hand")
        assert stuck.mendwork("answer", name, "take", "--commit", "by-hand").code == 0
        assert stuck.mendwork("watch", name).code == 0
        subjects = git(stuck.repository, "log", "--format=%s", f"mendwork/{name}").splitlines()
        assert subjects == ["Add square", "Multiply by hand", "start"]

    def test_is_put_to_the_person_at_the_terminal_with_what_was_tried(self, stuck: Workshop) -> None:
        person = person_at(stuck, "build", "spec.md")
        shown = person.sees("retry [HINT] | raise USD | skip | take COMMIT | abort [REASON] | diff | later? ")
        assert re.search(r"attempt 1.*: .*1 new failure: test_it \(test_mul", shown), shown
        assert "+    return a + b" in shown
        person.types("abort it is hopeless")
        person.sees("aborted: ")
        code, name = person.leaves()
        assert code == 3
        assert "it is hopeless" in stuck.status(name)["sentence"]


def _by_hand(at: Workshop, branch: str) -> None:
    """A commit on a branch of the user's repository, without leaving the one that is checked out."""
    git(at.repository, "switch", "-q", "-c", branch)
    calc = at.repository / "calc.py"
    calc.write_text(calc.read_text() + "\n\ndef mul(a, b):\n    return a * b\n")
    git(at.repository, "commit", "-q", "-a", "-m", "Multiply by hand")
    git(at.repository, "switch", "-q", "main")
