"""The lane of one environment: at most one holder, first come, first served, frozen after what went wrong.

Every function takes the lane as it is and returns it as it is then; what sagas are to be told lies in ``outbox``.
``at`` is milliseconds since 1970. What is malformed becomes a fact with its reason, never a failure.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from domain.build.requests import decode
from domain.delivery.lane_signals import LONGEST, Acknowledge, Leave, decode_join, decode_leave
from domain.delivery.lane_state import (
    DELIVER,
    MOST_HISTORY,
    MOST_LEFT,
    MOST_LOOKS,
    MOST_WAITING,
    PROMOTED,
    ROLLBACK,
    ROLLED_BACK,
    UNCLEAR,
    UNTOUCHED,
    Acknowledged,
    Freeze,
    Holder,
    LaneState,
    Place,
    Shipped,
    Word,
)
from domain.delivery.lane_words import LONGEST_SENTENCE, granting_word, note, refuse, tell, tell_all, waiting_word
from domain.delivery.recalling import Recalled
from domain.errors import InvalidInput
from domain.human.asks import one_line
from domain.human.book import Ruling
from domain.ports.sagas import ENDED, STOPPED, UNKNOWN


def lane_id(project: str, environment: str) -> str:
    """The workflow id of an environment's lane."""
    return f"lane-{project}-{environment}"


def join(state: LaneState, raw: Any, *, at: int) -> LaneState:
    """Queue a saga, or tell it again where it stands."""
    try:
        joining = decode_join(raw)
    except InvalidInput as error:
        return _unusable(state, "join", raw, error, at=at)
    place = Place(**{**asdict(joining), "by": one_line(joining.by)[:LONGEST] or "unknown"}, at=at)
    if state.holder is not None and state.holder.place.saga == place.saga:
        return tell(state, granting_word(state, place.saga))
    if (waiting := _place(state, place.saga)) is not None:
        return _again(state, waiting, place)
    if place.run and place.key in state.left:
        return note(state, place.saga, "joined again after it had left: a late repeat", at=at)
    if reason := _refusal(state, place):
        return refuse(state, place.saga, reason, at=at)
    rollbacks = [each for each in state.queue if each.kind == ROLLBACK]
    ahead = rollbacks if place.kind == ROLLBACK else [*state.queue]
    state = replace(state, queue=(*ahead, place, *state.queue[len(ahead) :]))
    return _grant(tell(state, waiting_word(state, place.saga)), at=at)


def leave(state: LaneState, raw: Any, *, at: int) -> LaneState:
    """Take a saga's outcome, and let the next one in. From one that is not here it is a repeat, and changes nothing."""
    try:
        leaving = decode_leave(raw)
    except InvalidInput as error:
        return _unusable(state, "leave", raw, error, at=at)
    place = _place(state, leaving.saga)
    if place is None:
        return _remember(state, f"{leaving.saga}/{leaving.run}") if leaving.run else state
    state = _outcome(_without(state, place.saga), place, leaving, at=at)
    return _grant(_remember(state, place.key), at=at)


def acknowledge(state: LaneState, raw: Any, *, at: int) -> tuple[LaneState, Ruling]:
    """End a freeze; who and why is kept."""
    try:
        said = decode(Acknowledge, {} if raw is None else raw)
    except InvalidInput as error:
        return note(state, "", f"acknowledge: {error}", at=at), Ruling(outcome="refused", reason=str(error))
    by, reason = one_line(said.by)[:LONGEST] or "unknown", one_line(said.reason)[:LONGEST_SENTENCE]
    frozen = state.frozen
    if frozen is None or said.release not in (0, frozen.release):
        why = f"it is frozen by release {frozen.release}" if frozen else "the lane is not frozen"
        return note(state, "", f"{by} acknowledged in vain: {why}", at=at), Ruling(outcome="refused", reason=why)
    given = Acknowledged(release=frozen.release, by=by, reason=reason or "no reason given", at=at)
    state = replace(state, frozen=None, acknowledged=given)
    state = note(state, frozen.saga, f"{by} acknowledged release {frozen.release}: {given.reason}", at=at)
    state = _grant(tell_all(state), at=at)
    return state, Ruling(outcome="accepted", reason=f"release {frozen.release} is acknowledged; deliveries go on")


def looked(state: LaneState, saga: str, standing: str, *, at: int) -> LaneState:
    """The lease: ``saga``, which held the lane when it was looked at, stands so (``domain.ports.sagas``; "":
    nobody could look)."""
    holder = state.holder
    if holder is None or holder.place.saga != saga:
        return state
    unknown = holder.unknown + 1 if standing == UNKNOWN else 0
    if standing not in (ENDED, STOPPED) and unknown < MOST_LOOKS:
        return replace(state, holder=replace(holder, looked=at, unknown=unknown))
    how = "is unknown to the server" if standing == UNKNOWN else "does not run any more"
    return _lost(state, holder.place, f"{saga} {how} and never left the lane", at=at)


def told(state: LaneState, word: Word, *, gone: bool, at: int) -> LaneState:
    """``word`` was delivered, or its saga is ``gone``, and loses its place. A word is taken from the outbox before."""
    holder, place = state.holder, _place(state, word.saga)
    holds = holder is not None and holder.place.saga == word.saga
    if not gone:
        return replace(state, holder=replace(holder, heard=True)) if holder and holds and word.granted else state
    if place is None:
        return state
    if holder and holds and holder.heard:
        return _lost(state, place, f"{place.saga} is gone and never left the lane", at=at)
    state = note(_without(state, place.saga), place.saga, "was gone when it was told, and lost its place", at=at)
    return _grant(_remember(state, place.key), at=at)


