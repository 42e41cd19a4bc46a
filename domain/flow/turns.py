"""Who may call a model now, who waits a moment, who comes again later: pure functions of who is there.

A call that hangs cannot be taken back. So nobody may ever have all: a project, and a provider where there are several,
may have a part of what the others leave, and there is always something left for one more. With shares of a half, a
first project has at most a half, a second one a quarter, a third one an eighth of all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

KNOCKS_A_SECOND = 10.0
"""All who were turned away together ask again so often, however many they are: what asking costs does not grow."""
LONGEST_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What a call counts for. ``provider`` is where it goes, ``model`` our name of what it asks."""

    project: str
    provider: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What one process may do at once: ``slots`` calls, and ``lobby`` more that wait for their turn.

    A provider may have ``provider_share`` of what the other providers leave, a project ``share`` of what the other
    projects leave there; 1.0 is no limit. ``most`` are fixed limits of models, by our names.
    """

    slots: int
    lobby: int
    share: float = 0.5
    provider_share: float = 1.0
    most: Mapping[str, int] = field(default_factory=dict)


Crowd = Mapping[Caller, int]
"""How many calls of each caller there are."""


def portion(space: int, *, others: int, share: float) -> int:
    """What one may have of ``space`` of which others have their part: never less than one."""
    return max(1, math.floor((space - others) * share))


def may_call(room: Room, caller: Caller, inside: Crowd) -> bool:
    """Whether a call may be made beside those that are made now."""
    total = sum(inside.values())
    provider = _count(inside, provider=caller.provider)
    own = _count(inside, project=caller.project, provider=caller.provider)
    place = portion(room.slots, others=total - provider, share=room.provider_share)
    return (
        total < room.slots
        and _count(inside, model=caller.model) < room.most.get(caller.model, room.slots)
        and provider < place
        and own < portion(place, others=provider - own, share=room.share)
    )


def may_wait(room: Room, caller: Caller, waiting: Crowd) -> bool:
    """Whether a call may wait beside those that wait; else it gives its slot back and comes again."""
    total, own = sum(waiting.values()), _count(waiting, project=caller.project)
    return total < room.lobby and own < portion(room.lobby, others=total - own, share=room.share)


def come_again(away: int, *, projects: int = 1, jitter: float) -> float:
    """Seconds until one of a project's ``away`` who were turned away asks again: the more there are, the later each.

    Each of the ``projects`` that have some away asks as often as the others. ``jitter`` in [0, 1) spreads the time from
    half to one and a half of it.
    """
    return min(LONGEST_SECONDS, max(1.0, away * projects / KNOCKS_A_SECOND)) * (0.5 + jitter)


def _count(crowd: Crowd, *, project: str | None = None, provider: str | None = None, model: str | None = None) -> int:
    return sum(
        number
        for caller, number in crowd.items()
        if project in (None, caller.project) and provider in (None, caller.provider) and model in (None, caller.model)
    )
