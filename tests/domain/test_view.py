"""The row of a build is a fold of its events: no order, no repeat and no part of a run changes what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.build.view import ADMITTED, ENDED, PHASE, STARTED, fold_row
from domain.errors import EventUnreadable
from domain.ports.store import BuildRow, Event

STATUSES = ["succeeded", "partial", "failed", "aborted", "escalated"]


def event(sequence: int, kind: str, *, run: str = "r1", at: int = 0, **data: Any) -> Event:
    return Event(
        first_run="r1", run=run, sequence=sequence, build="build-a-1", kind=kind, at=at or sequence * 10, data=data
    )


def started(**changes: Any) -> Event:
    return replace(event(1, STARTED, project="a", title="Add tags"), **changes)


def row(**changes: Any) -> BuildRow:
    first = BuildRow(
        build="build-a-1", project="a", title="Add tags", phase="intake", status="running", started=10, ended=0
    )
    return replace(first, **changes)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """One or two runs, each with phases in workflow time (several may share a millisecond), perhaps an end."""
    events = [started()]
    at = 10
    for run in draw(st.sampled_from([["r1"], ["r1", "r2"]])):
        for sequence in range(2, draw(st.integers(2, 6))):
            at += draw(st.integers(0, 3))
            events.append(event(sequence, draw(st.sampled_from([PHASE, "task.x"])), run=run, at=at, phase=f"p{at}"))
        at += 1
    if draw(st.booleans()):
        events.append(event(9, ENDED, run=events[-1].run, at=at, status=draw(st.sampled_from(STATUSES)), sentence=""))
    return events


def test_a_project_that_was_not_named_is_known_once_the_build_is_admitted() -> None:
    unnamed = started(data={"project": "", "title": "Add tags"})
    assert fold_row([unnamed, event(2, ADMITTED, project="a")]) == row()


@given(histories(), st.randoms(use_true_random=False))
def test_any_order_and_any_repeats_give_the_same_row(history: list[Event], random: Any) -> None:
    shuffled = history + random.choices(history, k=len(history))
    random.shuffle(shuffled)
    assert fold_row(shuffled) == fold_row(history)


@given(histories())
def test_the_row_says_what_the_last_events_say(history: list[Event]) -> None:
    found = fold_row(history)
    phases = [e.data["phase"] for e in history if e.kind == PHASE]
    ends = [e for e in history if e.kind == ENDED]
    assert found is not None
    assert found.phase == (phases[-1] if phases else "intake")
    assert (found.status, found.ended) == ((ends[0].data["status"], ends[0].at) if ends else ("running", 0))


@given(histories(), st.integers(0, 20))
def test_folding_never_needs_the_kinds_that_it_does_not_know(history: list[Event], cut: int) -> None:
    known = [e for e in history[:cut] if e.kind != "task.x"]
    assert fold_row(history[:cut]) == fold_row(known)


def test_the_end_that_a_sweeper_notes_is_the_builds() -> None:
    swept = replace(event(1, ENDED, status="aborted", sentence="it was terminated"), first_run="s", run="s", at=900)
    assert fold_row([swept, started(), event(2, PHASE, phase="tasks")]) == row(
        phase="tasks", status="aborted", ended=900
    )


def test_nothing_is_no_build() -> None:
    assert fold_row([]) is None


def test_a_build_that_never_started_has_no_row() -> None:
    assert fold_row([event(2, PHASE, phase="plan"), event(3, ENDED, status="failed", sentence="")]) is None


def test_a_reset_build_runs_again() -> None:
    ended = event(3, ENDED, status="failed", sentence="")
    again = event(3, PHASE, run="r2", at=99, phase="tasks")
    assert fold_row([started(), ended]) == row(status="failed", ended=30)
    assert fold_row([again, ended, started()]) == row(phase="tasks", status="running", ended=0)


def test_a_build_started_again_under_its_name_begins_anew() -> None:
    ended = event(3, ENDED, status="failed", sentence="")
    anew = started(first_run="q", run="q", at=500, data={"project": "a", "title": "Second try"})
    assert fold_row([anew, started(), ended]) == row(title="Second try", started=500)


def test_in_one_millisecond_the_first_run_comes_before_its_continuation() -> None:
    last = event(7, PHASE, run="r1", at=50, phase="one")
    next_run = event(1, PHASE, run="a-run-that-sorts-first", at=50, phase="two")
    assert fold_row([next_run, last, started()]) == row(phase="two")


def test_in_one_millisecond_a_run_keeps_its_own_order() -> None:
    events = [started(), event(2, PHASE, at=50, phase="land"), event(3, ENDED, at=50, status="succeeded", sentence="")]
    assert fold_row(reversed(events)) == row(phase="land", status="succeeded", ended=50)


@pytest.mark.parametrize(
    "broken",
    [
        event(1, STARTED, project="a"),
        event(1, STARTED, title="t", project=7),
        event(1, STARTED, title=None, project="a"),
    ],
)
def test_an_event_without_its_data_is_named(broken: Event) -> None:
    with pytest.raises(EventUnreadable, match=r"event r1/r1/1 \(build\.started\) has no text"):
        fold_row([broken])


@given(st.text())
def test_a_title_is_shown_as_one_short_printable_line(title: str) -> None:
    found = fold_row([started(data={"project": "a", "title": title})])
    assert found is not None
    assert found.title.isprintable()
    assert len(found.title) <= 200
    assert all(shown in (" ", given) for shown, given in zip(found.title, title, strict=False))
