"""``mendwork replay BUILD --phase P [--task T]``: once more, in a scratch world, from the record."""

from __future__ import annotations

import asyncio
import contextlib
import json as jsonlib
import math
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapters.cli.dev import WORKER
from adapters.cli.exits import INTERRUPTED
from adapters.cli.replay.record import DELIVER, STARTED, TASKS, Part, parent_of, part_of
from adapters.cli.replay.telling import Outcome, tell
from adapters.cli.replay.world import World, entry_of, scratch
from adapters.cli.session import say
from adapters.settings import Settings
from domain.errors import InvalidInput, UnknownName
from domain.money.accounts import build_account

if TYPE_CHECKING:
    from adapters.cli.replay.running import Stage
    from domain.ports.store import Event, Store
    from domain.replay.facts import Compared

MOST_USD = 1_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWanted:
    """What a person asked for. ``task`` alone means the tasks phase; ``round`` (from 1) which time the build came to
    the phase. ``live`` calls the models, for at most ``budget`` USD (0: the build's own limits). ``worker`` is the
    command of a worker process."""

    build: str
    phase: str = ""
    task: str = ""
    round: int = 1
    live: bool = False
    budget: float = 0.0
    keep: bool = False
    json: bool = False
    allow_missing: tuple[str, ...] = ()
    worker: Sequence[str] = field(default=WORKER)

    def checked(self) -> ReplayWanted:
        """Raises InvalidInput."""
        if not self.phase and not self.task:
            raise InvalidInput("--phase: name the phase to run again, or a task by --task")
        if self.task and self.phase not in ("", TASKS):
            raise InvalidInput(f"--task goes with --phase {TASKS}, not with {self.phase}")
        if self.phase == DELIVER:
            raise InvalidInput("a delivery is all outside: it cannot be run again without one")
        if self.budget and not self.live:
            raise InvalidInput("--budget goes with --live: without it nothing is paid")
        if not math.isfinite(self.budget) or not 0 <= self.budget <= MOST_USD:
            raise InvalidInput(f"--budget is between 0 and {MOST_USD:,.0f} USD")
        return self


async def replay(settings: Settings, wanted: ReplayWanted, *, environment: Mapping[str, str] = os.environ) -> int:
    """Run it, print "equal" or the first digest that differs, and return the exit code; 130 when it is stopped.

    Raises UnknownName, InvalidInput, BlobMissing, DigestMismatch, RepositoryRefused, ServerUnavailable, PhaseMissing.
    """
    wanted = wanted.checked()
    part = await _part(settings, wanted)
    with _stoppable() as stopped:
        try:
            with scratch(settings, keep=wanted.keep) as world:
                return await _replay(world, part, wanted, environment)
        except asyncio.CancelledError:
            if not stopped():
                raise
            say("stopped: nothing of the build was touched")
            return INTERRUPTED


async def _part(settings: Settings, wanted: ReplayWanted) -> Part:
    """The recorded part, with the task that is named in it."""
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        events = await _events(store, wanted.build)
        if not events:
            raise UnknownName.among("build", wanted.build, [row.build for row in await store.builds.list(limit=10)])
        parent = parent_of(events)
        earlier = await _events(store, parent) if parent else []
    part = part_of(wanted.build, events, phase=wanted.phase or TASKS, round=wanted.round, earlier=earlier)
    if wanted.task and wanted.task not in (known := [rows[0].task for rows in part.sagas]):
        raise UnknownName.among(f"task in the {part.phase} of {part.build}", wanted.task, dict.fromkeys(known))
    return part


async def _events(store: Store, build: str) -> list[Event]:
    return [event for _, event in await store.events.read(build)]


async def _replay(world: World, part: Part, wanted: ReplayWanted, environment: Mapping[str, str]) -> int:
    from adapters.blobs import open_blobs
    from adapters.cli.replay.answers import RecordedModels
    from adapters.cli.replay.environments import shown
    from adapters.cli.replay.running import Stage
    from adapters.cli.replay.serving import Serving, serving
    from adapters.cli.serving.stored import blobs_of
    from adapters.store import open_store

    original = blobs_of(world.original)
    state = _budgeted(jsonlib.loads(await original.get(part.entry.data["state"])), wanted) if part.entry else {}
    digest = await world.fill(part, state, live=wanted.live)
    answers = None if wanted.live else RecordedModels(part.build, part.rows)
    asked = Serving(part=part, environment=environment, answers=answers, worker=wanted.worker)
    async with AsyncExitStack() as stack:
        stack.enter_context(shown(world.original.common, world.state, project=part.project))
        store = await stack.enter_async_context(await open_store(f"sqlite+aiosqlite:///{world.state / 'mendwork.db'}"))
        await _begin(store, part, digest, await _admission(world.original, part), live=wanted.live)
        client, served = await stack.enter_async_context(serving(world, asked))
        stage = Stage(
            client=client, settings=served, store=store, part=part, state=state, allow_missing=wanted.allow_missing
        )
        compared = await _compared(stage, wanted, spec=(await original.get(part.spec)).decode())
        spent = await store.ledger.spent(build_account(part.build))
    outcome = Outcome(
        part=part,
        task=wanted.task,
        compared=compared,
        live=wanted.live,
        cost=spent.used,
        kept=str(world.root) if wanted.keep else "",
    )
    return await tell(outcome, json=wanted.json, blobs=(original, open_blobs(world.state)))


async def _compared(stage: Stage, wanted: ReplayWanted, *, spec: str) -> Compared:
    """Tasks that ran side by side run one after the other: the order of their merges was chance."""
    from adapters.cli.replay.running import run_phase, run_tasks

    part = stage.part
    if wanted.task:
        return await run_tasks(stage, [rows for rows in part.sagas if rows[0].task == wanted.task])
    if part.phase == TASKS and part.side_by_side:
        say("tasks ran side by side: each runs again by itself, and their merges do not")
        return await run_tasks(stage, part.sagas)
    return await run_phase(stage, spec=spec)


async def _admission(original: Settings, part: Part) -> list[Event]:
    """The first rows of the build that the snapshot is of: they make its line in the store."""
    from adapters.store import open_store

    if part.entry is None:
        return []
    async with await open_store(original.store_url) as store:
        rows = await _events(store, part.entry.build)
    return [row for row in rows if row.kind in (STARTED, "build.admitted")]


async def _begin(store: Store, part: Part, state: str, admission: Sequence[Event], *, live: bool) -> None:
    entry = entry_of(part, state, fresh=live)
    if entry is not None:
        await store.events.append([*admission, entry])


def _budgeted(state: Any, wanted: ReplayWanted) -> Any:
    """The carried limits; live, with the budget that was given for this replay."""
    if not wanted.budget or not isinstance(state, dict) or not isinstance(state.get("admitted"), dict):
        return state
    micros = int(wanted.budget * 1_000_000)
    budget = {**state["admitted"]["budget"], "build": micros, "task": micros}
    return {**state, "admitted": {**state["admitted"], "budget": budget}}


@contextlib.contextmanager
def _stoppable() -> Iterator[Any]:
    """Whether a signal stopped us: all of them end this as Ctrl-C does, with nothing left behind."""
    loop, task, heard = asyncio.get_running_loop(), asyncio.current_task(), list[int]()

    def stop(number: int) -> None:
        heard.append(number)
        if task is not None and len(heard) == 1:
            task.cancel()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        yield lambda: bool(heard)
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
