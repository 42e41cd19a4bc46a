"""What a delivery's rows come to: a row in the list, the details, a branch of the trace; of a build or alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.build.details import DetailsFold, fold_details
from domain.build.view import fold_row
from domain.ports.store import Event
from domain.trace.asks import commands
from domain.trace.delivery.series import Figures, in_series, point_of, points_of
from domain.trace.node import Node, walk
from domain.trace.tree import fold_trace, phases_of
from tests.domain.delivery_stories import (
    ALONE,
    COMMIT,
    OF_BUILD,
    alone,
    of_build,
    promoted,
    rolled_back,
    until_asked,
    window,
)
from tests.domain.trace_stories import BUILD, Saga, begun

STORIES = [alone(promoted()), alone(rolled_back()), of_build(rolled_back(OF_BUILD), "rolled back")]


def only(node: Node, kind: str) -> Node:
    found = [each for each in walk(node) if each.kind == kind]
    assert len(found) == 1, [each.kind for each in walk(node)]
    return found[0]


class TestTheRow:
    def test_of_a_delivery_that_runs_alone_is_its_own(self) -> None:
        row = fold_row(alone(until_asked(Saga("r"), ALONE)))
        assert row is not None
        assert (row.build, row.project, row.title) == (ALONE, "calc", f"deliver {'c' * 12}")
        assert (row.phase, row.status, row.started, row.ended) == ("approval", "running", 1100, 0)

    def test_ends_as_the_delivery_does(self) -> None:
        row = fold_row(alone(rolled_back()))
        assert row is not None
        assert (row.status, row.phase, row.ended) == ("rolled back", "undo", 9600)

    def test_of_a_rollback_says_so(self) -> None:
        began = Saga("r").note(1, "delivery.began", release=4, kind="rollback", commit="", project="calc", saga=BUILD)
        row = fold_row([began])
        assert row is not None
        assert row.title == "roll back"

    def test_of_a_build_is_not_changed_by_its_delivery(self) -> None:
        story = of_build(promoted(OF_BUILD), "succeeded")
        without = [event for event in story if not event.first_run.startswith(f"run-{OF_BUILD}")]
        assert len(without) < len(story)
        assert fold_row(story) == fold_row(without)
        row = fold_row(story[:-1])
        assert row is not None
        assert (row.phase, row.status) == ("deliver", "running"), "its delivery has ended, the build has not"

    def test_does_not_exist_before_anything_began(self) -> None:
        assert fold_row(alone(until_asked(Saga("r"), ALONE))[:1]) is None

    def test_of_one_that_is_delivered_again_after_a_reset_runs_again(self) -> None:
        again = Saga("run-2", first_run=f"run-{ALONE}", sequence=3)
        story = [*promoted(), again.note(20_000, "delivery.phase", phase="lane")]
        row = fold_row(alone(story))
        assert row is not None
        assert (row.status, row.phase, row.ended) == ("running", "lane", 0)

    @given(st.sampled_from(STORIES), st.randoms(use_true_random=False))
    def test_is_the_same_for_any_order_and_any_repeats(self, story: list[Event], random: Any) -> None:
        shuffled = story + random.choices(story, k=5)
        random.shuffle(shuffled)
        assert fold_row(shuffled) == fold_row(story)


class TestTheDetails:
    def test_know_where_a_delivery_is_and_what_it_found(self) -> None:
        details = fold_details(ALONE, alone(until_asked(Saga("r"), ALONE)))
        told = details.delivery
        assert (details.alone, details.status, details.phase, details.project) == (True, "running", "approval", "calc")
        assert (told.release, told.previous, told.commit, told.saga) == (3, 2, COMMIT, ALONE)
        assert (told.risk["risk"], told.integration["green"], told.status) == (0.34, True, "running")
        (ask,) = details.open_asks()
        assert (ask.kind, ask.saga) == ("approval", ALONE)

    def test_of_a_rollback_by_the_watch_have_its_figures_and_where_traffic_went(self) -> None:
        told = fold_details(ALONE, alone(rolled_back())).delivery
        assert [(point.number, point.verdict, point.candidate.share) for point in told.points] == [
            (1, "pass", 5 / 600),
            (2, "fail", 0.3),
        ]
        assert (told.switched, told.rolled_back_to, told.status, told.refused) == (True, 2, "rolled back", False)

    def test_of_a_build_end_with_the_build_and_not_with_its_delivery(self) -> None:
        story = of_build(rolled_back(OF_BUILD), "rolled back")
        going_on = fold_details(BUILD, story[:-1])
        assert (going_on.alone, going_on.status, going_on.delivery.status) == (False, "running", "rolled back")
        assert fold_details(BUILD, story).status == "rolled back"

    def test_know_that_a_person_refused_it(self) -> None:
        saga = Saga("r")
        story = until_asked(saga, ALONE)
        story.append(saga.note(6000, "ask.closed", id="release-1", about="release", choice="reject", by="ann"))
        story.append(
            saga.note(6100, "delivery.ended", status="undelivered", sentence="ann said no", release=3, residues=["x"])
        )
        told = fold_details(ALONE, alone(story)).delivery
        assert (told.refused, told.status, told.residues) == (True, "undelivered", ("x",))

    def test_of_one_that_ends_before_it_began_are_over(self) -> None:
        saga = Saga("r")
        story = [
            saga.note(1, "delivery.phase", phase="admit"),
            saga.note(2, "delivery.ended", status="undelivered", sentence="no target", release=0, residues=[]),
        ]
        details = fold_details(ALONE, alone(story))
        assert (details.alone, details.status, details.sentence, details.started) == (
            True,
            "undelivered",
            "no target",
            1,
        )

    @given(st.sampled_from(STORIES), st.data())
    def test_are_the_same_however_the_rows_arrive(self, story: list[Event], data: Any) -> None:
        fold, left = DetailsFold(story[0].build), data.draw(st.permutations(story))
        while left:
            size = data.draw(st.integers(1, len(left)))
            fold.add(left[:size])
            left = left[size:]
        assert fold.details == fold_details(story[0].build, story)


class TestTheAnswersToAnAsk:
    def test_go_to_the_saga_that_asks(self) -> None:
        details = fold_details(BUILD, [*begun(Saga("run-1")), *until_asked(Saga("r"), OF_BUILD)])
        (ask,) = details.open_asks()
        assert commands(BUILD, ask)[0] == f"mendwork approve {OF_BUILD} fedcba987654"

    def test_about_a_watch_are_its_three_choices(self) -> None:
        data: dict[str, Any] = {"id": "watch-2", "about": "watch", "digest": "d", "sentence": "s"}
        asked = Saga("r").note(1, "ask.opened", **data, choices=["promote", "extend", "roll_back"], saga=OF_BUILD)
        (ask,) = fold_details(BUILD, [*begun(Saga("run-1")), asked]).open_asks()
        assert ask.kind == "question"
        assert commands(BUILD, ask) == tuple(
            f"mendwork answer {OF_BUILD} watch-2 {choice}" for choice in ("promote", "extend", "roll_back")
        )


class TestTheTrace:
    def test_has_a_delivery_as_a_branch_of_its_phase(self) -> None:
        node = fold_trace(BUILD, of_build(rolled_back(OF_BUILD), "rolled back"))
        phase = node.children[-1]
        assert (phase.name, phase.kind, [child.kind for child in phase.children]) == ("deliver", "phase", ["delivery"])
        delivery = phase.children[0]
        assert (delivery.name, delivery.status, delivery.start, delivery.end) == (
            "release 3",
            "rolled back",
            1100,
            9600,
        )

    def test_has_every_step_with_what_it_took(self) -> None:
        steps = {node.name: node for node in only(fold_trace(ALONE, alone(promoted())), "delivery").children}
        took = {name: (node.end or 0) - node.start for name, node in steps.items()}
        assert took["lane"] == 1100
        assert took["artifact"] == 1000
        assert took["staging"] == 500
        assert took["integration"] == 1000
        assert took["release release-1"] == 1000, "the ask"
        assert (took["step migrate"], steps["step migrate"].status) == (300, "green")
        assert steps["switch"].text == "from release 2 to 3"
        assert steps["approved"].text == "by ann (person)"
        assert steps["artifact"].refs["artifact"] == "a" * 64

    def test_has_the_windows_below_the_watch(self) -> None:
        watch = only(fold_trace(ALONE, alone(rolled_back())), "watch")
        assert (watch.status, watch.start, watch.end) == ("fail", 7000, 9000)
        assert [(node.name, node.status, (node.end or 0) - node.start) for node in watch.children] == [
            ("1", "pass", 1000),
            ("2", "fail", 1000),
        ]
        assert "candidate 180 of 600 failed, p95 900 ms; baseline 6 of 600 failed" in watch.children[1].text

    def test_of_one_that_runs_alone_is_one_phase(self) -> None:
        story = alone(promoted())
        node = fold_trace(ALONE, story)
        assert (node.status, node.end, [child.name for child in node.children]) == ("promoted", 9200, ["deliver"])
        assert {phase for phase, _ in phases_of(story)} == {"deliver"}
        assert only(node, "ask").status == "approve"

    def test_goes_on_while_it_is_watched(self) -> None:
        story = [event for event in alone(promoted()) if event.at <= 8000]
        node = fold_trace(ALONE, story)
        assert (only(node, "watch").status, only(node, "watch").end) == ("running", None)
        assert only(node, "delivery").end is None

    @given(st.sampled_from(STORIES), st.randoms(use_true_random=False))
    def test_is_the_same_for_any_order_and_any_repeats(self, story: list[Event], random: Any) -> None:
        shuffled = story + random.choices(story, k=5)
        random.shuffle(shuffled)
        assert fold_trace(story[0].build, shuffled) == fold_trace(story[0].build, story)


class TestASeries:
    def test_is_read_from_rows_and_records_alike(self) -> None:
        (point,) = points_of([window(1, "fail", failed=30)])
        assert (point.verdict, point.candidate.share, point.baseline) == (
            "fail",
            0.05,
            Figures(asked=600, failed=6, p50=20.5, p95=41.0),
        )

    def test_without_a_baseline_has_none(self) -> None:
        point = point_of({**window(1, "pass"), "baseline_asked": 0})
        assert point is not None
        assert point.baseline is None

    def test_may_name_both_releases_instead_of_writing_them_side_by_side(self) -> None:
        arms = {"candidate": {"asked": 600, "failed": 3, "p50": 1.0, "p95": 2.0}, "baseline": None}
        point = point_of({"number": 1, "verdict": "pass", **arms})
        assert point is not None
        assert (point.candidate, point.baseline) == (Figures(asked=600, failed=3, p50=1.0, p95=2.0), None)

    def test_has_each_window_once_the_last_that_was_told(self) -> None:
        points = points_of([window(2, "pass"), window(1, "pass"), window(2, "fail")])
        assert [(point.number, point.verdict) for point in points] == [(1, "pass"), (2, "fail")]
        assert in_series(points) == points

    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    )

    @given(
        st.lists(
            st.dictionaries(
                st.sampled_from(["number", "verdict", "candidate", "baseline", "asked", "p95"]),
                junk | st.dictionaries(st.sampled_from(["asked", "failed", "p50", "p95"]), junk),
            )
        )
    )
    def test_is_drawable_whatever_was_written_down(self, raw: Any) -> None:
        for point in points_of(raw):
            assert 0 <= point.candidate.share <= 1
            assert abs(point.candidate.p95) < 1e12


@pytest.mark.parametrize("story", STORIES)
def test_no_row_of_a_story_is_lost_in_its_phases(story: list[Event]) -> None:
    assert sorted(event.key for _, event in phases_of(story)) == sorted(event.key for event in story)
