"""Who may call now: no project and no provider keeps the others out, whatever hangs."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from domain.flow.turns import (
    KNOCKS_A_SECOND,
    LONGEST_SECONDS,
    Caller,
    Room,
    come_again,
    may_call,
    may_wait,
    portion,
)

SLOTS = st.integers(min_value=2, max_value=64)


def caller(project: str, provider: str = "one", model: str = "coder") -> Caller:
    return Caller(project=project, provider=provider, model=model)


def filled(room: Room, who: Caller, inside: Counter[Caller] | None = None) -> Counter[Caller]:
    """As many calls of ``who`` as it gets."""
    inside = Counter() if inside is None else inside
    while may_call(room, who, inside):
        inside[who] += 1
    return inside


def test_a_project_whose_calls_hang_leaves_half_to_the_others_and_the_next_one_a_quarter() -> None:
    room = Room(slots=40, lobby=20)
    inside = filled(room, caller("a"))
    assert inside == {caller("a"): 20}
    assert filled(room, caller("b"), inside)[caller("b")] == 10
    assert filled(room, caller("c"), inside)[caller("c")] == 5


@given(SLOTS, st.data())
def test_so_many_projects_as_the_slots_can_be_halved_never_fill_them(slots: int, data: st.DataObject) -> None:
    """In any order of coming and going: one more project always finds a turn."""
    room = Room(slots=slots, lobby=2)
    projects = [f"p{number}" for number in range(int(math.log2(slots)))]
    inside: Counter[Caller] = Counter()
    moves = st.lists(st.tuples(st.sampled_from(projects), st.integers(-3, 12)), max_size=30)
    for project, calls in data.draw(moves):
        who = caller(project)
        for _ in range(abs(calls)):
            if calls < 0:
                inside[who] = max(0, inside[who] - 1)
            elif may_call(room, who, inside):
                inside[who] += 1
        assert may_call(room, caller("new"), inside)


@given(SLOTS, st.lists(st.sampled_from("abcdefgh"), max_size=200), st.floats(0.1, 1.0))
def test_there_are_never_more_calls_than_slots_and_one_alone_always_has_one(
    slots: int, coming: list[str], share: float
) -> None:
    room, inside = Room(slots=slots, lobby=2, share=share), Counter[Caller]()
    for project in coming:
        if may_call(room, caller(project), inside):
            inside[caller(project)] += 1
    assert sum(inside.values()) <= slots
    assert not coming or sum(inside.values()) > 0


def test_without_a_limit_one_project_has_every_slot() -> None:
    assert filled(Room(slots=10, lobby=2, share=1.0), caller("a")) == {caller("a"): 10}


def test_a_provider_that_hangs_for_everybody_leaves_slots_for_the_other_one() -> None:
    room = Room(slots=40, lobby=20, provider_share=0.75)
    inside: Counter[Caller] = Counter()
    for project in "abcdefghijkl":
        filled(room, caller(project, "hangs"), inside)
    assert sum(inside.values()) == 30
    assert may_call(room, caller("m", "works"), inside)
    assert may_call(room, caller("a", "works"), inside)


def test_one_project_that_hangs_at_a_provider_leaves_it_to_the_others_there() -> None:
    room = Room(slots=40, lobby=20, provider_share=0.75)
    inside = filled(room, caller("a"))
    assert inside[caller("a")] == 15
    assert may_call(room, caller("b"), inside)


def test_a_model_has_a_fixed_limit_where_the_configuration_gives_it_one() -> None:
    room = Room(slots=40, lobby=20, most={"coder": 3})
    assert filled(room, caller("a")) == {caller("a"): 3}
    assert not may_call(room, caller("b"), filled(room, caller("a")))
    assert may_call(room, caller("b", model="planner"), filled(room, caller("a")))


@given(SLOTS, st.integers(0, 500))
def test_the_lobby_too_has_room_for_another_project(lobby: int, crowd: int) -> None:
    room, waiting = Room(slots=2, lobby=lobby), Counter[Caller]()
    for _ in range(crowd):
        waiting[caller("a")] += may_wait(room, caller("a"), waiting)
    assert waiting[caller("a")] <= lobby // 2
    assert may_wait(room, caller("b"), waiting)


@given(st.integers(1, 100), st.integers(1, 12), st.floats(0, 1, exclude_max=True))
def test_however_many_are_away_they_ask_about_as_often_together(away: int, projects: int, jitter: float) -> None:
    seconds = come_again(away, projects=projects, jitter=jitter)
    assert 0.5 <= seconds <= 1.5 * LONGEST_SECONDS
    assert away * projects / seconds <= 2 * KNOCKS_A_SECOND + 1e-6 or away * projects <= KNOCKS_A_SECOND


@given(st.integers(1, 100), st.integers(0, 100), st.floats(0.01, 1))
def test_a_portion_is_at_least_one_and_never_more_than_what_the_others_leave(
    space: int, others: int, share: float
) -> None:
    assert 1 <= portion(space, others=others, share=share) <= max(1, space - others)
