"""The phase runs again: the build's saga from its snapshot on, or the sagas of its tasks one after the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from adapters.cli.replay.answers import said
from adapters.cli.replay.record import ENDED, RESTORED, Part, task_input
from domain.build.names import task_saga_id
from domain.build.requests import BuildRequest
from domain.errors import PhaseMissing
from domain.replay.facts import Compared, compare
from domain.trace.order import in_order

if TYPE_CHECKING:
    from temporalio.client import Client, WorkflowHandle

    from adapters.settings import Settings
    from domain.ports.store import Event, Store

POLL_SECONDS = 0.2
SAGA_QUEUE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where it runs. ``state`` is what is carried into the phase, ``allow_missing`` isolations to do without."""

    client: Client
    settings: Settings
    store: Store
    part: Part
    state: Mapping[str, Any]
    allow_missing: tuple[str, ...] = ()

    async def rows(self) -> list[Event]:
        """What the scratch store holds of the build by now."""
        return [event for _, event in await self.store.events.read(self.part.build)]


async def run_phase(stage: Stage, *, spec: str) -> Compared:
    """Run the whole phase, and compare. Raises PhaseMissing when it could not even begin."""
    part = stage.part
    given = {row.key for row in await stage.rows()}
    handle = await _start(stage, "BuildSaga", part.build, asdict(_request(stage, spec)))
    await _until_it_ends(stage, handle, given)
    rows = [row for row in in_order(await stage.rows()) if row.key not in given]
    if part.entry is None:
        return compare(part.rows, rows)
    place = next((number for number, row in enumerate(rows) if row.kind == RESTORED), None)
    if place is None:
        why = next((str(row.data.get("sentence")) for row in rows if row.kind == ENDED), "its saga said nothing")
        raise PhaseMissing(f"{part.phase} of {part.build} could not begin again: {why}")
    return compare(part.rows, rows[place + 1 :])


async def run_tasks(stage: Stage, sagas: Sequence[Sequence[Event]]) -> Compared:
    """Run the sagas of tasks again, each on the base that it was given then, and compare each. Stops at the first that
    differs."""
    facts = 0
    for recorded in sagas:
        request = task_input(stage.part, recorded, stage.state) | {"allow_missing": list(stage.allow_missing)}
        saga = task_saga_id(stage.part.build, recorded[0].task)
        handle = await _start(stage, "TaskSaga", saga, request)
        await _until_it_ends(stage, handle, set())
        run = handle.first_execution_run_id
        compared = compare(recorded, [row for row in await stage.rows() if row.first_run == run])
        facts += compared.facts
        if not compared.equal:
            return Compared(facts=facts, difference=compared.difference)
    return Compared(facts=facts)


def _request(stage: Stage, spec: str) -> BuildRequest:
    """As the build was asked for, as far as its log tells: what nobody was asked is approved, or skipped."""
    part = stage.part
    asked = {str(row.data.get("about")) for row in part.rows if row.kind == "ask.opened"}
    return BuildRequest(
        spec="" if part.entry else spec,
        project=part.project,
        title=part.title,
        user=part.user,
        allow_missing=stage.allow_missing,
        approved=tuple(name for name in ("plan", "change") if name not in asked),
        unattended=not asked,
        resume=str(part.entry.data["token"]) if part.entry else "",
        fork=part.entry is not None,
        until=part.phase,
    )


async def _start(stage: Stage, kind: str, name: str, words: Mapping[str, Any]) -> WorkflowHandle[Any, Any]:
    from datetime import timedelta

    return await stage.client.start_workflow(
        kind,
        dict(words),
        id=name,
        task_queue=stage.settings.temporal.task_queue,
        task_timeout=timedelta(seconds=SAGA_QUEUE_SECONDS),
    )


async def _until_it_ends(stage: Stage, handle: WorkflowHandle[Any, Any], given: set[str]) -> None:
    """However it ends: its rows say it. What a person is asked is answered as it was then; where the record has no
    such answer it has parted from the record, and nobody waits."""
    from temporalio.client import WorkflowFailureError

    ending = asyncio.create_task(handle.result())
    told = set[str]()
    try:
        while not ending.done():
            await asyncio.wait([ending], timeout=POLL_SECONDS)
            for ask in await _open(stage, given | told):
                told.add(ask.key)
                answer = said(stage.part.rows, ask)
                if answer is None:
                    await handle.cancel()
                else:
                    await handle.signal(answer[0], answer[1])
        with contextlib.suppress(WorkflowFailureError):
            await ending
    finally:
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)


async def _open(stage: Stage, known: set[str]) -> list[Event]:
    return [row for row in await stage.rows() if row.kind == "ask.opened" and row.key not in known]
