"""A build that only is a log, blobs and a workflow that rules as it is told: what the commands of decisions work on."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.worker import Worker

from adapters.blobs import open_blobs
from adapters.settings import Settings
from adapters.store import open_store
from domain.ports.blobs import Blobs
from domain.ports.store import Event, Store
from tests.adapters.ruled_build import RuledBuild

Rulings = Mapping[str, list[dict[str, str]]]


def ruling(outcome: str, reason: str) -> dict[str, str]:
    """As BuildSaga answers an update."""
    return {"outcome": outcome, "reason": reason, "ask": ""}


@dataclass
class Office:
    """One build that waits for people."""

    build: str
    settings: Settings
    client: Client
    store: Store
    blobs: Blobs
    handle: WorkflowHandle[Any, Any]
    at: int = 0

    async def note(self, kind: str, /, *, task: str = "", **data: Any) -> Event:
        """A row of the log."""
        self.at += 1
        event = Event(
            first_run=self.build,
            run=self.build,
            sequence=self.at,
            build=self.build,
            kind=kind,
            at=1_700_000_000_000 + self.at,
            task=task,
            data=data,
        )
        await self.store.events.append([event])
        return event

    async def pack(self, document: Mapping[str, Any]) -> str:
        """A document's digest."""
        return await self.blobs.put(json.dumps(document).encode())

    async def asked(self, about: str, *, document: Mapping[str, Any], choices: list[str], task: str = "") -> Event:
        """An ask that is open now."""
        return await self.note(
            "ask.opened",
            task=task,
            id=f"{about}-{self.at + 1}",
            about=about,
            kind="approval" if about in ("plan", "change") else "question",
            digest=await self.pack(document),
            sentence=f"what about the {about}?",
            choices=choices,
            deadline=1_800_000_000_000,
        )

    async def asked_for_the_change(self, diff: str = "") -> Event:
        """The usual approval."""
        document = {"about": "change", "diff": await self.blobs.put(diff.encode()) if diff else ""}
        return await self.asked("change", document=document, choices=["approve", "reject"])

    async def asked_about_a_task(self, task: str = "api") -> Event:
        """The usual question."""
        choices = ["retry", "raise", "skip", "take", "abort"]
        return await self.asked("task", document={"about": "task"}, choices=choices, task=task)

    async def heard(self) -> list[list[Any]]:
        """What the build was told: ["update" or "signal", name, words]."""
        told: list[list[Any]] = await self.handle.query("heard")
        return told

    @staticmethod
    def words(told: list[Any]) -> dict[str, Any]:
        """What was given beside what is empty."""
        return {name: value for name, value in told[2].items() if value}


@contextlib.asynccontextmanager
async def office(
    client: Client, settings: Settings, rulings: Rulings | None = None, *, served: bool = True
) -> AsyncIterator[Office]:
    """A build with a row, a workflow, and a worker for it if it is ``served``."""
    build, queue = f"build-calc-{uuid.uuid4().hex[:12]}", uuid.uuid4().hex
    handle = await client.start_workflow("RuledBuild", dict(rulings or {}), id=build, task_queue=queue)
    async with await open_store(settings.store_url) as store:
        at = Office(
            build=build,
            settings=settings,
            client=client,
            store=store,
            blobs=open_blobs(settings.state),
            handle=handle,
        )
        await at.note("build.started", project="calc", title="Multiply")
        async with contextlib.AsyncExitStack() as stack:
            if served:
                await stack.enter_async_context(Worker(client, task_queue=queue, workflows=[RuledBuild]))
            yield at
            with contextlib.suppress(RPCError):  # a scenario may have ended it
                await handle.terminate()
