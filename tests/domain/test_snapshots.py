"""What a token names, what the log tells of snapshots, and what another build goes on with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput, InvalidName, UnknownName
from domain.flow.board import ENDED, TaskState
from domain.human.asks import Ask
from domain.human.book import Book
from domain.replay.snapshots import (
    ROLES,
    Snapshot,
    for_another_build,
    named,
    read_token,
    taken_in,
    token_of,
    with_models,
)
from tests.domain.trace_stories import BUILD, Saga

TAKEN: dict[str, Any] = {
    "after": "plan", "phase": "tasks", "state": "s1", "base": "b", "head": "h", "plan": "p", "spent": 7, "calls": 2,
}  # fmt: skip
ADMITTED = {"project": "shop", "spec": "sp", "reasoning": ["old"], "coding": ["old"], "validation": []}
STATUSES = ("waiting", "running", "written", "asking", "merged", "skipped", "blocked")


def state(**changes: Any) -> dict[str, Any]:
    """A build's state as JSON, small."""
    known = {"phase": "tasks", "admitted": ADMITTED, "plan": "p", "tasks": {}, "used": {}, "book": asdict(Book())}
    raw: dict[str, Any] = json.loads(json.dumps(known | changes))
    return raw


def task(status: str, *, attempt: int = 1, **changes: Any) -> dict[str, Any]:
    return asdict(TaskState(status=status, attempt=attempt, **changes))


class TestTokens:
    @given(build=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}[a-z0-9]", fullmatch=True), number=st.integers(0, 10**9 - 1))
    def test_a_token_is_read_as_it_was_written(self, build: str, number: int) -> None:
        try:
            assert read_token(f" {token_of(build, number)}\n") == (build, number)
        except InvalidName:
            assert ".." in build or build.endswith(".lock") or "-task-" in f"{build}-" or build in ("build", "deliver")

    @pytest.mark.parametrize(
        "text", ["", "build-a-1", "build-a-1@", "@2", "build-a-1@x", "a@-1", "a@²", "a@" + "1" * 99]
    )
    def test_what_is_no_token_is_told_how_one_reads(self, text: str) -> None:
        with pytest.raises(InvalidInput, match="BUILD@NUMBER"):
            read_token(text)

    def test_a_build_in_it_that_leads_out_is_refused(self) -> None:
        with pytest.raises(InvalidName):
            read_token("../x@1")


class TestTheLog:
    def test_a_number_taken_again_after_a_reset_stands_for_the_newer_one(self) -> None:
        root, again = Saga("run-1"), Saga("run-2", first_run="run-1", sequence=1)
        first = root.note(10, "snapshot.taken", number=1, **TAKEN)
        second = root.note(20, "snapshot.taken", number=2, **TAKEN)
        newer = again.note(30, "snapshot.taken", number=1, **{**TAKEN, "state": "s2"})
        for events in ([first, second, newer], [newer, second, first, first]):
            assert [(each.token, each.state) for each in taken_in(events)] == [
                (f"{BUILD}@1", "s2"),
                (f"{BUILD}@2", "s1"),
            ]

    def test_one_is_found_by_its_number_and_others_are_listed(self) -> None:
        root = Saga("run-1")
        found = taken_in([root.note(10, "snapshot.taken", number=n, **TAKEN) for n in (1, 2)])
        assert named(BUILD, 2, found) == Snapshot(token=f"{BUILD}@2", build=BUILD, number=2, at=10, **TAKEN)
        with pytest.raises(InvalidInput, match=f"no snapshot 3; there are {BUILD}@1 .next: tasks., {BUILD}@2"):
            named(BUILD, 3, found)
        with pytest.raises(InvalidInput, match="none was taken yet"):
            named(BUILD, 1, ())


