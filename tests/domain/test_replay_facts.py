"""Two runs beside each other: the same facts are equal whatever the clock says, and the first digest that is not is
found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.ports.store import Event
from domain.replay.facts import COMPARED, compare

BUILD = "build-calc-1"


def row(kind: str, at: int, *, task: str = "", attempt: int = 0, saga: str = "", **data: Any) -> Event:
    """A row of the build's own saga, or of ``saga``'s; its time is its place in the run."""
    run = f"run-{saga}"
    return Event(
        first_run=run, run=run, sequence=at, build=BUILD, kind=kind, at=at, task=task, attempt=attempt, data=data
    )


def written(task: str, start: int, *, answer: str = "a1", commit: str = "c1") -> list[Event]:
    """A task's own saga: one call, one change, green gates."""
    saga: dict[str, Any] = {"task": task, "saga": task}
    call: dict[str, Any] = {
        "step": "change",
        "turn": 1,
        "model": "coder",
        "prompt": "p1",
        "answer": answer,
        "value": answer,
    }
    gates: dict[str, Any] = {
        "green": True,
        "ran": 3,
        "baseline": "b1",
        "seconds": 0.4,
        "log": "l1",
        "reason": "3 passed in 0.1 s",
    }
    return [
        row("task.started", start, **saga, base="c0", first=1),
        row("call.answered", start + 1, attempt=1, **saga, **call, usage={"cost_micros": 12}),
        row("change.applied", start + 2, attempt=1, **saga, commit=commit, written="w1", diff="d1"),
        row("gates.ran", start + 3, attempt=1, **saga, **gates),
        row("task.ended", start + 4, attempt=1, **saga, status="green", commit=commit),
    ]


def again(events: Sequence[Event], *, later: int = 1_000_000, suffix: str = "-again") -> list[Event]:
    """The same facts of another run: other runs, times, seconds, costs and logs."""
    noise = {"seconds": 9.9, "log": "l2", "usage": {"cost_micros": 0}, "reason": "3 passed in 7.5 s"}
    return [
        replace(
            event,
            first_run=event.first_run + suffix,
            run=event.run + suffix,
            at=event.at + later,
            data={name: noise.get(name, value) for name, value in event.data.items()},
        )
        for event in events
    ]


def test_the_same_facts_are_equal_whatever_they_took_and_cost() -> None:
    recorded = [row("build.phase", 1, phase="tasks"), *written("mul", 2)]
    compared = compare(recorded, again(recorded))
    assert (compared.equal, compared.facts) == (True, 6)


def test_the_first_digest_that_differs_is_told_with_both_sides() -> None:
    recorded = written("mul", 1)
    difference = compare(recorded, again(written("mul", 1, answer="a2", commit="c2"))).difference
    assert difference is not None
    assert (difference.task, difference.attempt, difference.kind, difference.step) == ("mul", 1, "call", "change")
    assert (difference.what, difference.recorded, difference.now) == ("answer", "a1", "a2")


def test_a_call_that_is_refused_now_differs_in_what_was_asked() -> None:
    """A prompt that is not the recorded one gets no recorded answer: the failure is told as the other prompt."""
    recorded = written("mul", 1)
    asked: dict[str, Any] = {
        "step": "change",
        "turn": 1,
        "model": "coder",
        "prompt": "p2",
        "faults": [{"kind": "KeyConflict"}],
    }
    failed = row("call.failed", 2, task="mul", saga="mul", attempt=1, **asked)
    difference = compare(recorded, again([recorded[0], failed])).difference
    assert difference is not None
    assert (difference.what, difference.recorded, difference.now) == ("prompt", "p1", "p2")


def test_a_fact_that_is_missing_now_is_a_difference() -> None:
    recorded = written("mul", 1)
    difference = compare(recorded, again(recorded[:3])).difference
    assert difference is not None
    assert (difference.what, difference.recorded, difference.now) == ("fact", "gates.ran of attempt 1", "(nothing)")


