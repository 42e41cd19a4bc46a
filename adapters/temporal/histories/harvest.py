"""All rows of one build, from the histories that the server keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.temporal.histories.rows import RECORDS, rows_of
from domain.build.names import check_build_name, task_saga_id
from domain.delivery.requests import delivery_saga_id, watch_id
from domain.errors import ServerUnavailable
from domain.ports.sagas import sweep_id
from domain.ports.store import Event

AT_ONCE = 10

Run = tuple[str, str]
"""A workflow's id and its run's."""


@dataclass(slots=True, kw_only=True)
class Harvest:
    """The rows found, the runs whose histories were read, and those that are named somewhere and gone."""

    events: list[Event] = field(default_factory=list)
    read: list[Run] = field(default_factory=list)
    gone: list[Run] = field(default_factory=list)


async def harvest(client: Client, build: str) -> Harvest:
    """All rows of one build: of every run of its saga and of its tasks', also reset and continued ones, and of sweeps
    that ended it. Raises InvalidName, EventUnreadable, ServerUnavailable."""
    check_build_name(build)
    found = Harvest()
    try:
        await _follow(client, build, found)
    except RPCError as error:
        raise ServerUnavailable(f"Temporal does not give the histories of {build}: {error.message}") from error
    return found


async def _follow(client: Client, build: str, found: Harvest) -> None:
    """Go from what the server lists to everything that a history names, and read each run once."""
    waiting = {*((name, "") for name in _own(build)), *await _listed(client, build)}
    seen: set[Run] = set()
    while waiting:
        part = sorted(waiting)[:AT_ONCE]
        seen |= set(part)
        for asked, history in zip(part, await asyncio.gather(*(_history(client, run) for run in part)), strict=True):
            run = (asked[0], asked[1] or _run_of(history))
            if not history:
                found.gone += [asked] if asked[1] else []
            elif run not in found.read:
                rows, others = await _read(client, history, run)
                found.read.append(run)
                found.events += [event for event in rows if event.build == build]
                waiting |= {other for other in others if _records_for(build, other[0])}
        waiting -= seen


def _records_for(build: str, workflow: str) -> bool:
    return workflow in _own(build) or workflow.startswith(task_saga_id(build, ""))


def _own(build: str) -> tuple[str, ...]:
    """The workflows beside its tasks: itself, its delivery, their watches, and sweeps of them."""
    delivery = delivery_saga_id(build)
    sagas = (build, delivery)
    return (*sagas, *(watch_id(saga) for saga in sagas), *(sweep_id(saga) for saga in sagas))


async def _listed(client: Client, build: str) -> set[Run]:
    """Every run of the workflows that record for the build, as far as the server's list is up to date."""
    names = " OR ".join(f"WorkflowId = '{name}'" for name in _own(build))
    tasks = f"WorkflowId STARTS_WITH '{task_saga_id(build, '')}'"
    return {(each.id, each.run_id) async for each in client.list_workflows(f"{names} OR {tasks}")}


async def _history(client: Client, run: Run) -> Sequence[HistoryEvent]:
    """Empty when the server has none."""
    handle = client.get_workflow_handle(run[0], run_id=run[1] or None)
    try:
        return (await handle.fetch_history()).events
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            return ()
        raise


async def _read(client: Client, history: Sequence[HistoryEvent], run: Run) -> tuple[list[Event], set[Run]]:
    """The rows that a history holds, and the runs that it names."""
    rows, others = list[Event](), set[Run]()
    for event in history:
        if event.HasField("activity_task_scheduled_event_attributes"):
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name == RECORDS:
                rows += rows_of(await client.data_converter.decode(scheduled.input.payloads))
        others.update(_named(event, run[0]))
    return rows, others


def _named(event: HistoryEvent, workflow: str) -> Iterator[Run]:
    """The other runs that an event names."""
    if event.HasField("workflow_execution_started_event_attributes"):
        started = event.workflow_execution_started_event_attributes
        ids = (
            started.continued_execution_run_id,
            started.original_execution_run_id,
            started.first_execution_run_id,
        )
        yield from ((workflow, run) for run in ids if run)
    elif event.HasField("workflow_task_failed_event_attributes"):
        failed = event.workflow_task_failed_event_attributes
        yield from ((workflow, run) for run in (failed.base_run_id, failed.new_run_id) if run)
    elif event.HasField("workflow_execution_continued_as_new_event_attributes"):
        yield workflow, event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    elif event.HasField("child_workflow_execution_started_event_attributes"):
        child = event.child_workflow_execution_started_event_attributes.workflow_execution
        yield child.workflow_id, child.run_id


def _run_of(history: Sequence[HistoryEvent]) -> str:
    """Whose history was given for the newest run: a reset one names itself where it was reset."""
    failed = [event.workflow_task_failed_event_attributes.new_run_id for event in history]
    started = [event.workflow_execution_started_event_attributes.original_execution_run_id for event in history[:1]]
    return next(filter(None, (*reversed(failed), *started)), "")
