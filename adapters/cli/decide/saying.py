"""Saying something to a build: as an update, which is answered, or as a signal where no worker answers."""

from __future__ import annotations

import asyncio
import contextlib
import json as jsonlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from adapters.cli.exits import DONE, REFUSED
from adapters.cli.lines import plain
from adapters.cli.session import put
from adapters.cli.status import details_of
from adapters.settings import Settings
from domain.errors import InvalidInput, ServerUnavailable, TooLarge

if TYPE_CHECKING:
    from temporalio.client import Client, WorkflowUpdateFailedError

PATIENCE_SECONDS = 10.0
"""How long a worker may take to answer: longer than one needs to take over from a killed one."""
MAX_BYTES = 256_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """``what`` is the name of the build's handler, ``words`` what it is given."""

    build: str
    what: str
    words: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """``outcome`` is accepted, early, refused or sent (nobody has ruled on it yet); ``ask`` is the id it was about."""

    outcome: str
    reason: str
    ask: str = ""


async def tell(settings: Settings, said: Said, *, json: bool) -> int:
    """Say it, print what came of it, return the exit code. Raises InvalidInput, UnknownName, ServerUnavailable."""
    from adapters.temporal.connect import connect

    client = await connect(settings, os.environ)
    answered = await deliver(settings, client, said)
    if json:
        put(jsonlib.dumps({"build": said.build, **asdict(answered)}))
    else:
        put(spoken(answered))
    return REFUSED if answered.outcome == "refused" else DONE


def spoken(answered: Answered) -> str:
    """A line for a person."""
    return f"{answered.outcome}: {plain(answered.reason)}"


async def deliver(settings: Settings, client: Client, said: Said, *, patience: float = PATIENCE_SECONDS) -> Answered:
    """As an update; after ``patience`` seconds without an answer as a signal.

    Both may arrive then. That does no harm: an answer names its ask or its digest, so the second one is a duplicate,
    and the rest may be said twice. Raises InvalidInput, TooLarge, UnknownName, ServerUnavailable.
    """
    from temporalio.client import WorkflowUpdateFailedError
    from temporalio.service import RPCError, RPCStatusCode

    if len(jsonlib.dumps(said.words).encode()) > MAX_BYTES:
        raise TooLarge(f"what is said to a build may have at most {MAX_BYTES} bytes")
    handle = client.get_workflow_handle(said.build)
    try:
        answer = await _within(patience, asyncio.ensure_future(handle.execute_update(said.what, dict(said.words))))
        if answer is not None:
            return _answered(answer)
        await handle.signal(said.what, dict(said.words))
    except WorkflowUpdateFailedError as error:
        raise InvalidInput(_why(error)) from error
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise ServerUnavailable(f"Temporal does not answer: {error.message}") from error
        return await _not_running(settings, client, said.build)
    reason = f"no worker answered within {patience:g} s; it is kept for the build, which hears it as soon as one runs"
    return Answered(outcome="sent", reason=reason)


async def _within(patience: float, answer: asyncio.Future[Any]) -> Any:
    """The answer, or None when it takes longer than ``patience`` seconds."""
    try:
        done, _ = await asyncio.wait({answer}, timeout=patience)
    finally:
        if not answer.done():
            answer.cancel()
    if done:
        return answer.result()
    with contextlib.suppress(Exception, asyncio.CancelledError):
        await answer
    return None


def _answered(raw: Any) -> Answered:
    """What a handler returns; of another version, what of it is understood."""
    answer = raw if isinstance(raw, Mapping) else {"reason": str(raw)}
    fields = {name: str(answer.get(name) or "") for name in ("outcome", "reason", "ask")}
    return Answered(**{**fields, "outcome": fields["outcome"] or "accepted"})


def _why(error: WorkflowUpdateFailedError) -> str:
    cause = error.cause
    return str(getattr(cause, "message", "") or cause or error)


async def _not_running(settings: Settings, client: Client, build: str) -> Answered:
    """Why nobody can be told anything. Raises UnknownName where there is no such build."""
    from adapters.store import open_store
    from adapters.temporal.sagas import TemporalSagas

    async with await open_store(settings.store_url) as store:
        details = await details_of(store, build)
    told = details.delivery
    if not details.alone and told.saga == build:  # the build goes on until its delivery has told it how it ended
        status, over = told.status, told.status != "running"
    else:
        status, over = details.status, bool(details.ended)
    if over:
        return Answered(outcome="refused", reason=f"{build} has ended ({status}): this comes too late")
    standing = (await TemporalSagas(client).standings([build]))[build]
    return Answered(outcome="refused", reason=f"{build} {standing.how}; what it left is undone by the sweeper")
