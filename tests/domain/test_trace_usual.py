"""What phases took, and which of them stand out: of told stories, and of any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.cli.lines import line_of
from domain.ports.store import Event
from domain.trace.node import walk
from domain.trace.order import undone
from domain.trace.rebuilding import compare
from domain.trace.tree import fold_trace
from domain.trace.usual.baseline import LATEST, LEAST, TIMES, judge, of_phase, row_of, usual_of
from domain.trace.usual.taken import PHASES, Phases, Taken
from tests.domain.test_trace_documented import DOC
from tests.domain.trace_stories import BUILD, PLANNED, Saga, called, reset, whole

SECOND = 1_000


def folded(events: list[Event]) -> Phases:
    phases = Phases()
    for event in events:
        phases.take(event)
    return phases


def took(events: list[Event]) -> list[tuple[str, int, int | None]]:
    return [(each.phase, each.millis, each.cost_micros) for each in folded(events).taken]


def fits(events: list[Event]) -> dict[str, bool]:
    return {each.phase: each.fit for each in folded(events).taken}


def a_phase(millis: int, cost: int | None = 0, *, fit: bool = True, whole: bool = True) -> Taken:
    return Taken(
        phase="plan",
        began=1_000,
        ended=1_000 + millis,
        millis=millis,
        cost_micros=cost,
        key=("r", "r", 7),
        fit=fit,
        whole=whole,
    )


def begun(saga: Saga) -> list[Event]:
    return [saga.note(10, "build.started", project="calc", title="T", user="ann")]


def test_the_phases_are_those_of_the_log() -> None:
    (row,) = [line for line in DOC.splitlines() if line.startswith("| `build.phase` |")]
    assert row.rpartition(":")[2].strip(" |").split(", ") == list(PHASES)


class TestWhatPhasesTook:
    def test_of_a_whole_story_each_phase_once_and_its_calls_in_it(self) -> None:
        root = [event for event in whole() if not event.task]
        found = took(whole())
        assert [phase for phase, _, _ in found] == [e.data["phase"] for e in root if e.kind == "build.phase"]
        by_name = {phase: (millis, cost) for phase, millis, cost in found}
        assert by_name["base"] == (200, 0)
        assert by_name["plan"] == (700, 1000)
        spent = {node.name: node.spent for node in walk(fold_trace(BUILD, whole())) if node.kind == "phase"}
        assert {phase: cost for phase, (_, cost) in by_name.items()} == {
            name: None if each.unpriced else each.cost_micros for name, each in spent.items()
        }

    def test_a_phase_that_is_named_again_or_goes_on_in_a_new_run_is_one(self) -> None:
        one, two = Saga("r1"), Saga("r2", first_run="r1")
        rows = [
            *begun(one),
            one.note(50, "build.phase", phase="intake"),
            one.note(100, "build.phase", phase="tasks"),
            two.note(500, "build.continued", phase="tasks"),
            two.note(510, "build.phase", phase="tasks"),
            two.note(900, "build.phase", phase="review"),
        ]
        assert took(rows) == [("intake", 90, 0), ("tasks", 800, 0)]
        assert all(fits(rows).values())

    def test_what_it_waits_for_people_is_not_its_own_time_however_asks_overlap(self) -> None:
        saga = Saga("r")
        rows = [
            *begun(saga),
            saga.note(100, "build.phase", phase="tasks"),
            saga.note(200, "ask.opened", id="a"),
            saga.note(250, "ask.opened", id="b"),
            saga.note(300, "ask.closed", id="a"),
            saga.note(400, "ask.closed", id="b"),
            saga.note(500, "build.paused", by="ann"),
            saga.note(800, "build.resumed", by="ann"),
            saga.note(900, "ask.opened", id="c"),
            saga.note(1000, "build.phase", phase="review"),
            saga.note(1100, "ask.closed", id="c"),
            saga.note(1300, "build.ended", status="succeeded"),
        ]
        assert took(rows) == [("intake", 90, 0), ("tasks", 900 - 200 - 300 - 100, 0), ("review", 200, 0)]

    def test_a_call_that_is_noted_again_is_paid_once_and_one_of_unknown_cost_makes_the_sum_unknown(self) -> None:
        saga = Saga("r")
        lost: dict[str, Any] = {"step": "plan", "turn": 3, "model": "m", "prompt": "p", "faults": [{"kind": "Lost"}]}
        rows = [
            *begun(saga),
            saga.note(100, "build.phase", phase="plan"),
            saga.note(110, "call.answered", attempt=1, **called(**PLANNED)),
            saga.note(120, "call.answered", attempt=1, **called(**PLANNED)),
            saga.note(130, "build.phase", phase="tasks"),
            saga.note(140, "call.failed", **lost),
            saga.note(150, "build.phase", phase="review"),
        ]
        assert [cost for _, _, cost in took(rows)] == [0, 1000, None]

    def test_what_a_reset_left_is_not_fit_and_what_came_after_it_is(self) -> None:
        rows = reset()
        again = {event.run for event in rows if event.run != event.first_run}
        assert again, "the story has a reset in it"
        one, two = Saga("r1"), Saga("r2", first_run="r1", sequence=2)
        rows = [
            *begun(one),
            one.note(100, "build.phase", phase="tasks"),
            two.note(90_000, "build.phase", phase="tasks"),
            two.note(90_100, "build.phase", phase="review"),
        ]
        assert [(each.phase, each.fit) for each in folded(rows).taken] == [
            ("intake", True),
            ("tasks", False),
            ("tasks", True),
        ]

    @pytest.mark.parametrize(
        ("status", "fit", "complete"),
        [("succeeded", True, True), ("failed", True, False), ("aborted", False, False), ("rolled back", True, True)],
    )
    def test_the_end_says_whether_the_last_phase_did_what_it_is_for(
        self, status: str, fit: bool, complete: bool
    ) -> None:
        saga = Saga("r")
        rows = [
            *begun(saga),
            saga.note(20, "build.phase", phase="landing"),
            saga.note(30, "build.ended", status=status),
        ]
        last = folded(rows).taken[-1]
        assert (last.phase, last.fit, last.whole, folded(rows).over) == ("landing", fit, complete, True)

    def test_a_forecast_makes_it_a_dry_run_and_a_restored_intake_is_no_intake(self) -> None:
        saga = Saga("r")
        rows = [
            *begun(saga),
            saga.note(20, "build.restored", token="t", phase="tasks"),
            saga.note(30, "build.phase", phase="plan"),
            saga.note(40, "build.phase", phase="approve_plan"),
            saga.note(50, "build.phase", phase="forecast"),
        ]
        assert fits(rows) == {"intake": False, "plan": True, "approve_plan": False}
        assert folded(rows).dry
        assert not folded(rows[:-1]).dry

    @given(cut=st.integers(0, len(whole())))
    def test_a_fork_goes_on_as_the_fold_would_and_leaves_it_as_it_was(self, cut: int) -> None:
        first, rest = whole()[:cut], whole()[cut:]
        kept = folded(first)
        before, fork = repr(kept), kept.fork()
        for event in rest:
            fork.take(event)
        assert repr(kept) == before
        assert fork.taken == folded(whole()).taken


class TestWhatStandsOut:
    def test_three_times_the_median_does_and_a_little_less_does_not(self) -> None:
        past = [a_phase(each * SECOND, each * 100_000) for each in (9, 10, 11, 10, 500)]
        assert judge(a_phase(30 * SECOND - 1, 3_000_000 - 1), past) is None
        found = judge(a_phase(30 * SECOND, 3_000_000), past)
        assert found is not None
        assert (found.measures, found.usual.millis, found.usual.count) == (("duration", "cost"), 10 * SECOND, 5)

    def test_too_little_history_is_no_verdict(self) -> None:
        past = [a_phase(SECOND, 1_000)] * (LEAST - 1)
        assert judge(a_phase(10**9, 10**9), past) is None
        assert judge(a_phase(10**9, 10**9), [*past, a_phase(SECOND, 1_000, whole=False)]) is None
        assert judge(a_phase(10**9, 10**9), [*past, a_phase(SECOND, 1_000, fit=False)]) is None
        assert judge(a_phase(10**9, 10**9), [*past, a_phase(SECOND, 1_000)]) is not None

    def test_seconds_and_cents_of_what_is_short_and_cheap_are_no_news(self) -> None:
        past = [a_phase(100, 50)] * LEAST
        assert judge(a_phase(9_000, 9_000), past) is None
        found = judge(a_phase(10_100, 9_000), past)
        assert found is not None
        assert found.measures == ("duration",)

    def test_what_is_usually_free_or_of_unknown_cost_has_no_usual_cost(self) -> None:
        for cost in (0, None):
            assert judge(a_phase(100, 10**9), [a_phase(100, cost)] * LEAST) is None
        assert judge(a_phase(100, None), [a_phase(100, 5)] * LEAST) is None

    def test_what_failed_is_judged_and_what_cannot_be_compared_is_not(self) -> None:
        past = [a_phase(SECOND)] * LEAST
        assert judge(a_phase(99 * SECOND, whole=False), past) is not None
        assert judge(a_phase(99 * SECOND, fit=False), past) is None

    def test_only_the_newest_count(self) -> None:
        builds = [[a_phase(SECOND)]] * LATEST + [[a_phase(1000 * SECOND)]] * 500
        usual = usual_of(of_phase("plan", builds))
        assert usual is not None
        assert (usual.count, usual.millis) == (LATEST, SECOND)
        assert of_phase("tasks", builds) == []

    @given(
        past=st.lists(st.tuples(st.integers(0, 10**7), st.none() | st.integers(0, 10**7)), max_size=30),
        value=st.integers(0, 10**8),
        cost=st.none() | st.integers(0, 10**8),
    )
    def test_any_verdict_holds_its_own_rule_and_does_not_depend_on_the_order(
        self, past: list[tuple[int, int | None]], value: int, cost: int | None
    ) -> None:
        earlier = [a_phase(*each) for each in past][:LATEST]
        found = judge(a_phase(value, cost), earlier)
        assert judge(a_phase(value, cost), earlier[::-1]) == found
        if found is None:
            return
        assert len(earlier) >= LEAST
        assert found.measures
        assert ("duration" in found.measures) <= (value >= TIMES * found.usual.millis)
        assert ("cost" in found.measures) <= (cost is not None and cost >= TIMES * (found.usual.cost_micros or 0))
        assert judge(a_phase(value * 2, cost), earlier) is not None, "more is never less of an anomaly"


class TestItsRow:
    def row(self, ended: Event) -> Event:
        taken = replace(
            a_phase(99 * SECOND, 70_000), key=(ended.first_run, ended.run, ended.sequence), ended=ended.at, began=200
        )
        found = judge(taken, [a_phase(SECOND, 20_000)] * LEAST)
        assert found is not None
        return row_of(BUILD, found)

    def test_it_is_in_the_phase_that_it_tells_of_and_undoes_nothing(self) -> None:
        story = whole()
        ended = next(e for e in story if e.kind == "build.phase" and e.data["phase"] == "tasks")
        rows = [*story, self.row(ended)]
        assert undone(rows) == undone(story)
        tree = fold_trace(BUILD, rows)
        (plan,) = [node for node in tree.children if node.name == "plan"]
        notes = [node.text for node in walk(plan) if node.name == "more than usual"]
        assert notes == ["plan took 99.0 s, usually 1.0 s and cost $0.0700, usually $0.0200"]
        assert tree.spent == fold_trace(BUILD, story).spent

    def test_whoever_watches_reads_a_sentence(self) -> None:
        line = line_of(self.row(whole()[-1]))
        assert line is not None
        assert line.startswith("much more than usual: plan took 99.0 s")

    def test_a_rebuild_leaves_it_and_drops_it_only_when_it_is_damaged(self) -> None:
        row = self.row(whole()[-1])
        key = (row.first_run, row.run, row.sequence)
        assert not compare({}, {key: "digest"}).changes
        assert compare({}, {key: "digest"}).kept == ()
        assert compare({}, {key: ""}).dropped == (key,)
