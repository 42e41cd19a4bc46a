"""Following a build from the store, and ``mendwork watch``."""

from __future__ import annotations

import asyncio
import contextlib
import json as jsonlib
import os
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from adapters.cli.exits import INTERRUPTED, OWN_FAILURE, exit_code
from adapters.cli.lines import line_of
from adapters.cli.session import put, say
from adapters.settings import Settings
from domain.build.view import ENDED
from domain.errors import Transient

if TYPE_CHECKING:
    from temporalio.client import Client

    from domain.ports.store import Event, Store

POLL_SECONDS = 0.2
ROUNDS_OF_SILENCE = 100
"""Twenty seconds, after which a person is told that the build goes on."""
ROUNDS_BETWEEN_LOOKS = 5
"""Events say when a build ends; the server is asked now and then, for a workflow that ended without a word."""


async def watch(settings: Settings, build: str, *, json: bool) -> int:
    """Follow a build that runs, or tell how it ended."""
    from adapters.store import open_store
    from adapters.temporal.connect import connect

    async with await open_store(settings.store_url) as store:
        row = await store.builds.get(build)
        client = None if row is not None and row.ended else await connect(settings, os.environ)
        return await follow(store, build, client=client, json=json)


async def follow(store: Store, build: str, *, client: Client | None, json: bool) -> int:
    """Show what happens until the build ends; return its exit code. ``client`` None means that it has ended."""
    try:
        async with contextlib.aclosing(_events(store, build, client)) as events:
            async for event in events:
                if event is None:
                    say("  … still at it")
                    continue
                _show(event, json)
                if event.kind == ENDED:
                    return _ended(build, event.data, json)
    except asyncio.CancelledError:
        say(f"detached; {build} goes on. Come back with `mendwork watch {build}`")
        return INTERRUPTED
    say(f"mendwork: {build} is not in the store, and its workflow is over or unknown")
    return OWN_FAILURE


def _show(event: Event, json: bool) -> None:
    if json:
        put(
            jsonlib.dumps(
                {"kind": event.kind, "at": event.at, "task": event.task, "attempt": event.attempt}
                | {"data": event.data}
            )
        )
        return
    line = line_of(event)
    if line:
        say(line)


def _ended(build: str, data: Any, json: bool) -> int:
    if not json:
        put(build)
    return exit_code(data["status"], data.get("fault", ""))


async def _events(store: Store, build: str, client: Client | None) -> AsyncGenerator[Event | None, None]:
    """The build's events as they are recorded, until its workflow is over and everything was read.

    None says that nothing has happened for a while: long calls and tests are silent.
    """
    position, rounds, quiet, over = 0, 0, 0, client is None
    while True:
        quiet += 1
        for at, event in await store.events.read(build, after=position):
            position, quiet = at, 0
            yield event
        if over:
            return
        if quiet and quiet % ROUNDS_OF_SILENCE == 0:
            yield None
        rounds += 1
        if client is not None and rounds % ROUNDS_BETWEEN_LOOKS == 0:
            over = await _is_over(client, build)
        await asyncio.sleep(POLL_SECONDS)


async def _is_over(client: Client, build: str) -> bool:
    """Whether the workflow ended, however it did, or does not exist: then no more events come."""
    from temporalio.client import WorkflowExecutionStatus
    from temporalio.service import RPCError, RPCStatusCode

    try:
        description = await client.get_workflow_handle(build).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return True
        raise Transient(f"Temporal does not answer: {error.message}") from error
    return description.status is not WorkflowExecutionStatus.RUNNING
