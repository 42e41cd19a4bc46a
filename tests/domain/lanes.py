"""Lanes for tests: short ways to say things to one, and what it said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.delivery import lane
from domain.delivery.lane_state import LaneState, Word
from domain.delivery.recalling import Recalled

NOW = 1_000


def fresh(**changes: Any) -> LaneState:
    """An open lane of project shop."""
    state = LaneState(project="shop", environment="production", **changes)
    return lane.opened(state, Recalled(), at=NOW)


def joined(state: LaneState, saga: str, release: int, **more: Any) -> LaneState:
    return lane.join(state, {"saga": saga, "release": release, "by": "ann", **more}, at=NOW)


def left(state: LaneState, saga: str, outcome: str, **more: Any) -> LaneState:
    return lane.leave(state, {"saga": saga, "outcome": outcome, **more}, at=NOW)


def promoted(state: LaneState, saga: str, release: int, **more: Any) -> LaneState:
    """``saga`` joins, is let in, and promotes its release."""
    state = joined(state, saga, release, **more)
    assert holder(state) == saga
    return left(state, saga, "promoted", current=release)


def rolled_back(state: LaneState, saga: str, release: int, *, current: int = 0) -> LaneState:
    """``saga`` joins, is let in, and is rolled back to ``current``."""
    state = joined(state, saga, release)
    assert holder(state) == saga
    return left(state, saga, "rolled back", sentence="p95 was 4 times the baseline's", current=current)


def holder(state: LaneState) -> str:
    return state.holder.place.saga if state.holder else ""


def queue(state: LaneState) -> list[str]:
    return [place.saga for place in state.queue]


def words(state: LaneState) -> dict[str, Word]:
    """What each saga is still to be told."""
    return {word.saga: word for word in state.outbox}


def delivered(state: LaneState, *, gone: bool = False) -> LaneState:
    """Every word reached its saga, or found it gone."""
    while state.outbox:
        state, word = lane.next_word(state)
        state = lane.told(state, word, gone=gone, at=NOW)
    return state


def silent(state: LaneState) -> LaneState:
    """As if everybody had been told, whatever it was."""
    return replace(state, outbox=())
