"""Who starts the deliveries of a play, answers what is asked, and reads how each went."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError

from adapters.settings import load_settings
from adapters.store import open_store
from adapters.temporal.connect import connect
from domain.delivery.lane import lane_id
from domain.delivery.requests import delivery_name
from domain.ports.releases import Release
from domain.ports.store import Event, Store
from domain.ports.target import PRODUCTION
from tests.chaos.delivery.stage import SHOP, Outside, ShopStage
from tests.chaos.mortal_worker import deaths
from tests.chaos.story import in_order

PATIENCE_SECONDS = 240
RPC_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One delivery: what was outside before and after, and what is told of it, without what differs by chance."""

    before: Outside
    after: Outside
    status: str
    sentence: str
    residues: tuple[str, ...]
    record: Mapping[str, Any]
    lane: Mapping[str, Any]
    story: Mapping[str, Sequence[str]]
    died: Mapping[str, float | None]


@dataclass(slots=True, kw_only=True)
class Teller:
    """Starts deliveries, answers what is asked, and reads how each went."""

    at: ShopStage
    store: Store
    client: Client
    queue: str
    cases: dict[int, tuple[str, str]] = field(default_factory=dict)

    async def begin(self, number: int, commit: str, *, project: str = SHOP) -> str:
        """A delivery alone, approved beforehand; its name."""
        name = delivery_name(project, number)
        request = {"project": project, "commit": commit, "by": "ann", "approved": ["release"]}
        await self.client.start_workflow("DeliverySaga", request, id=name, task_queue=self.queue)
        self.cases[number] = (name, name)
        return name

    async def ended(self, saga: str) -> None:
        """Wait for its end, however it is."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(WorkflowFailureError):
                await self.client.get_workflow_handle(saga).result()

    async def say(self, saga: str, what: str, words: dict[str, Any]) -> dict[str, Any]:
        """As an update, again until it has arrived: the same one, however often it is sent."""
        async with asyncio.timeout(RPC_SECONDS):
            while True:
                with suppress(RPCError, WorkflowUpdateRPCTimeoutOrCancelledError):
                    handle = self.client.get_workflow_handle(saga)
                    ruling: dict[str, Any] = await handle.execute_update(what, words, id=f"{saga}-{what}")
                    return ruling
                await asyncio.sleep(0.2)

    async def events(self, case: str) -> list[Event]:
        """The case's log as it is now."""
        return [event for _, event in await self.store.events.read(case)]

    async def until(self, what: Callable[[], Any], *, why: str) -> Any:
        """Poll until it is true."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not (value := await what() if asyncio.iscoroutinefunction(what) else what()):
            assert time.monotonic() < until, f"{why} did not happen"
            await asyncio.sleep(0.1)
        return value

    async def acknowledge(self) -> None:
        """A person ends the freeze of the lane."""
        ruling = await self.say(lane_id(SHOP, PRODUCTION), "acknowledge", {"by": "ann", "reason": "we looked"})
        assert ruling["outcome"] == "accepted", ruling

    async def told(self, number: int, before: Outside) -> Chapter:
        """How the delivery went, now that it has ended."""
        saga, case = self.cases[number]
        release = await self.store.releases.get(SHOP, number)
        assert release is not None
        assert release.saga == saga
        lane = await self.until(self._free_lane, why="a free lane")
        return Chapter(
            before=before,
            after=await asyncio.to_thread(self.at.outside),
            status=release.status,
            sentence=plain(release.sentence),
            residues=tuple(map(plain, release.record.get("residues", ()))),
            record=record_of(release),
            lane=lane,
            story=story_of(await self.events(case)),
            died=deaths(self.at.state),
        )

    async def _free_lane(self) -> dict[str, Any] | None:
        async with asyncio.timeout(RPC_SECONDS):
            state: dict[str, Any] = await self.client.get_workflow_handle(lane_id(SHOP, PRODUCTION)).query("state")
        if state["holder"] or state["queue"]:
            return None
        frozen, current = state["frozen"], state["current"]
        return {
            "current": current and (current["number"], current["artifact"]),
            "frozen": frozen and (frozen["release"], frozen["outcome"], plain(frozen["sentence"])),
            "history": [(each["number"], each["outcome"]) for each in state["history"]],
        }


@asynccontextmanager
async def telling(at: ShopStage) -> AsyncIterator[Teller]:
    """Somebody with the ways to look and to speak."""
    settings = load_settings(start=at.root, environment=at.environment)
    client = await connect(settings, at.environment, patience=30)
    async with await open_store(settings.store_url) as store:
        yield Teller(at=at, store=store, client=client, queue=settings.temporal.task_queue)


def plain(text: str) -> str:
    """Without names of commits and blobs, and without figures."""
    return re.sub(r"\b[0-9a-f]{12,64}\b|\d+(?:\.\d+)?", "#", text)


def record_of(release: Release) -> dict[str, Any]:
    """What the record of a release says in every run."""
    record = json.loads(json.dumps(dict(release.record)))
    return {
        "kind": release.kind,
        "artifact": release.artifact,
        "config": release.config,
        "previous": release.previous,
        "steps": record.get("steps"),
        "proof": record.get("proof"),
        "watch": record.get("watch", {}).get("kind"),
        "integration": record.get("integration", {}).get("green"),
        "approved": [(each["what"], each["by"], each["how"]) for each in record.get("approved", ())],
    }


TOLD = ("release", "status", "how", "by", "choice", "green", "to", "previous", "kind", "artifact", "phase", "name")
"""What of a row is the same in every run."""
BY_CHANCE = ("lane.joined", "watch.window")


def story_of(events: Sequence[Event]) -> dict[str, list[str]]:
    """The rows of the delivery and of its watch, each told by itself."""
    told: dict[str, list[str]] = {"delivery": [], "watch": []}
    for event in in_order(events):
        if event.kind in BY_CHANCE or event.kind.startswith(("build.", "task.", "attempt.", "call.")) or event.task:
            continue
        data = {name: event.data[name] for name in TOLD if name in event.data}
        told["watch" if event.kind.startswith("watch.") else "delivery"].append(f"{event.kind} {json.dumps(data)}")
    return told