def test_a_fact_too_many_is_a_difference() -> None:
    recorded = written("mul", 1)
    difference = compare(recorded[:3], again(recorded)).difference
    assert difference is not None
    assert (difference.recorded, difference.now) == ("(nothing)", "gates.ran of attempt 1")


def test_tasks_side_by_side_may_lie_between_each_other_in_any_way() -> None:
    one, two = written("mul", 1), written("add", 1)
    shifted = [replace(event, at=event.at + 3) for event in again(two, later=0)]
    assert compare([*one, *two], [*again(one, later=0), *shifted]).equal


def test_a_field_that_an_older_version_did_not_tell_is_no_difference() -> None:
    recorded = [row("gates.ran", 1, attempt=1, task="mul", green=True, ran=3)]
    assert compare(recorded, again([row("gates.ran", 1, attempt=1, task="mul", green=True, ran=3, new=0)])).equal


def test_how_it_ended_is_compared_by_its_commit_and_its_fault_not_by_its_words() -> None:
    recorded = [row("build.phase", 1, phase="plan"), row("build.ended", 2, status="succeeded", commit="c1")]
    stopped = row("build.ended", 2, status="stopped", sentence="after plan", commit="c1")
    assert compare(recorded, again([recorded[0], stopped])).equal
    failed = row("build.ended", 2, status="failed", fault="InvalidPlan")
    difference = compare(recorded, again([recorded[0], failed])).difference
    assert difference is not None
    assert (difference.what, difference.recorded, difference.now) == ("fault", "", "InvalidPlan")


def test_what_a_reset_undid_is_not_compared() -> None:
    recorded = written("mul", 1)
    reset = [replace(event, run="second", at=event.at + 50) for event in written("mul", 1, answer="a9")[1:]]
    assert compare([*recorded, *reset], again(written("mul", 1, answer="a9"))).equal


KINDS = sorted(set(COMPARED) - {"call", "build.ended"})
facts = st.builds(
    lambda kind, task, values: (kind, task, dict(zip(COMPARED[kind], values, strict=False))),
    st.sampled_from(KINDS),
    st.sampled_from(["", "mul", "add"]),
    st.lists(st.sampled_from(["x", "y"]), min_size=7, max_size=7),
)


def of(listed: Sequence[tuple[str, str, dict[str, Any]]]) -> list[Event]:
    """Rows of the build's own saga."""
    return [row(kind, place, task=task, **data) for place, (kind, task, data) in enumerate(listed, 1)]


@given(st.lists(facts, max_size=20))
def test_every_run_equals_itself_at_another_time(listed: list[tuple[str, str, dict[str, Any]]]) -> None:
    recorded = of(listed)
    compared = compare(recorded, again(recorded))
    assert (compared.equal, compared.facts) == (True, len(listed))


@given(st.lists(facts, min_size=1, max_size=20), st.data())
def test_any_changed_digest_is_found_at_the_earliest_place(
    listed: list[tuple[str, str, dict[str, Any]]], data: st.DataObject
) -> None:
    changeable = [place for place, (_, _, values) in enumerate(listed) if values]
    if not changeable:
        return
    places = sorted(set(data.draw(st.lists(st.sampled_from(changeable), min_size=1, max_size=3))))
    changed = list(listed)
    for place in places:
        kind, task, values = listed[place]
        changed[place] = (kind, task, {**values, COMPARED[kind][0]: "another"})
    difference = compare(of(listed), again(of(changed))).difference
    kind, task, values = listed[places[0]]
    first = COMPARED[kind][0]
    assert difference is not None
    assert (difference.kind, difference.task, difference.what) == (kind, task, first)
    assert (difference.recorded, difference.now) == (values[first], "another")


@given(st.lists(facts, max_size=10), st.lists(facts, max_size=10))
def test_comparing_is_even_handed(
    one: list[tuple[str, str, dict[str, Any]]], other: list[tuple[str, str, dict[str, Any]]]
) -> None:
    assert compare(of(one), again(of(other))).equal == compare(of(other), again(of(one))).equal
