"""``mendwork lane``: who delivers now, who waits, and whether it is frozen."""

from __future__ import annotations

import json as jsonlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from adapters.cli.build import project_of
from adapters.cli.decide.saying import Said, tell
from adapters.cli.lines import plain
from adapters.cli.session import login, put, say
from adapters.settings import Settings
from domain.delivery.lane import lane_id
from domain.errors import InvalidInput, ServerUnavailable
from domain.ports.target import PRODUCTION

if TYPE_CHECKING:
    from temporalio.client import Client

PATIENCE_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneWanted:
    """``acknowledge`` ends a freeze, for which a person gives a ``reason``."""

    project: str
    acknowledge: bool = False
    reason: str = ""
    by: str = ""
    json: bool = False


async def lane(settings: Settings, wanted: LaneWanted) -> int:
    """Show the lane of a project's production, or end its freeze. Raises InvalidInput, ServerUnavailable."""
    from adapters.temporal.connect import connect

    name = lane_id(project_of(settings, wanted.project).name, PRODUCTION)
    if wanted.acknowledge and not wanted.reason.strip():
        raise InvalidInput("--acknowledge needs a --reason: what was found out about the release that went wrong")
    client = await connect(settings, os.environ)
    state = await _state(client, name)
    if state is None:
        say(f"{name} is not there: nothing of {wanted.project} was delivered yet")
        if wanted.json:
            put("null")
        return 0
    if wanted.acknowledge:
        words = {"by": wanted.by or login(), "reason": wanted.reason}
        return await tell(settings, Said(build=name, what="acknowledge", words=words), json=wanted.json)
    if wanted.json:
        put(jsonlib.dumps(state))
    else:
        for line in lane_lines(wanted.project, state):
            put(line)
    return 0


async def _state(client: Client, name: str) -> Mapping[str, Any] | None:
    """What the lane says of itself; None where there is none."""
    from datetime import timedelta

    from temporalio.client import WorkflowQueryFailedError, WorkflowQueryRejectedError
    from temporalio.service import RPCError, RPCStatusCode

    try:
        answered: Any = await client.get_workflow_handle(name).query(
            "state", rpc_timeout=timedelta(seconds=PATIENCE_SECONDS)
        )
    except (WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
        raise ServerUnavailable(f"{name} cannot be asked: {error}") from error
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise ServerUnavailable(f"{name} does not answer within {PATIENCE_SECONDS} s: does a worker run?") from error
    return answered if isinstance(answered, Mapping) else {}


def lane_lines(project: str, state: Mapping[str, Any]) -> Iterator[str]:
    """The lane for a person: printable, whatever it holds."""
    current = _object(state, "current")
    if current:
        yield plain(f"production of {project}: release {current.get('number')}, {str(current.get('commit', ''))[:12]}")
    else:
        yield plain(f"production of {project}: no release is known")
    frozen = _object(state, "frozen")
    if frozen:
        since = _time(frozen.get("at"))
        yield plain(f"  frozen{since}: release {frozen.get('release')} is {frozen.get('outcome')}")
        yield plain(f"    {frozen.get('sentence', '')}")
        yield f"    mendwork lane {plain(project)} --acknowledge --reason '…'"
    holder = _object(_object(state, "holder"), "place")
    yield plain(f"  delivers: {_place(holder)}" if holder else "  delivers: nobody")
    for number, place in enumerate(_objects(state, "queue"), 1):
        yield plain(f"  waits at {number}: {_place(place)}")
    for shipped in _objects(state, "history"):
        commit = str(shipped.get("commit", ""))[:12]
        yield plain(
            f"  release {shipped.get('number')}  {shipped.get('outcome')}  {commit}{_time(shipped.get('at'), '')}"
        )


def _place(place: Mapping[str, Any]) -> str:
    by = f", by {place['by']}" if place.get("by") else ""
    return f"{place.get('saga')} ({place.get('kind')} of release {place.get('release')}{by}){_time(place.get('at'))}"


def _time(millis: Any, word: str = " since") -> str:
    if not isinstance(millis, int) or not 0 < millis < 10**14:
        return ""
    return f"{word} {datetime.fromtimestamp(millis / 1000, UTC).strftime('%Y-%m-%d %H:%M UTC')}"


def _object(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = state.get(name)
    return value if isinstance(value, Mapping) else {}


def _objects(state: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = state.get(name)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
