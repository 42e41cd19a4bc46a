"""What is said to a lane, decoded from plain JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from domain.build.requests import decode
from domain.delivery.lane_state import DELIVER, OUTCOMES, ROLLBACK
from domain.errors import InvalidInput, UnknownName

LONGEST = 200
FEWEST_EVENTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRequest:
    """The start input of a Lane. ``lease`` and ``heartbeat`` are seconds; after ``history_events`` it goes on in a new
    run."""

    project: str
    environment: str
    lease: float = 30.0
    heartbeat: float = 5.0
    history_events: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The signal ``join``. ``run`` is the saga's run, so that a late repeat of a joining is known as one."""

    saga: str
    release: int
    kind: str = DELIVER
    commit: str = ""
    by: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftRelease:
    """What was delivered."""

    number: int = 0
    commit: str = ""
    artifact: str = ""
    config: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The signal ``leave``. ``current`` is the release that production has now, as the saga saw it from outside (0:
    none, -1: it does not know)."""

    saga: str
    outcome: str
    sentence: str = ""
    release: LeftRelease = field(default_factory=LeftRelease)
    current: int = -1
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """The signal and update ``acknowledge``. ``release``, when given, names the freeze that is meant."""

    by: str = ""
    reason: str = ""
    release: int = 0


def decode_lane_request(raw: Any) -> LaneRequest:
    """Raises InvalidInput with one sentence."""
    wanted = decode(LaneRequest, raw)
    if not (wanted.lease > 0 and wanted.heartbeat > 0):
        raise InvalidInput("the fields 'lease' and 'heartbeat' have to be above 0")
    if wanted.history_events < FEWEST_EVENTS:
        raise InvalidInput(f"the field 'history_events' has to be {FEWEST_EVENTS} or more: a run has to get somewhere")
    return wanted


def decode_join(raw: Any) -> Join:
    """Raises InvalidInput with one sentence."""
    joining = decode(Join, raw)
    _check_texts(joining.saga, joining.commit, joining.run)
    if joining.release < 1:
        raise InvalidInput("the field 'release' has to be 1 or more")
    if joining.kind not in (DELIVER, ROLLBACK):
        raise UnknownName.among("kind", joining.kind[:40], (DELIVER, ROLLBACK))
    return joining


def decode_leave(raw: Any) -> Leave:
    """Raises InvalidInput with one sentence."""
    leaving = decode(Leave, raw)
    _check_texts(leaving.saga, leaving.release.commit, leaving.release.artifact, leaving.release.config, leaving.run)
    if leaving.outcome not in OUTCOMES:
        raise UnknownName.among("outcome", leaving.outcome[:40], OUTCOMES)
    return leaving


def _check_texts(saga: str, *others: str) -> None:
    if not saga.strip():
        raise InvalidInput("the field 'saga' is empty")
    if max(map(len, (saga, *others))) > LONGEST:
        raise InvalidInput(f"names and digests may have at most {LONGEST} characters")
