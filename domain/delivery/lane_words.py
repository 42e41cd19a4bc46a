"""What sagas are told, and what people can read: one word for each saga, the newest; a few facts."""

from __future__ import annotations

from dataclasses import replace

from domain.delivery.lane_state import DELIVER, MOST_FACTS, Fact, LaneState, Word, frozen_sentence

LONGEST_SENTENCE = 500


def granting_word(state: LaneState, saga: str) -> Word:
    """That the environment is its own now."""
    return Word(saga=saga, granted=True, current=state.live, reason="the lane is yours")


def waiting_word(state: LaneState, saga: str) -> Word:
    """Where it stands in the queue, and why it waits."""
    position, place = next((n, each) for n, each in enumerate(state.queue, 1) if each.saga == saga)
    frozen = frozen_sentence(state) if place.kind == DELIVER else ""
    holder = f", behind {state.holder.place.saga}" if state.holder else ""
    reason = frozen or f"number {position} in the queue{holder}"
    return Word(saga=saga, position=position, current=state.live, reason=reason)


def refuse(state: LaneState, saga: str, reason: str, *, at: int) -> LaneState:
    """Tell it that it will not be let in."""
    state = tell(state, Word(saga=saga, refused=True, reason=reason, current=state.live))
    return note(state, saga, f"refused: {reason}", at=at)


def tell(state: LaneState, word: Word) -> LaneState:
    """The newest word to a saga replaces an older one that it was not told yet."""
    others = tuple(each for each in state.outbox if each.saga != word.saga)
    return replace(state, outbox=(*others, word))


def tell_all(state: LaneState) -> LaneState:
    """Everybody who waits: something changed for all of them."""
    for place in state.queue:
        state = tell(state, waiting_word(state, place.saga))
    return state


def note(state: LaneState, saga: str, sentence: str, *, at: int) -> LaneState:
    """Keep a fact for people."""
    fact = Fact(at=at, saga=saga, sentence=sentence[:LONGEST_SENTENCE])
    return replace(state, facts=(*state.facts, fact)[-MOST_FACTS:])
