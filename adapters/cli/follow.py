"""Following a build from the store: what ``mendwork build`` and ``mendwork watch`` do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.cli.exits import INTERRUPTED, OWN_FAILURE, WAITING, ended_code
from adapters.cli.log.screens import JsonScreen, LineScreen, Screen, waits_for
from adapters.cli.log.source import Source, is_over
from adapters.cli.release.series import Chart
from adapters.cli.session import put, say
from adapters.cli.status import case_of
from adapters.settings import Settings
from domain.build.details import DetailsFold, fold_details
from domain.trace.asks import commands
from domain.trace.parts import BuildDetails
from domain.trace.waiting import only_a_person_helps

if TYPE_CHECKING:
    from temporalio.client import Client

    from domain.ports.store import Event, Store

POLL_SECONDS = 0.2
"""How long a round of silence is at first. What is appended ends it at once: see ``Arrivals``."""
IDLE_POLL_SECONDS = 1.0
"""And once a build has been silent for some rounds: a table's clock goes on by seconds, and an approval takes days."""
ROUNDS_UNTIL_IDLE = 5
ROUNDS_BETWEEN_LOOKS = 5
"""Events say when a build ends; while it is silent the server is asked, for a workflow that ended without a word."""
ROUNDS_UNTIL_WAITING = 3
"""What is noted a moment after an ask is opened may be that something else goes on."""

OnAsk = Callable[["Event"], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """How to follow. ``wait``: also while only a person can go on. ``on_ask`` is told of each ask that waits, once."""

    screen: Screen
    wait: bool
    on_ask: OnAsk | None = None


async def watch(settings: Settings, build: str, *, json: bool, wait: bool = True) -> int:
    """Follow a build that runs, or tell how it ended. Without ``wait``, come back with code 7 when it waits for a
    person and for nothing else."""
    from adapters.store import open_store
    from adapters.temporal.connect import connect

    async with await open_store(settings.store_url) as store:
        build = await case_of(store, build)
        details = fold_details(build, [event for _, event in await store.events.read(build)])
        client = None if details.status != "running" else await connect(settings, os.environ)
        return await follow_as(store, build, client=client, how=Following(screen=_screen(settings, json), wait=wait))


async def follow(store: Store, build: str, *, client: Client | None, json: bool, on_ask: OnAsk | None = None) -> int:
    """Show what happens until the build ends; return its exit code. ``client`` None means that it has ended.

    Where nobody can be asked, it comes back with code 7 and the commands that answer what waits. ``on_ask`` is awaited
    with the ``ask.opened`` of each ask that is open, once; nothing is printed meanwhile.
    """
    screen = JsonScreen() if json else LineScreen(chart=Chart(sys.stderr) if sys.stderr.isatty() else None)
    how = Following(screen=screen, wait=on_ask is not None or sys.stdin.isatty(), on_ask=on_ask)
    return await follow_as(store, build, client=client, how=how)


async def follow_as(store: Store, build: str, *, client: Client | None, how: Following) -> int:
    """As ``follow``, on a screen of one's own."""
    try:
        async with contextlib.aclosing(_batches(store, build, client, how.screen)) as batches:
            code = await _until_the_end(build, batches, how)
    except asyncio.CancelledError:
        how.screen.close()
        say(f"detached; {build} goes on. Come back with `mendwork watch {build}`")
        return INTERRUPTED
    finally:
        how.screen.close()
    return OWN_FAILURE if code is None else code


async def _until_the_end(build: str, batches: AsyncGenerator[Sequence[Event]], how: Following) -> int | None:
    fold, told, quiet = DetailsFold(build), set[str](), 0
    async for batch in batches:
        quiet = 0 if batch else quiet + 1
        details = fold.add(batch)
        how.screen.show(batch, details)
        if details.status != "running":
            return _ended(details, how)
        if how.on_ask is not None:
            await _tell(details, batch, told, how)
        if not how.wait and quiet >= ROUNDS_UNTIL_WAITING and only_a_person_helps(details):
            return _waiting(details, how)
    _say_silent(fold.add(()))
    return None


def _ended(details: BuildDetails, how: Following) -> int:
    how.screen.close()
    if not isinstance(how.screen, JsonScreen):
        put(details.build)
    return ended_code(details)


def _say_silent(details: BuildDetails) -> None:
    """The workflow is over, and its log does not say how."""
    if details.started:
        say(f"mendwork: the workflow of {details.build} is over without a word: terminated, or its history is gone.")
        say(f"What it left is cleared up by the sweeper; see `mendwork status {details.build}` in a minute")
    else:
        say(f"mendwork: {details.build} is not in the store, and its workflow is over or unknown")


def _waiting(details: BuildDetails, how: Following) -> int:
    how.screen.close()
    say(f"{details.build} {waits_for(details)}. Answer with one of")
    for ask in details.open_asks():
        for command in commands(details.build, ask):
            say(f"  {command}")
    if not isinstance(how.screen, JsonScreen):
        put(details.build)
    return WAITING


async def _tell(details: BuildDetails, batch: Sequence[Event], told: set[str], how: Following) -> None:
    waiting = {ask.id for ask in details.open_asks()} - told
    for event in batch:
        if event.kind == "ask.opened" and event.data["id"] in waiting and how.on_ask is not None:
            told.add(event.data["id"])
            waiting.discard(event.data["id"])
            how.screen.close()
            await how.on_ask(event)


def _screen(settings: Settings, json: bool) -> Screen:
    if json:
        return JsonScreen()
    if not sys.stderr.isatty():
        return LineScreen()
    from adapters.cli.log.watch import LiveScreen

    return LiveScreen(settings)


async def _batches(store: Store, build: str, client: Client | None, screen: Screen) -> AsyncGenerator[Sequence[Event]]:
    """The build's new events as they come, until its workflow is over and everything was read; empty after a round of
    silence. A log that was rebuilt meanwhile tells some of them again."""
    more, quiet, over = True, 0, client is None
    async with contextlib.aclosing(Source(store, build, screen)) as source:
        while True:
            found = await source.read() if more or over else ()
            if found is None:
                await asyncio.sleep(IDLE_POLL_SECONDS)
                continue
            quiet = 0 if found else quiet + 1
            yield found
            if over:
                return
            if client is not None and quiet and quiet % ROUNDS_BETWEEN_LOOKS == 0:
                over = await is_over(client, build)
            if not over:
                more = await source.wait(POLL_SECONDS if quiet < ROUNDS_UNTIL_IDLE else IDLE_POLL_SECONDS)
