"""Who is let in, who waits, who is refused; what freezes an environment, and what ends that."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.delivery import lane
from domain.delivery.lane_signals import FEWEST_EVENTS, decode_lane_request
from domain.delivery.lane_state import (
    MOST_FACTS,
    MOST_HISTORY,
    MOST_LEFT,
    MOST_LOOKS,
    MOST_WAITING,
    LaneState,
    details,
    view,
)
from domain.errors import InvalidInput
from domain.ports.sagas import ENDED, RUNNING, STOPPED, UNKNOWN
from tests.domain.lanes import (
    NOW,
    delivered,
    fresh,
    holder,
    joined,
    left,
    promoted,
    queue,
    rolled_back,
    silent,
    words,
)

FIELDS = st.sampled_from(["saga", "release", "kind", "outcome", "by", "current", "colour"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(FIELDS, inner),
)


class TestJoining:
    def test_the_first_is_let_in_at_once_and_the_others_wait_in_order(self) -> None:
        state = fresh()
        for number, saga in enumerate(("one", "two", "three"), 1):
            state = joined(state, saga, number)
        assert (holder(state), queue(state)) == ("one", ["two", "three"])
        told = words(state)
        assert told["one"].granted
        assert [(told[saga].granted, told[saga].position) for saga in ("two", "three")] == [(False, 1), (False, 2)]
        assert told["three"].reason == "number 2 in the queue, behind one"

    def test_nobody_is_let_in_before_the_record_of_releases_was_read(self) -> None:
        state = joined(LaneState(project="shop", environment="production"), "one", 1)
        assert (holder(state), queue(state)) == ("", ["one"])

    def test_the_holder_that_joins_again_is_granted_again_and_nothing_else_changes(self) -> None:
        state = silent(joined(joined(fresh(), "one", 1), "two", 2))
        again = joined(state, "one", 1)
        assert words(again)["one"].granted
        assert replace(again, outbox=()) == state

    def test_one_that_waits_and_asks_again_hears_nothing_new_and_keeps_its_place(self) -> None:
        state = silent(joined(joined(joined(fresh(), "one", 1), "two", 2), "three", 3))
        assert joined(state, "two", 2) == state

    def test_a_run_that_was_reset_hears_where_it_stands(self) -> None:
        state = silent(joined(joined(fresh(), "one", 1), "two", 2, run="r1"))
        again = joined(state, "two", 2, run="r2")
        assert words(again)["two"].position == 1
        assert queue(again) == ["two"]

    def test_a_late_repeat_of_a_joining_that_is_over_does_not_queue(self) -> None:
        state = left(joined(fresh(), "one", 1, run="r1"), "one", "untouched")
        late = joined(state, "one", 1, run="r1")
        assert (holder(late), queue(late)) == ("", [])
        assert "late repeat" in late.facts[-1].sentence
        assert holder(joined(late, "one", 1, run="r2")) == "one", "a run that was reset joins anew"

    def test_a_leaving_that_overtook_its_joining_is_remembered(self) -> None:
        state = left(fresh(), "one", "untouched", run="r1")
        assert holder(joined(state, "one", 1, run="r1")) == ""

    def test_a_rollback_goes_before_all_deliveries_and_after_earlier_rollbacks(self) -> None:
        state = fresh()
        for number, (saga, kind) in enumerate(
            [("one", "deliver"), ("two", "deliver"), ("back", "rollback"), ("back-2", "rollback")], 1
        ):
            state = joined(state, saga, number, kind=kind)
        assert (holder(state), queue(state)) == ("one", ["back", "back-2", "two"])

    def test_more_than_the_queue_takes_are_refused(self) -> None:
        state = joined(fresh(), "first", 1)
        for number in range(MOST_WAITING + 1):
            state = joined(state, f"saga-{number}", 2)
        assert len(state.queue) == MOST_WAITING
        assert words(state)[f"saga-{MOST_WAITING}"].reason == "200 deliveries wait already"


class TestOlderReleases:
    def test_a_delivery_older_than_production_is_refused_with_both_numbers(self) -> None:
        state = joined(promoted(fresh(), "one", 5), "old", 4)
        word = words(state)["old"]
        assert (word.refused, word.granted, word.current) == (True, False, 5)
        assert word.reason == "release 4 is older than production's, which is 5: only a rollback goes back"
        assert (holder(state), queue(state)) == ("", [])

    def test_it_is_judged_again_when_its_turn_comes(self) -> None:
        state = joined(joined(joined(fresh(), "new", 5), "old", 4), "newer", 6)
        assert queue(state) == ["old", "newer"]
        state = left(state, "new", "promoted")
        assert words(state)["old"].refused
        assert holder(state) == "newer"

    def test_a_rollback_may_be_older(self) -> None:
        assert holder(joined(promoted(fresh(), "one", 5), "back", 3, kind="rollback")) == "back"

    def test_the_same_release_may_be_delivered_again(self) -> None:
        assert holder(joined(promoted(fresh(), "one", 5), "again", 5)) == "again"

    def test_after_a_rollback_what_counts_is_what_production_has_then(self) -> None:
        state = promoted(promoted(fresh(), "three", 3, commit="c3"), "five", 5)
        state = left(joined(state, "back", 6, kind="rollback"), "back", "rolled back", release={"number": 5}, current=3)
        assert state.current is not None
        assert (state.current.number, state.current.commit) == (3, "c3")
        state, _ = lane.acknowledge(state, {"by": "ann"}, at=NOW)
        assert holder(joined(state, "four", 4)) == "four"


class TestLeaving:
    def test_a_promoted_release_is_productions_and_the_next_one_is_let_in(self) -> None:
        state = joined(joined(fresh(), "one", 1, commit="c1"), "two", 2)
        state = left(state, "one", "promoted", release={"number": 1, "commit": "c1", "artifact": "a", "config": "e"})
        assert state.current is not None
        assert (state.current.number, state.current.artifact, state.current.config) == (1, "a", "e")
        assert holder(state) == "two"
        assert words(state)["two"].current == 1

    def test_an_untouched_production_leaves_nothing(self) -> None:
        before = promoted(fresh(), "one", 1)
        state = left(joined(before, "two", 2), "two", "untouched", current=0)
        assert (state.current, state.history, state.frozen) == (before.current, before.history, None)

    def test_one_that_waits_withdraws(self) -> None:
        state = left(joined(joined(joined(fresh(), "one", 1), "two", 2), "three", 3), "two", "untouched")
        assert (holder(state), queue(state)) == ("one", ["three"])
        assert "two" not in words(state)

    def test_a_repeat_changes_nothing(self) -> None:
        state = joined(rolled_back(fresh(), "one", 1), "two", 2)
        for outcome in ("promoted", "rolled back", "untouched", "unclear"):
            assert left(state, "one", outcome, current=9) == state

    def test_what_production_saw_counts_also_from_one_that_was_not_let_in(self) -> None:
        state = left(joined(joined(fresh(), "one", 1), "two", 2), "two", "unclear", sentence="nobody knows")
        assert (holder(state), queue(state)) == ("one", [])
        assert state.frozen is not None
        assert state.frozen.release == 2

    def test_the_state_holds_the_last_ten_releases(self) -> None:
        state = fresh()
        for number in range(1, 14):
            state = promoted(silent(state), f"saga-{number}", number)
        assert [shipped.number for shipped in state.history] == list(range(4, 14))
        assert len(state.history) == MOST_HISTORY

    def test_what_a_lane_remembers_of_the_past_is_bounded(self) -> None:
        state = fresh()
        for number in range(1, MOST_LEFT + 20):
            state = left(joined(silent(state), f"saga-{number}", 1), f"saga-{number}", "untouched")
            state = lane.leave(state, "nonsense", at=NOW)
        assert len(state.left) == MOST_LEFT
        assert len(state.facts) == MOST_FACTS

    def test_a_site_that_was_closed_has_no_release(self) -> None:
        assert rolled_back(fresh(), "one", 1, current=0).current is None

    def test_a_release_that_the_lane_never_saw_is_productions_by_its_number(self) -> None:
        state = rolled_back(fresh(), "seven", 7, current=6)
        assert state.live == 6


class TestTheFreeze:
    @pytest.mark.parametrize("outcome", ["rolled back", "unclear"])
    def test_what_went_wrong_freezes_the_lane_and_who_waits_is_told_why_and_the_way_out(self, outcome: str) -> None:
        state = joined(joined(fresh(), "one", 7), "two", 8)
        state = left(silent(state), "one", outcome, sentence="5 % of its answers failed", current=6)
        assert (holder(state), queue(state)) == ("", ["two"])
        word = words(state)["two"]
        assert not word.granted
        assert not word.refused
        assert "frozen since release 7" in word.reason
        assert "5 % of its answers failed" in word.reason
        assert "`mendwork lane shop --acknowledge --reason '…'`" in word.reason

    def test_one_that_joins_a_frozen_lane_waits_and_is_told_so(self) -> None:
        state = joined(rolled_back(fresh(), "one", 1), "two", 2)
        assert (holder(state), queue(state)) == ("", ["two"])
        assert "is frozen" in words(state)["two"].reason

    def test_a_frozen_lane_lets_a_rollback_in(self) -> None:
        state = joined(joined(rolled_back(fresh(), "one", 5), "two", 6), "back", 7, kind="rollback")
        assert (holder(state), queue(state)) == ("back", ["two"])
        state = left(state, "back", "promoted", current=3)
        assert (holder(state), queue(state), state.live) == ("", ["two"], 3), "still frozen"

    def test_who_acknowledges_and_why_is_kept_and_the_next_one_is_let_in(self) -> None:
        state = joined(rolled_back(fresh(), "one", 1), "two", 2)
        state, ruling = lane.acknowledge(state, {"by": "ann\x1b", "reason": "the index is fixed"}, at=5)
        assert ruling.outcome == "accepted"
        assert state.frozen is None
        assert state.acknowledged is not None
        assert (state.acknowledged.by, state.acknowledged.reason) == ("ann", "the index is fixed")
        assert (state.acknowledged.release, state.acknowledged.at) == (1, 5)
        assert holder(state) == "two"
        assert "ann acknowledged release 1: the index is fixed" in state.facts[-1].sentence

    def test_nothing_to_acknowledge_is_refused_with_the_reason(self) -> None:
        state, ruling = lane.acknowledge(fresh(), None, at=NOW)
        assert (ruling.outcome, ruling.reason) == ("refused", "the lane is not frozen")
        assert "in vain" in state.facts[-1].sentence

    def test_another_freeze_than_the_one_that_is_meant_stays(self) -> None:
        state, ruling = lane.acknowledge(rolled_back(fresh(), "one", 4), {"release": 3}, at=NOW)
        assert (ruling.outcome, ruling.reason) == ("refused", "it is frozen by release 4")
        assert state.frozen is not None
        assert lane.acknowledge(state, {"release": 4}, at=NOW)[1].outcome == "accepted"

    def test_a_malformed_acknowledgement_is_a_refusal_and_a_fact(self) -> None:
        state, ruling = lane.acknowledge(rolled_back(fresh(), "one", 4), {"by": 7}, at=NOW)
        assert ruling.outcome == "refused"
        assert state.frozen is not None
        assert "has to be a text" in state.facts[-1].sentence

    def test_the_last_thing_that_went_wrong_is_the_freeze(self) -> None:
        state = joined(rolled_back(fresh(), "one", 5, current=4), "back", 6, kind="rollback")
        state = left(state, "back", "unclear", sentence="the proxy is gone")
        assert state.frozen is not None
        assert state.frozen.sentence == "the proxy is gone"
        assert state.live == 4, "as it was known"


class TestTheLease:
    def held(self) -> LaneState:
        return silent(joined(joined(fresh(), "one", 1, commit="c1"), "two", 2))

    @pytest.mark.parametrize("standing", [ENDED, STOPPED])
    def test_a_holder_that_never_left_loses_the_lane_which_is_frozen(self, standing: str) -> None:
        state = lane.looked(self.held(), "one", standing, at=9)
        assert (holder(state), queue(state)) == ("", ["two"])
        assert state.frozen is not None
        assert (state.frozen.release, state.frozen.outcome) == (1, "unclear")
        assert state.frozen.sentence == "one does not run any more and never left the lane"
        assert "frozen" in words(state)["two"].reason
        assert state.history[-1].outcome == "unclear"

    @pytest.mark.parametrize("standing", [RUNNING, ""])
    def test_one_that_runs_or_that_nobody_could_look_at_keeps_it(self, standing: str) -> None:
        state = self.held()
        for at in range(10, 20):
            state = lane.looked(state, "one", standing, at=at)
        assert holder(state) == "one"
        assert state.holder is not None
        assert state.holder.looked == 19

    def test_one_that_the_server_does_not_know_is_lost_at_the_third_look_in_a_row(self) -> None:
        state = self.held()
        for standing in (UNKNOWN, UNKNOWN, RUNNING, *[UNKNOWN] * (MOST_LOOKS - 1)):
            state = lane.looked(state, "one", standing, at=NOW)
            assert holder(state) == "one"
        state = lane.looked(state, "one", UNKNOWN, at=NOW)
        assert holder(state) == ""
        assert state.frozen is not None
        assert "unknown to the server" in state.frozen.sentence

    def test_a_look_at_one_that_has_left_meanwhile_says_nothing_of_the_next(self) -> None:
        state = left(self.held(), "one", "promoted")
        assert lane.looked(state, "one", ENDED, at=NOW) == state


class TestTelling:
    def test_one_that_is_gone_before_it_heard_loses_its_place_and_nothing_is_frozen(self) -> None:
        state = joined(joined(fresh(), "one", 1), "two", 2)
        state, word = lane.next_word(state)
        assert word.saga == "one"
        state = lane.told(state, word, gone=True, at=NOW)
        assert holder(state) == "two"
        assert state.frozen is None

    def test_one_that_had_heard_and_is_gone_left_production_unclear(self) -> None:
        state = delivered(joined(fresh(), "one", 1))
        state = delivered(joined(state, "one", 1), gone=True)
        assert holder(state) == ""
        assert state.frozen is not None

    def test_one_that_waits_and_is_gone_loses_its_place(self) -> None:
        state = delivered(joined(fresh(), "one", 1))
        state = delivered(joined(state, "two", 2), gone=True)
        assert (holder(state), queue(state)) == ("one", [])

    def test_the_newest_word_replaces_one_that_was_not_told(self) -> None:
        state = left(joined(joined(fresh(), "one", 1), "two", 2), "one", "promoted")
        assert [(word.saga, word.granted) for word in state.outbox] == [("two", True)]

    def test_the_wire_says_exactly_what_sagas_read(self) -> None:
        word = words(joined(fresh(), "one", 1))["one"]
        told = {"granted": True, "refused": False, "reason": "the lane is yours", "position": 0, "current": 0}
        assert word.wire() == told


class TestWhatCannotBeRead:
    @pytest.mark.parametrize(
        "raw",
        [
            None,
            "one",
            {"release": 1},
            {"saga": "", "release": 1},
            {"saga": "x" * 300, "release": 1},
            {"saga": 7, "release": 1},
        ],
    )
    def test_a_joining_without_a_name_is_a_fact(self, raw: Any) -> None:
        state = lane.join(fresh(), raw, at=NOW)
        assert (state.holder, state.queue, state.outbox) == (None, (), ())
        assert state.facts[-1].sentence.startswith("join: ")

    @pytest.mark.parametrize(
        "changes", [{"release": 0}, {"release": "1"}, {"kind": "up"}, {"colour": 1}, {"commit": "c" * 300}]
    )
    def test_one_with_a_name_is_refused_with_the_reason(self, changes: dict[str, Any]) -> None:
        state = lane.join(fresh(), {"saga": "one", "release": 1, **changes}, at=NOW)
        assert words(state)["one"].refused
        assert words(state)["one"].reason.startswith("join: ")
        assert state.holder is None

    def test_a_malformed_word_of_the_holder_costs_it_nothing(self) -> None:
        state = silent(joined(fresh(), "one", 1))
        for changed in (joined(state, "one", 0), left(state, "one", "fine"), left(state, "one", "promoted", release=3)):
            assert replace(changed, facts=()) == state
            assert changed.facts

    @given(raw=ANYTHING)
    def test_no_input_whatever_raises(self, raw: Any) -> None:
        state = joined(fresh(), "one", 1)
        view(lane.join(state, raw, at=NOW))
        view(lane.leave(state, raw, at=NOW))
        view(lane.acknowledge(state, raw, at=NOW)[0])
        with suppress(InvalidInput):
            decode_lane_request(raw)

    @pytest.mark.parametrize("changes", [{"lease": 0}, {"heartbeat": -1}, {"history_events": FEWEST_EVENTS - 1}])
    def test_numbers_with_which_a_lane_cannot_work_are_refused(self, changes: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput):
            decode_lane_request({"project": "shop", "environment": "production", **changes})


class TestShowing:
    def test_people_see_holder_queue_freeze_and_production(self) -> None:
        state = joined(joined(promoted(fresh(), "one", 1), "two", 2), "three", 3)
        assert "release **1**" in details(state)
        assert "held by `two` (deliver of release 2)" in details(state)
        assert "1. `three` (deliver, release 3)" in details(state)
        state = left(state, "two", "rolled back", current=1)
        assert "**frozen**" in details(state)
        assert "free" in details(state)

    def test_a_long_queue_is_cut(self) -> None:
        state = joined(fresh(), "one", 1)
        for number in range(2, 20):
            state = joined(state, f"saga-{number}", number)
        assert "and 8 more" in details(state)

    def test_the_view_is_plain_and_names_everything(self) -> None:
        shown = view(joined(joined(rolled_back(fresh(), "one", 1), "back", 2, kind="rollback"), "two", 3))
        assert shown["holder"]["place"]["saga"] == "back"
        assert [place["saga"] for place in shown["queue"]] == ["two"]
        assert shown["frozen"]["release"] == 1
        assert shown["current"] is None
        assert [shipped["outcome"] for shipped in shown["history"]] == ["rolled back"]
