"""A log as a tree: who ran beside whom, how long, what it took, who waited."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ports.store import Event
from domain.trace.node import Node, walk
from domain.trace.spending import total
from domain.trace.tree import fold_trace, phases_of
from tests.domain.trace_stories import BUILD, Saga, begun, called, reset, waiting, whole

STORIES = [whole(), waiting(), reset()]


def trace(events: list[Event], **only: str) -> Node:
    return fold_trace(BUILD, events, **only)


def named(node: Node, kind: str, name: str = "") -> list[Node]:
    return [each for each in walk(node) if each.kind == kind and name in ("", each.name)]


def test_the_phases_follow_each_other_without_a_gap() -> None:
    phases = trace(whole()).children
    assert [node.name for node in phases] == ["intake", "base", "plan", "tasks", "review", "approve", "landing"]
    assert [node.end for node in phases[:-1]] == [node.start for node in phases[1:]]
    assert (phases[0].start, phases[-1].end) == (10, 9300)


def test_tasks_that_ran_beside_each_other_stand_beside_each_other() -> None:
    api, store = named(trace(whole()), "task")
    assert (api.name, store.name) == ("api", "store")
    assert api.end is not None
    assert store.start < api.end


def test_an_attempt_lasts_as_long_as_its_steps_and_each_begins_when_the_one_before_ended() -> None:
    first = named(trace(whole(), task="api"), "attempt")[0]
    assert (first.name, first.status, first.start, first.end) == ("#1", "red", 1020, 1420)
    steps = [(step.kind, step.start, step.end) for step in first.children]
    assert steps == [("call", 1020, 1120), ("apply", 1120, 1220), ("gates", 1220, 1420)]


def test_a_conflict_and_what_came_of_it_are_told_between_the_attempts() -> None:
    store = named(trace(whole()), "task", "store")[0]
    told = [(node.kind, node.status) for node in store.children]
    assert told == [
        ("attempt", "green"),
        ("merge", "conflict"),
        ("note", ""),
        ("attempt", "green"),
        ("merge", "clean"),
        ("gates", "green"),
        ("merge", "done"),
    ]
    assert store.children[1].text == "a.py"


def test_an_ask_tells_who_answered_and_how_long_it_waited() -> None:
    asked = named(trace(whole()), "ask")[0]
    assert (asked.name, asked.status, asked.start, asked.end) == ("change q1", "approve", 3100, 9000)
    assert "approve by ann" in asked.text


def test_what_goes_on_has_no_end() -> None:
    node = trace(waiting())
    open_ends = [each.name for each in walk(node) if each.end is None]
    assert (node.status, open_ends) == ("running", [BUILD, "approve", "change q1"])
    half = trace(waiting()[:20])
    assert {each.name for each in walk(half) if each.end is None} >= {BUILD, "tasks", "api", "store", "#1"}


def test_tokens_and_money_are_those_of_every_call() -> None:
    spent = trace(whole()).spent
    assert (spent.calls, spent.input_tokens, spent.output_tokens, spent.cost_micros, spent.unpriced) == (
        *(6, 600, 60, 6000),
        0,
    )


def test_what_takes_no_time_shortens_no_step() -> None:
    root = Saga("r")
    node = trace(
        [
            root.note(10, "build.phase", phase="review"),
            root.note(400, "build.paused", by="ann"),
            root.note(900, "call.answered", attempt=1, **called()),
        ]
    )
    call = named(node, "call")[0]
    assert (call.start, call.end) == (10, 900)


def test_a_reset_is_told_beside_what_it_undid_and_its_recorded_answers_cost_nothing_again() -> None:
    node = trace(reset())
    assert [(phase.name, phase.status) for phase in node.children if phase.status == "reset"] == [
        (name, "reset") for name in ("tasks", "review", "approve", "landing")
    ]
    assert [phase.name for phase in node.children][-3:] == ["tasks", "review", "approve"]
    assert node.status == "running"
    assert node.spent == trace(whole()).spent
    assert named(node.children[-2], "call")[0].status == "answered before"


def test_a_reset_into_the_middle_of_a_phase_goes_on_in_it() -> None:
    before = whole()
    root = Saga("run-2", first_run="run-1", sequence=9)
    node = trace([*before, root.note(30_000, "merge.tried", task="api", onto="c0", commit="m", conflicts=[])])
    assert [(phase.name, phase.status) for phase in node.children][-2:] == [("landing", "reset"), ("tasks", "running")]


def test_a_run_that_continues_another_as_new_undoes_nothing_and_splits_no_phase() -> None:
    root = Saga("run-1")
    events = [*begun(root), root.note(1100, "build.continued")]
    later = Saga("run-2", first_run="run-1")
    events += [later.note(1200, "task.merged", task="api", commit="m", ran=3)]
    node = trace(events)
    assert [phase.name for phase in node.children] == ["intake", "base", "plan", "tasks"]
    assert all(phase.status != "reset" for phase in node.children)


@pytest.mark.parametrize(
    ("kind", "data", "step"),
    [
        ("call.failed", {"step": "plan", "model": "m", "faults": [], "turn": 1}, ("call", "failed", "")),
        ("call.answered", called(problems=["cut"]), ("call", "unfit", "cut")),
        ("plan.refused", {"problems": ["a cycle"]}, ("check", "refused", "a cycle")),
        ("money.warned", {"sentence": "80 %"}, ("note", "", "80 %")),
        ("answer.refused", {"choice": "approve", "by": "x", "reason": "stale"}, ("note", "", "x; approve; stale")),
        ("limits.raised", {"by": "ann", "build_budget": 3.0}, ("note", "", "ann")),
    ],
)
def test_a_step_says_what_it_was(kind: str, data: dict[str, Any], step: tuple[str, str, str]) -> None:
    node = trace([Saga("r").note(5, kind, **data)])
    found = node.children[0].children[0]
    assert (found.kind, found.status, found.text) == step


def test_a_part_is_the_same_part_of_the_whole() -> None:
    node = trace(whole())
    assert trace(whole(), phase="review").children == (node.children[4],)
    store = trace(whole(), task="store")
    assert named(store, "task") == named(node, "task", "store")
    assert store.spent.calls == 2
    assert trace(whole(), task="nobody").children == ()


@pytest.mark.parametrize(
    ("faults", "unpriced"),
    [
        ([], 0),
        (["ProviderRefused"], 0),
        (["CredentialsRefused"], 0),
        (["RateLimited", "WorkerLost"], 1),
        (["ProviderUnavailable"], 1),
    ],
)
def test_a_call_that_nobody_bills_has_no_unknown_cost(faults: list[str], unpriced: int) -> None:
    data: dict[str, Any] = {
        "step": "plan",
        "model": "m",
        "turn": 1,
        "faults": [{"kind": kind, "sentence": "s"} for kind in faults],
    }
    assert trace([Saga("r").note(5, "call.failed", **data)]).spent.unpriced == unpriced


def test_an_empty_log_is_an_empty_tree() -> None:
    node = trace([])
    assert (node.start, node.end, node.children) == (0, None, ())


@given(st.sampled_from(STORIES), st.data())
def test_order_and_repeats_change_nothing(story: list[Event], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(story)) + data.draw(st.lists(st.sampled_from(story), max_size=5))
    assert trace(shuffled) == trace(story)


@given(st.sampled_from(STORIES), st.integers(0, 200), st.sampled_from(["", "api", "store"]))
def test_every_node_lies_within_the_build_and_its_sums_are_those_of_its_children(
    story: list[Event], cut: int, task: str
) -> None:
    node = trace(story[:cut], task=task)
    for each in walk(node):
        assert each.end is None or each.start <= each.end
        assert all(child.start >= each.start for child in each.children)
        assert [child.start for child in each.children] == sorted(child.start for child in each.children)
        if each.children and each.kind != "call":
            assert each.spent == total(child.spent for child in each.children)


@given(st.sampled_from(STORIES), st.integers(0, 200))
def test_every_event_happened_in_just_one_phase(story: list[Event], cut: int) -> None:
    found = [event for _, event in phases_of(story[:cut])]
    assert len(found) == cut if cut < len(story) else len(found) == len(story)
    assert set(map(id, found)) == set(map(id, story[:cut]))