def next_word(state: LaneState) -> tuple[LaneState, Word]:
    """The oldest word that is to be told, taken out of the outbox."""
    return replace(state, outbox=state.outbox[1:]), state.outbox[0]


def opened(state: LaneState, found: Recalled, *, at: int) -> LaneState:
    """Take over what the record of releases tells of the time before this lane; from here on sagas are let in.

    Open releases whose saga runs come first, by number: one of them may hold the environment, as far as it knows.
    """
    joined = {place.saga: place for place in state.queue}
    places = {place.saga: joined.get(place.saga, replace(place, at=at)) for place in found.open} | joined
    queue = sorted(places.values(), key=lambda place: bool(found.frozen) and place.kind != ROLLBACK)
    state = replace(state, queue=tuple(queue), current=found.current, history=found.history, frozen=found.frozen)
    return _grant(tell_all(replace(state, ready=True)), at=at)


def _again(state: LaneState, waiting: Place, place: Place) -> LaneState:
    """Who waits already was told, and hears when something changes; a run that was reset hears it anew."""
    if waiting.run == place.run:
        return state
    queue = tuple(replace(each, run=place.run) if each.saga == place.saga else each for each in state.queue)
    return tell(replace(state, queue=queue), waiting_word(state, place.saga))


def _refusal(state: LaneState, place: Place) -> str:
    if place.kind == DELIVER and place.release < state.live:
        return f"release {place.release} is older than production's, which is {state.live}: only a rollback goes back"
    if len(state.queue) >= MOST_WAITING:
        return f"{MOST_WAITING} deliveries wait already"
    return ""


def _grant(state: LaneState, *, at: int) -> LaneState:
    """Let the next one in, if the lane is free. Whether it is too old is judged again: production may have moved."""
    while state.ready and state.holder is None and state.queue:
        first = state.queue[0]
        if state.frozen is not None and first.kind != ROLLBACK:
            return state
        state = replace(state, queue=state.queue[1:])
        if first.kind == DELIVER and first.release < state.live:
            state = refuse(state, first.saga, _refusal(state, first), at=at)
        else:
            state = replace(state, holder=Holder(place=first, since=at, looked=at))
            state = tell(state, granting_word(state, first.saga))
    return state


def _outcome(state: LaneState, place: Place, leaving: Leave, *, at: int) -> LaneState:
    """What became of production, also when it comes from one that was not let in: it is a fact all the same."""
    if leaving.outcome == UNTOUCHED:
        return state
    release, sentence = leaving.release, one_line(leaving.sentence)[:LONGEST_SENTENCE]
    shipped = Shipped(
        number=release.number or place.release,
        commit=release.commit or place.commit,
        artifact=release.artifact,
        config=release.config,
        outcome=leaving.outcome,
        at=at,
    )
    state = replace(state, history=(*state.history, shipped)[-MOST_HISTORY:])
    live = leaving.current
    if leaving.outcome == PROMOTED and live < 1:
        live = shipped.number
    state = replace(state, current=_serving(state, live))
    if leaving.outcome not in (ROLLED_BACK, UNCLEAR):
        return state
    return _freeze(state, place.saga, shipped, sentence)


def _serving(state: LaneState, number: int) -> Shipped | None:
    """What is known of the release that production has now; -1: as before."""
    if number < 0 or number == state.live:
        return state.current
    known = (replace(shipped, outcome=PROMOTED) for shipped in reversed(state.history) if shipped.number == number)
    return next(known, Shipped(number=number)) if number else None


def _lost(state: LaneState, place: Place, sentence: str, *, at: int) -> LaneState:
    state = note(_without(state, place.saga), place.saga, sentence, at=at)
    shipped = Shipped(number=place.release, commit=place.commit, outcome=UNCLEAR, at=at)
    state = replace(state, history=(*state.history, shipped)[-MOST_HISTORY:])
    return _grant(_freeze(_remember(state, place.key), place.saga, shipped, sentence), at=at)


def _freeze(state: LaneState, saga: str, shipped: Shipped, sentence: str) -> LaneState:
    frozen = Freeze(release=shipped.number, saga=saga, outcome=shipped.outcome, sentence=sentence, at=shipped.at)
    return tell_all(replace(state, frozen=frozen))


def _without(state: LaneState, saga: str) -> LaneState:
    """Neither holding, nor waiting, nor to be told anything."""
    holds = state.holder is not None and state.holder.place.saga == saga
    return replace(
        state,
        holder=None if holds else state.holder,
        queue=tuple(place for place in state.queue if place.saga != saga),
        outbox=tuple(word for word in state.outbox if word.saga != saga),
    )


def _place(state: LaneState, saga: str) -> Place | None:
    if state.holder is not None and state.holder.place.saga == saga:
        return state.holder.place
    return next((place for place in state.queue if place.saga == saga), None)


def _remember(state: LaneState, key: str) -> LaneState:
    return replace(state, left=(*(each for each in state.left if each != key), key)[-MOST_LEFT:])


def _unusable(state: LaneState, what: str, raw: Any, error: InvalidInput, *, at: int) -> LaneState:
    """A signal that cannot be read. Who meant to join is told so, where a name can be made out."""
    saga = raw.get("saga") if isinstance(raw, dict) else None
    named = saga if isinstance(saga, str) and len(saga.strip()) > 0 and len(saga) <= LONGEST else ""
    reason = f"{what}: {error}"[:LONGEST_SENTENCE]
    if what == "join" and named and _place(state, named) is None:
        return refuse(state, named, reason, at=at)
    return note(state, named, reason, at=at)