class TestGoingOn:
    def test_what_was_at_work_waits_again_and_what_ended_stays(self) -> None:
        tasks = {
            name: task(name, attempt=2, commit="c", base="b", kind="K", sentence="s", packages=("left-pad",),
                       reason="r", report="x", change="y")
            for name in STATUSES
        }  # fmt: skip
        went = for_another_build(state(tasks=tasks))["tasks"]
        for name in ("waiting", *sorted(ENDED)):
            assert json.loads(json.dumps(went[name])) == json.loads(json.dumps(tasks[name]))
        for name in ("running", "written", "asking"):
            told = TaskState(**went[name])
            assert (told.status, told.commit, told.base, told.kind, told.sentence) == ("waiting", "", "", "", "")
            assert not told.packages
            assert (told.attempt, told.reason, told.report, told.change) == (2, "r", "x", "y")

    def test_nothing_of_the_old_builds_own_is_left(self) -> None:
        ask = Ask(id="q", about="task", digest="d", sentence="s", choices=("retry",), opened=1, deadline=2)
        mine = {"book": asdict(Book(open={"q": ask})), "asked": {"task:a": asdict(ask)}, "undo": [{"key": "k"}],
                "paused": True, "snapshots": 4, "parent": "other@1", "carried_micros": 9, "carried_calls": 9,
                "delivering": True, "delivered": {"status": "promoted"}, "branch": "mendwork/old",
                "diff": "d"}  # fmt: skip
        went = for_another_build(state(**mine))
        assert went["book"] == asdict(Book())
        assert {name: went[name] for name in mine if name != "book"} == {
            "asked": {}, "undo": [], "paused": False, "snapshots": 0, "parent": "", "carried_micros": 0,
            "carried_calls": 0, "delivering": False, "delivered": {}, "branch": "", "diff": "",
        }  # fmt: skip
        assert for_another_build(state(phase="deliver", **mine))["branch"] == "mendwork/old", "it is what is delivered"

    def test_what_it_does_not_know_goes_along(self) -> None:
        assert for_another_build(state(plans=3, later="x"))["later"] == "x"
        assert for_another_build(state(plans=3))["plans"] == 3

    @pytest.mark.parametrize("broken", [{}, [], {"admitted": None}, {"admitted": "x"}])
    def test_what_is_no_state_is_refused(self, broken: Any) -> None:
        with pytest.raises(InvalidInput, match="no state of a build"):
            for_another_build(broken)

    @given(
        tasks=st.dictionaries(
            st.sampled_from("abcdef"), st.tuples(st.sampled_from(STATUSES), st.integers(0, 9)), max_size=6
        ),
        used=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 9)),
    )
    def test_no_attempts_number_is_ever_used_twice(
        self, tasks: Mapping[str, tuple[str, int]], used: Mapping[str, int]
    ) -> None:
        given_tasks = {name: task(status, attempt=number) for name, (status, number) in tasks.items()}
        before = state(tasks=given_tasks, used=used)
        kept = json.dumps(before)
        went = for_another_build(before)
        assert json.dumps(before) == kept, "the snapshot itself stays as it is"
        assert all(went["used"][name] >= number for name, number in used.items())
        for name, (_, number) in tasks.items():
            assert went["used"][name] >= number
            assert went["tasks"][name]["attempt"] == number
            assert went["tasks"][name]["status"] not in ("running", "written", "asking")
        assert for_another_build(went) == went, "going on twice is going on once"


class TestModels:
    KNOWN = ("old", "new", "odd=name")

    @pytest.mark.parametrize(
        ("models", "chains"),
        [
            ((), (["old"], ["old"], [])),
            (("new",), (["new"], ["new"], ["new"])),
            (("coding=new",), (["old"], ["new"], [])),
            (("coding=old", "new"), (["new"], ["old"], ["new"])),
            (("new", "old", "new"), (["new", "old"],) * 3),
            (("odd=name", "reasoning=odd=name"), (["odd=name"],) * 3),
        ],
    )
    def test_a_name_is_for_every_role_and_one_with_a_role_for_that(
        self, models: tuple[str, ...], chains: tuple[list[str], ...]
    ) -> None:
        admitted = with_models(ADMITTED, models, known=self.KNOWN)
        assert tuple(admitted[role] for role in ROLES) == chains
        assert {**admitted, **{role: ADMITTED[role] for role in ROLES}} == ADMITTED, "nothing else changes"

    @pytest.mark.parametrize(
        ("model", "sentence"),
        [
            ("newer", "unknown model 'newer'; known: new, odd=name, old"),
            ("coding=newer", "unknown model 'newer'"),
            ("coding=", "unknown model ''"),
            ("", "unknown model ''"),
            ("painting=new", "unknown role 'painting'; known: coding, reasoning, validation"),
        ],
    )
    def test_unknown_names_list_the_known_ones(self, model: str, sentence: str) -> None:
        with pytest.raises(UnknownName, match=sentence):
            with_models(ADMITTED, (model,), known=self.KNOWN)
