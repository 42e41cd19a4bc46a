"""What the record of releases tells a lane that starts anew, and of a project's luck."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.delivery import lane
from domain.delivery.lane_state import DELIVER, ROLLBACK, LaneState
from domain.delivery.recalling import MOST_PAST, Recalled, past, recall
from domain.ports.releases import OPEN, PROMOTED, ROLLED_BACK, UNCLEAR, UNDELIVERED, Release
from domain.risk.evidence import Past
from tests.domain.lanes import NOW, holder, joined, left, queue, words


def release(number: int, status: str, **changes: Any) -> Release:
    plain = Release(
        project="shop",
        number=number,
        saga=f"saga-{number}",
        revision=1,
        kind=DELIVER,
        status=status,
        commit=f"c{number}",
    )
    return replace(plain, **changes)


def newest_first(*releases: Release) -> list[Release]:
    return sorted(releases, key=lambda each: each.number, reverse=True)


def reopened(found: Recalled, *joins: tuple[str, int]) -> LaneState:
    """A lane that started anew: sagas may join before it knows."""
    state = LaneState(project="shop", environment="production")
    for saga, number in joins:
        state = joined(state, saga, number, run="r")
    return lane.opened(state, found, at=NOW)


class TestALaneThatStartsAnew:
    def test_without_any_release_is_empty_and_open(self) -> None:
        assert recall([], running=()) == Recalled()
        assert holder(reopened(Recalled(), ("one", 1))) == "one"

    def test_knows_productions_release_and_refuses_older_ones(self) -> None:
        records = newest_first(release(1, PROMOTED), release(2, PROMOTED), release(3, UNDELIVERED))
        state = reopened(recall(records, running=()))
        assert (state.live, [shipped.number for shipped in state.history]) == (2, [1, 2])
        assert words(joined(state, "old", 1))["old"].refused
        assert holder(joined(state, "new", 2)) == "new"

    def test_one_that_joined_before_it_was_known_is_judged_too(self) -> None:
        state = reopened(recall([release(2, PROMOTED)], running=()), ("old", 1), ("new", 3))
        assert words(state)["old"].refused
        assert holder(state) == "new"

    def test_knows_where_a_rollback_led_to(self) -> None:
        back = release(4, ROLLED_BACK, kind=ROLLBACK, previous=3, record={"proof": {"release": 1, "ok": True}})
        records = newest_first(release(1, PROMOTED), release(2, PROMOTED), release(3, PROMOTED), back)
        assert reopened(recall(records, running=())).live == 1
        later = newest_first(*records, release(5, PROMOTED))
        assert reopened(recall(later, running=())).live == 5

    def test_stays_frozen_when_the_last_one_was_rolled_back(self) -> None:
        records = newest_first(release(1, PROMOTED), release(2, ROLLED_BACK, sentence="it was slow"))
        state = reopened(recall(records, running=()), ("new", 3))
        assert state.live == 1
        assert state.frozen is not None
        assert (state.frozen.release, state.frozen.outcome, state.frozen.sentence) == (2, ROLLED_BACK, "it was slow")
        assert "is frozen since release 2" in words(state)["new"].reason

    def test_stays_frozen_when_what_the_last_one_left_is_unclear(self) -> None:
        found = recall([release(2, UNCLEAR)], running=())
        assert found.frozen is not None
        assert found.frozen.outcome == UNCLEAR

    def test_a_release_that_a_person_took_back_does_not_serve(self) -> None:
        back = release(3, ROLLED_BACK, kind=ROLLBACK, previous=2)
        found = recall(newest_first(release(1, PROMOTED), release(2, PROMOTED), back), running=())
        assert found.current is not None
        assert found.current.number == 1
        assert found.frozen is not None
        assert found.frozen.release == 2, "what was taken back, not the taking"

    def test_those_who_were_under_way_come_first_and_the_lowest_number_holds(self) -> None:
        records = newest_first(release(4, OPEN), release(5, OPEN), release(6, OPEN), release(3, PROMOTED))
        found = recall(records, running={"saga-4", "saga-6"})
        state = reopened(found, ("saga-9", 9), ("saga-6", 6))
        assert (holder(state), queue(state)) == ("saga-4", ["saga-6", "saga-9"])
        assert state.queue[0].run == "r", "as it joined"
        assert words(state)["saga-4"].granted
        assert holder(left(state, "saga-4", "promoted")) == "saga-6"

    def test_a_rollback_is_first_where_it_is_frozen(self) -> None:
        records = newest_first(release(2, ROLLED_BACK), release(3, OPEN), release(4, OPEN, kind=ROLLBACK))
        state = reopened(recall(records, running={"saga-3", "saga-4"}))
        assert (holder(state), queue(state)) == ("saga-4", ["saga-3"])


class TestThePast:
    def test_nothing_delivered_is_nothing_failed(self) -> None:
        assert past([]) == Past(releases=0, failed=0)

    def test_only_what_is_over_counts_and_all_but_promoted_failed(self) -> None:
        statuses = [PROMOTED, ROLLED_BACK, UNDELIVERED, UNCLEAR, OPEN]
        assert past([release(n, status) for n, status in enumerate(statuses, 1)]) == Past(releases=4, failed=3)

    def test_a_release_that_was_taken_back_later_failed_and_the_taking_is_no_delivery(self) -> None:
        records = [release(3, ROLLED_BACK, kind=ROLLBACK, previous=2), release(2, PROMOTED), release(1, PROMOTED)]
        assert past(records) == Past(releases=2, failed=1)

    def test_a_rollback_that_did_not_happen_counts_nothing(self) -> None:
        records = [release(3, UNDELIVERED, kind=ROLLBACK, previous=2), release(2, PROMOTED)]
        assert past(records) == Past(releases=1, failed=0)

    def test_the_newest_twenty_count(self) -> None:
        records = newest_first(*(release(n, ROLLED_BACK if n <= 10 else PROMOTED) for n in range(1, 31)))
        assert past(records) == Past(releases=MOST_PAST, failed=0)
