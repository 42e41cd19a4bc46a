"""Which task may start, wait or merge."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.flow.board import (
    ASKING,
    BLOCKED,
    ENDED,
    MERGED,
    MOST_SHOWN,
    RUNNING,
    SKIPPED,
    WAITING,
    WRITTEN,
    Node,
    TaskState,
    block,
    carried,
    must_wait,
    overlap,
    shown,
    startable,
    undeclared,
)


def node(name: str, *depends_on: str, files: tuple[str, ...] = ()) -> Node:
    return Node(id=name, depends_on=depends_on, files=files or (f"{name}.py",))


def states(**given: str) -> dict[str, TaskState]:
    return {name: TaskState(status=status) for name, status in given.items()}


@st.composite
def boards(draw: Any) -> tuple[tuple[Node, ...], dict[str, TaskState]]:
    """Plans in an order in which they can run, each task in any state that its dependencies allow."""
    count = draw(st.integers(1, 8))
    names = [f"t{n}" for n in range(count)]
    paths = st.sampled_from(["a.py", "b.py", "lib", "lib/c.py", "d.py"])
    nodes: list[Node] = []
    found: dict[str, TaskState] = {}
    for number, name in enumerate(names):
        needs = tuple(draw(st.lists(st.sampled_from(names[:number]), unique=True, max_size=2))) if number else ()
        nodes.append(Node(id=name, depends_on=needs, files=tuple(draw(st.lists(paths, unique=True, max_size=2)))))
        free = all(found[d].status == MERGED for d in needs)
        choices = [WAITING, RUNNING, WRITTEN, ASKING, MERGED, SKIPPED] if free else [WAITING]
        found[name] = TaskState(status=draw(st.sampled_from(choices)))
    return tuple(nodes), found


@given(boards(), st.integers(1, 4))
def test_what_starts_has_its_dependencies_merged_its_files_free_and_a_place(board: Any, limit: int) -> None:
    nodes, found = board
    by_name = {n.id: n for n in nodes}
    at_work = [n for n in nodes if found[n.id].status in (RUNNING, WRITTEN)]
    chosen = startable(nodes, found, limit=limit)
    assert len(chosen) + len(at_work) <= max(limit, len(at_work))
    for position, name in enumerate(chosen):
        assert found[name].status == WAITING
        assert all(found[d].status == MERGED for d in by_name[name].depends_on)
        others = [*at_work, *(by_name[earlier] for earlier in chosen[:position])]
        assert not any(overlap(by_name[name].files, other.files) for other in others)


@given(boards())
def test_a_board_where_nothing_can_happen_any_more_has_ended(board: Any) -> None:
    """Liveness: as long as a task waits, something starts, runs, is asked about or is blocked."""
    nodes, found = board
    for name in block(nodes, found):
        found[name].status = BLOCKED
    busy = any(s.status in (RUNNING, WRITTEN, ASKING) for s in found.values())
    over = all(s.status in ENDED for s in found.values())
    assert busy or over or startable(nodes, found, limit=1)


@given(boards())
def test_written_tasks_never_wait_for_each_other(board: Any) -> None:
    nodes, found = board
    waits = {n.id: must_wait(n, ("a.py", "lib/c.py"), nodes, found) for n in nodes if found[n.id].status == WRITTEN}
    assert all(holder is None or found[holder].status == RUNNING for holder in waits.values())


def test_everything_behind_a_skipped_task_is_blocked_with_what_is_missing() -> None:
    nodes = (node("a"), node("b", "a"), node("c", "b"), node("d"))
    found = states(a=SKIPPED, b=WAITING, c=WAITING, d=WAITING)
    assert block(nodes, found) == {"b": "a", "c": "b"}


def test_a_task_that_is_asked_about_holds_no_file() -> None:
    nodes = (node("a", files=("app.py",)), node("b", files=("app.py",)))
    assert startable(nodes, states(a=ASKING, b=WAITING), limit=2) == ("b",)
    assert startable(nodes, states(a=WRITTEN, b=WAITING), limit=2) == ()


def test_locks_taken_on_the_way_hold_back_those_who_declared_the_file() -> None:
    nodes = (node("a"), node("b"))
    found = states(a=WRITTEN, b=WAITING)
    found["a"].locks = ("b.py",)
    assert startable(nodes, found, limit=2) == ()


def test_a_folder_stands_for_what_is_below_it() -> None:
    assert overlap(("src/",), ("src/app/main.py",))
    assert overlap(("src/app/main.py",), ("src",))
    assert not overlap(("src2/main.py",), ("src",))
    assert undeclared(node("a", files=("src", "x.py")), ("src/y.py", "x.py", "z.py")) == ("z.py",)


def test_only_the_last_few_tries_are_remembered() -> None:
    state = TaskState()
    for number in range(9):
        state.remember(attempt=str(number))
    assert [tried["attempt"] for tried in state.tried] == ["4", "5", "6", "7", "8"]


WORDS = st.text(max_size=5)
STATES = st.builds(
    TaskState,
    status=st.sampled_from([WAITING, RUNNING, WRITTEN, ASKING, MERGED, SKIPPED, BLOCKED]),
    attempt=st.integers(0, 9),
    sent_back=st.integers(0, 3),
    commit=WORDS,
    reason=WORDS,
    base=WORDS,
    packages=st.lists(WORDS, max_size=2).map(tuple),
    locks=st.lists(WORDS, max_size=2).map(tuple),
    tried=st.lists(st.dictionaries(WORDS, WORDS, max_size=2), max_size=2),
)


@given(STATES)
def test_what_is_carried_of_a_task_is_all_that_is_to_come_of_it(state: TaskState) -> None:
    again = TaskState(**carried(state))
    if state.status != MERGED:
        assert again == state
    assert (again.status, again.attempt, again.commit, again.sent_back) == (
        state.status,
        state.attempt,
        state.commit,
        state.sent_back,
    )


def test_a_thousand_merged_tasks_are_carried_in_one_payload() -> None:
    tried = [{"attempt": "1", "outcome": "green", "diff": "d" * 64, "report": "r" * 64, "model": "coder"}] * 5
    merged = TaskState(status=MERGED, attempt=5, commit="c" * 40, base="b" * 40, tried=tried)
    assert len(json.dumps({f"t{number:04}": carried(merged) for number in range(1_000)})) < 128_000


def test_of_very_many_tasks_the_totals_are_shown_and_those_at_work() -> None:
    few = {"a": TaskState(status=MERGED), "b": TaskState()}
    assert shown(few) == ("a: merged", "b: waiting")
    many = {f"t{number:03}": TaskState(status=RUNNING if number in (7, 8) else MERGED) for number in range(500)}
    assert shown(many) == ("498 merged, 2 running", "t007: running", "t008: running")
    assert len(shown({name: TaskState(status=ASKING) for name in many})) <= MOST_SHOWN + 1
