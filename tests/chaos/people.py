"""The people around a build: they look at what waits, and answer until their answer has arrived."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from adapters.settings import load_settings
from adapters.store import open_store
from adapters.temporal.connect import connect
from domain.build.details import fold_details
from domain.errors import ServerUnavailable
from domain.ports.store import Event, Store
from domain.trace.asks import AskDetails
from domain.trace.parts import BuildDetails
from tests.chaos.scenes import PLAN, Stage

LOOK_SECONDS = 0.15
ANSWER_SECONDS = 5
NOT_NOW = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED)


@asynccontextmanager
async def store_of(at: Stage) -> AsyncIterator[Store]:
    """The store of a stage, whatever runs there."""
    settings = load_settings(start=at.root, environment=at.environment)
    async with await open_store(settings.store_url) as store:
        yield store


async def client_of(at: Stage) -> Client:
    """Connected as soon as the server answers: it may have died a moment ago."""
    settings = load_settings(start=at.root, environment=at.environment)
    async with asyncio.timeout(60):
        while True:
            try:
                return await connect(settings, at.environment)
            except ServerUnavailable:
                await asyncio.sleep(LOOK_SECONDS)


@dataclass(slots=True, kw_only=True)
class People:
    """Those who answer one build, each ask once; ``rulings`` is what they were told."""

    at: Stage
    store: Store
    client: Client
    build: str
    moved: str = ""
    said: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def saga(self) -> WorkflowHandle[Any, Any]:
        """The build's workflow."""
        return self.client.get_workflow_handle(self.build)

    async def events(self) -> list[Event]:
        """The build's log as it is now."""
        return [event for _, event in await self.store.events.read(self.build)]

    async def details(self) -> BuildDetails:
        """The build as ``status`` shows it."""
        return fold_details(self.build, await self.events())

    async def until(self, what: Callable[[BuildDetails], Any], *, seconds: float, why: str) -> BuildDetails:
        """Answer what opens until the details are as ``what`` wants them."""
        until = time.monotonic() + seconds
        while not what(details := await self.details()):
            assert time.monotonic() < until, f"{why} did not happen within {seconds} s: {details}"
            for ask in details.open_asks():
                await self.answer(ask)
            await asyncio.sleep(LOOK_SECONDS)
        return details

    async def ended(self, *, seconds: float) -> BuildDetails:
        """Answer until the build has ended, in its log and at Temporal."""
        details = await self.until(lambda build: build.ended, seconds=seconds, why=f"the end of {self.build}")
        async with asyncio.timeout(30):
            await self.closed()
        return details

    async def closed(self) -> None:
        """Wait until the workflow has closed: its last row comes before its end."""
        while True:
            try:
                if (await self.saga.describe()).close_time is not None:
                    return
            except RPCError as error:
                _now_or_never(error)
            await asyncio.sleep(LOOK_SECONDS)

    async def answer(self, ask: AskDetails) -> None:
        """The plan is replaced and then approved, the stuck task answered, the change approved: the target has moved
        just before."""
        if any(said[0] == ask.id for said in self.said):
            return
        approval = {"digest": ask.digest[:12], "by": "ann"}
        match ask.about:
            case "plan" if ask.id == "plan-1":
                await self.say(ask.id, "edit_plan", {"plan": PLAN, "by": "ann"})
            case "plan":
                await self.say(ask.id, "approve", approval)
            case "task":
                await self.say(ask.id, "answer", {"ask": ask.id, "by": "bob", **self.at.scene.stuck})
            case "change":
                self.moved = self.moved or await asyncio.to_thread(self.at.move_target)
                await self.say(ask.id, "approve", approval)
            case _:
                raise AssertionError(f"nobody expected {ask}")

    async def say(self, ask: str, what: str, words: dict[str, Any]) -> None:
        """As an update, again until it has arrived: the same one, however often it is sent."""
        for _ in range(20):
            try:
                async with asyncio.timeout(ANSWER_SECONDS * 2):
                    ruling = await self.saga.execute_update(
                        what, words, id=f"{ask}-{what}", rpc_timeout=timedelta(seconds=ANSWER_SECONDS)
                    )
            except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
                continue
            except RPCError as error:
                _now_or_never(error)
                await asyncio.sleep(LOOK_SECONDS)
                continue
            assert ruling["outcome"] == "accepted", (ask, what, ruling)
            self.said.append((ask, what, ruling["reason"]))
            return
        raise AssertionError(f"{what} for {ask} never arrived")


def _now_or_never(error: RPCError) -> None:
    if error.status not in NOT_NOW:
        raise error


@asynccontextmanager
async def people(at: Stage, build: str) -> AsyncIterator[People]:
    """Those who answer ``build``, with their ways to look and to speak."""
    async with store_of(at) as store:
        yield People(at=at, store=store, client=await client_of(at), build=build)
