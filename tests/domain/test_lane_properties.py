"""What holds for a lane whatever is said to it, in any order, and through any number of runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from domain.delivery import lane
from domain.delivery.lane_state import DELIVER, OUTCOMES, ROLLBACK, LaneState
from domain.ports.sagas import ENDED, RUNNING, STOPPED, UNKNOWN
from tests.domain.lanes import fresh, holder, queue

SAGAS = [f"saga-{n}" for n in range(6)]
WIRE = TypeAdapter(LaneState)
Step = tuple[Any, ...]

STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(
            st.just("join"), st.sampled_from(SAGAS), st.integers(1, 9), st.sampled_from([DELIVER, DELIVER, ROLLBACK])
        ),
        st.tuples(st.just("leave"), st.sampled_from(SAGAS), st.sampled_from(OUTCOMES), st.integers(-1, 9)),
        st.tuples(st.just("holder leaves"), st.sampled_from(OUTCOMES), st.integers(-1, 9)),
        st.tuples(st.just("acknowledge")),
        st.tuples(st.just("tell"), st.booleans()),
        st.tuples(st.just("look"), st.sampled_from([RUNNING, ENDED, STOPPED, UNKNOWN])),
    ),
    max_size=60,
)


def step(state: LaneState, taken: Step, *, at: int) -> LaneState:
    match taken:
        case ("join", saga, release, kind):
            return lane.join(state, {"saga": saga, "release": release, "kind": kind}, at=at)
        case ("leave", saga, outcome, current):
            return lane.leave(state, {"saga": saga, "outcome": outcome, "current": current}, at=at)
        case ("holder leaves", outcome, current):
            return lane.leave(state, {"saga": holder(state), "outcome": outcome, "current": current}, at=at)
        case ("acknowledge",):
            return lane.acknowledge(state, {}, at=at)[0]
        case ("tell", gone) if state.outbox:
            state, word = lane.next_word(state)
            return lane.told(state, word, gone=gone, at=at)
        case ("look", standing):
            return lane.looked(state, holder(state), standing, at=at)
    return state


@dataclass
class Witness:
    """Watches a lane from outside and keeps books of its own: who came, in which order, and where each one is."""

    inside: str = ""
    waiting: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    grants: Counter[str] = field(default_factory=Counter)
    exits: Counter[str] = field(default_factory=Counter)

    def see(self, before: LaneState, taken: Step, after: LaneState) -> None:
        now, queued = holder(after), queue(after)
        if taken[0] == "join" and taken[1] not in (self.inside, *self.waiting):
            self.came(taken, after)
        gone = {saga for saga in (self.inside, *self.waiting) if saga and saga not in (now, *queued)}
        if self.inside in gone or (self.inside and self.inside != now):
            assert self.inside not in queued, "the holder never goes back into the queue"
            self.exits[self.inside] += 1
            self.inside = ""
        if now != self.inside:
            self.let_in(now, before, gone)
        self.waiting = [saga for saga in self.waiting if saga != now and saga not in gone]
        assert sorted(self.waiting) == sorted(queued), "nobody is forgotten, and nobody waits twice"
        deliveries = [saga for saga in queued if self.kinds[saga] == DELIVER]
        assert deliveries == [saga for saga in self.waiting if self.kinds[saga] == DELIVER], "first come, first served"
        assert queued[len(queued) - len(deliveries) :] == deliveries, "rollbacks are before all deliveries"

    def came(self, taken: Step, after: LaneState) -> None:
        _, saga, _, kind = taken
        refused = any(word.saga == saga and word.refused for word in after.outbox)
        assert refused or saga == holder(after) or saga in queue(after), "queued, holding, or refused"
        if not refused:
            self.kinds[saga] = kind
            self.waiting.append(saga)

    def let_in(self, saga: str, before: LaneState, gone: set[str]) -> None:
        assert self.grants[saga] == self.exits[saga], "nobody is granted twice without having left"
        assert saga in self.waiting
        if self.kinds[saga] == DELIVER:
            ahead = [s for s in self.waiting[: self.waiting.index(saga)] if self.kinds[s] == DELIVER and s not in gone]
            assert ahead == [], "first come, first served"
        self.grants[saga] += 1
        self.inside = saga


@settings(max_examples=400, deadline=None)
@given(steps=STEPS)
def test_whatever_happens_one_holds_all_others_wait_in_order_and_nobody_is_forgotten(steps: list[Step]) -> None:
    state, witness = fresh(), Witness()
    for at, taken in enumerate(steps, 1):
        before, state = state, step(state, taken, at=at)
        witness.see(before, taken, state)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS)
def test_a_frozen_lane_lets_in_rollbacks_only_and_no_delivery_is_older_than_production(steps: list[Step]) -> None:
    state = fresh()
    for at, taken in enumerate(steps, 1):
        before, state = state, step(state, taken, at=at)
        if state.holder is not None and state.holder.since == at:  # let in by this very step
            place = state.holder.place
            assert state.frozen is None or place.kind == ROLLBACK
            assert place.kind == ROLLBACK or place.release >= state.live
        if before.frozen is not None and state.frozen is None:
            assert taken == ("acknowledge",), "a freeze ends by a person, and by nothing else"


@settings(max_examples=200, deadline=None)
@given(steps=STEPS)
def test_an_idle_lane_lets_nobody_wait_without_a_reason(steps: list[Step]) -> None:
    state = fresh()
    for at, taken in enumerate(steps, 1):
        state = step(state, taken, at=at)
        if state.holder is None and state.queue:
            assert state.frozen is not None
            assert all(place.kind == DELIVER for place in state.queue)


@settings(max_examples=200, deadline=None)
@given(steps=STEPS)
def test_everybody_hears_what_counts(steps: list[Step]) -> None:
    """Told, or about to be: the holder that it holds, a refused one that it is refused."""
    state = fresh()
    for at, taken in enumerate(steps, 1):
        state = step(state, taken, at=at)
        if state.holder is not None and not state.holder.heard:
            assert [w.granted for w in state.outbox if w.saga == holder(state)] == [True]
        assert max(Counter(word.saga for word in state.outbox).values(), default=0) <= 1


@settings(max_examples=200, deadline=None)
@given(steps=STEPS, cuts=st.sets(st.integers(0, 60)))
def test_carried_into_a_new_run_at_any_point_it_goes_on_as_if_nothing_had_been(
    steps: list[Step], cuts: set[int]
) -> None:
    whole = carried = fresh()
    for at, taken in enumerate(steps, 1):
        if at in cuts:
            carried = WIRE.validate_json(WIRE.dump_json(carried))
        whole, carried = step(whole, taken, at=at), step(carried, taken, at=at)
        assert carried == whole


@settings(max_examples=100, deadline=None)
@given(steps=STEPS, again=st.integers(2, 3))
def test_a_signal_that_comes_more_than_once_counts_once(steps: list[Step], again: int) -> None:
    once = many = fresh()
    for at, taken in enumerate(steps, 1):
        if taken[0] == "join" or taken[0] == "leave":
            once = step(once, taken, at=at)
            for _ in range(again):
                many = step(many, taken, at=at)
        assert (holder(once), queue(once), once.frozen, once.current) == (
            holder(many),
            queue(many),
            many.frozen,
            many.current,
        )
