"""Everything that can be seen of one build from outside, read in one go."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from activities.sweeping import known_tasks
from adapters.settings import Settings, load_settings
from adapters.store import open_store, tables
from adapters.store.sql import SqlStore
from adapters.temporal.connect import connect
from domain.build.details import fold_details
from domain.build.names import task_saga_id
from domain.delivery.requests import delivery_saga_id
from domain.errors import EventUnreadable
from domain.money.accounts import build_account
from domain.money.budget import Spent
from domain.ports.sagas import sweep_id
from domain.ports.store import BuildRow, CallTry, Event, Store
from domain.trace.parts import BuildDetails
from domain.trace.rebuilding import DERIVED
from tests.e2e.workshop import Workshop
from workflows.asking import PASSING

PATIENCE_SECONDS = 20
DELIVERED = ("rolled back", "undelivered", "unclear")
"""Ends of a build that its delivery gave it: what it landed stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that was read of one build. ``undo`` are its records as key, action and outcome; ``places`` those that
    hold one."""

    at: Workshop
    build: str
    settings: Settings
    events: Sequence[Event]
    details: BuildDetails
    histories: Mapping[str, WorkflowHistory]
    tries: Sequence[CallTry]
    spent: Spent
    running: Sequence[str]
    row: BuildRow | None
    undo: Sequence[tuple[str, str, str]]
    places: Sequence[str]

    @property
    def over(self) -> bool:
        """Whether the log says that the build has ended."""
        return bool(self.details.ended)

    @property
    def whole(self) -> bool:
        """Whether no cancellation came between an effect and its row."""
        if self.details.alone:
            return self.details.status == "promoted"
        return self.details.status in ("succeeded", "partial", *DELIVERED)


async def look(at: Workshop, build: str) -> Seen:
    """Temporal has to answer; a workflow that is about to close is waited for, and so is the end of a log whose
    workflow has closed."""
    settings = load_settings(start=at.root, environment=at.environment)
    client, until = await connect(settings, at.environment, patience=30), time.monotonic() + PATIENCE_SECONDS
    while True:
        seen = await _look(at, build, settings=settings, client=client)
        if seen.over or build in seen.running or time.monotonic() > until:
            return seen
        await asyncio.sleep(0.2)


async def _look(at: Workshop, build: str, *, settings: Settings, client: Client) -> Seen:
    async with await open_store(settings.store_url) as store:
        undo, places = await _tables(store, build)
        row = await store.builds.get(build)
        rows = [event for _, event in await store.events.read(build)]
        events = [event for event in rows if not event.first_run.startswith(DERIVED)]  # follow from others
        sagas = [build, *(task_saga_id(build, task) for task in known_tasks(events)), sweep_id(build)]
        details, delivery = fold_details(build, events), delivery_saga_id(build)
        sagas += [delivery, f"{delivery}-watch", f"{build}-watch", sweep_id(delivery)]
        return Seen(
            at=at,
            build=build,
            settings=settings,
            events=events,
            details=details,
            histories=await _histories(client, sagas, {event.run: event.task for event in events}),
            tries=await store.calls.tries(build),
            spent=await store.ledger.spent(build_account(build)),
            running=await _running(client, sagas, patience=PATIENCE_SECONDS if details.ended else 0),
            row=row,
            undo=undo,
            places=places,
        )


async def builds_of(at: Workshop) -> list[str]:
    """Every build of a workshop but those whose log is damaged."""
    settings, found = load_settings(start=at.root, environment=at.environment), []
    async with await open_store(settings.store_url) as store:
        for row in await store.builds.list(limit=1000):
            with suppress(EventUnreadable):
                await store.events.read(row.build)
                found.append(row.build)
    return found


async def _running(client: Client, sagas: Sequence[str], *, patience: float) -> list[str]:
    """Those that run, and still do after ``patience`` seconds: a sweeper ends a moment after its build's last row."""
    until, left = time.monotonic() + patience, list(sagas)
    while True:
        answers = await asyncio.gather(*(_runs(client, saga) for saga in left))
        left = [saga for saga, runs in zip(left, answers, strict=True) if runs]
        if not left or time.monotonic() >= until:
            return left
        await asyncio.sleep(0.1)


async def _runs(client: Client, saga: str) -> bool:
    try:
        return (await client.get_workflow_handle(saga).describe()).close_time is None
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False


async def _histories(client: Client, sagas: Sequence[str], runs: Mapping[str, str]) -> dict[str, WorkflowHistory]:
    """``runs`` by the task that their rows name, whose saga is asked first."""
    found = await asyncio.gather(*(_history(client, sagas, run, task) for run, task in sorted(runs.items())))
    return {run: history for run, history in zip(sorted(runs), found, strict=True) if history is not None}


async def _history(client: Client, sagas: Sequence[str], run: str, task: str) -> WorkflowHistory | None:
    for saga in sorted(sagas, key=lambda name: bool(task) != name.endswith(f"-task-{task}")):
        try:
            history = await client.get_workflow_handle(saga, run_id=run).fetch_history()
        except RPCError as error:
            if error.status not in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
                raise
        else:
            return await _readable(client, history)
    return None


async def _readable(client: Client, history: WorkflowHistory) -> WorkflowHistory:
    """With the rows that were handed over in the clear, also where payloads are encrypted."""
    codec = client.data_converter.payload_codec
    for event in history.events:
        scheduled = event.activity_task_scheduled_event_attributes
        if codec is not None and scheduled.activity_type.name == "record_events":
            opened = await codec.decode(scheduled.input.payloads)
            del scheduled.input.payloads[:]
            scheduled.input.payloads.extend(opened)
    return history


def recorded_in(history: WorkflowHistory) -> list[tuple[str, int]]:
    """The keys of all rows that were handed to record_events; after a reset also those of the run before."""
    keys = []
    for event in history.events:
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == "record_events":
            batch: dict[str, Any] = json.loads(scheduled.input.payloads[0].data)
            keys += [(each["run"], each["sequence"]) for each in batch["events"]]
    return keys


async def _tables(store: Store, build: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """What the ports do not show: undo records that are closed, and who holds a place."""
    assert isinstance(store, SqlStore)
    records = select(tables.undo.c.key, tables.undo.c.action, tables.undo.c.outcome).where(tables.undo.c.build == build)
    holders = select(tables.places.c.holder).where(tables.places.c.build == build)

    async def read(connection: AsyncConnection) -> tuple[list[tuple[str, str, str]], list[str]]:
        undo = [(key, action, outcome) for key, action, outcome in await connection.execute(records)]
        return undo, list((await connection.execute(holders)).scalars())

    return await store._database.read(read)


def ended_in(history: WorkflowHistory) -> list[str]:
    """The activities of a run that came to a result or to a verdict; those lost with their worker are begun afresh, and
    so are calls in whose way was what passes."""
    types = {
        event.event_id: event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    }
    ended = []
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            ended.append(types[event.activity_task_completed_event_attributes.scheduled_event_id])
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
            failed = event.activity_task_failed_event_attributes
            name, kind = types[failed.scheduled_event_id], failed.failure.application_failure_info.type
            if (name, kind in PASSING) != ("call_model", True):
                ended.append(name)
    return ended
