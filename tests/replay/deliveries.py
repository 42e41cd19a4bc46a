"""The deliveries whose histories are recorded: one lane, one after the other, with a faked outside."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.worker import Worker

from activities.delivery.lanes import Lanes
from adapters.store.delivery.memory import MemoryReleases
from adapters.temporal.delivery.lanes import TemporalLanes
from adapters.temporal.sagas import TemporalSagas
from domain.build.project import Consent
from domain.delivery.project import Delivery, Step
from domain.kpi.window import Window
from domain.ports.releases import Release
from tests.workflows.deliveries import BAD, GOOD, QUICK, REQUEST, Outside
from tests.workflows.running import until
from workflows.delivery.lane import Lane
from workflows.delivery.saga import DeliverySaga
from workflows.delivery.watch import KpiWatch

LANE = "lane-shop-production"
WORKFLOWS = (DeliverySaga, KpiWatch, Lane)

Handle = WorkflowHandle[Any, Any]
Drive = Callable[[Handle, Outside], Awaitable[None]]


async def nobody(handle: Handle, outside: Outside) -> None:
    """Nobody says anything."""


async def consents(handle: Handle, outside: Outside) -> None:
    """To the release, and to a step that cannot be taken back."""
    for about in ("release", "final"):
        await handle.execute_update("approve", {"digest": (await asked(outside, about))["digest"], "by": "ann"})


async def decides(handle: Handle, outside: Outside) -> None:
    """What the watch cannot."""
    await handle.signal("answer", {"ask": (await asked(outside, "watch"))["id"], "choice": "promote", "by": "ann"})


async def aborts(handle: Handle, outside: Outside) -> None:
    """While it is staged."""
    await outside.holding.wait()
    await handle.signal("abort", {"by": "ann", "reason": "not now"})


async def wants_it_back(handle: Handle, outside: Outside) -> None:
    """During the watch."""
    await outside.holding.wait()
    await handle.execute_update("roll_back", {"by": "ann", "reason": "looks odd"})
    outside.hold.set()


async def asked(outside: Outside, about: str) -> dict[str, Any]:
    """The data of an ask, once its row is written."""
    rows = outside.events

    def found() -> Any:
        return next((dict(e.data) for e in rows if e.kind == "ask.opened" and e.data["about"] == about), None)

    data: dict[str, Any] = await until(found)
    return data


def undecided() -> Outside:
    """Too few requests to tell anything."""
    thin = replace(GOOD, asked=20, failed=0)
    delivery = Delivery(target="local", run=("serve",), watch=replace(QUICK, on_no_data="ask", on_inconclusive="ask"))
    return Outside(
        delivery=delivery, window=lambda o: Window(number=o.number, seconds=1, candidate=thin, baseline=thin)
    )


def breached() -> Outside:
    """The second window is bad."""

    def window(order: Any) -> Window:
        return Window(number=order.number, seconds=1, candidate=BAD if order.number > 1 else GOOD, baseline=GOOD)

    return Outside(window=window)


def stepped() -> Outside:
    """With steps of the project's own; a person is asked."""
    steps = (
        Step(name="migrate", run=("up",), kind="compensatable", undo=("down",)),
        Step(name="drop", run=("drop",), kind="final"),
    )
    delivery = Delivery(target="local", run=("serve",), integration=("test",), watch=QUICK, steps=steps)
    return Outside(delivery=delivery, consent=Consent(approve=("release",)))


BACK = {"project": "shop", "kind": "rollback", "release": 6, "to": 5, "by": "ann"}
SCENARIOS: Mapping[str, tuple[Callable[[], Outside], Drive, Mapping[str, Any]]] = {
    "promoted": (Outside, nobody, REQUEST),
    "approved": (stepped, consents, REQUEST),
    "undecided": (undecided, decides, REQUEST),
    "aborted": (lambda: Outside(held="run_integration"), aborts, REQUEST),
    "wanted-back": (lambda: Outside(held="measure_window"), wants_it_back, REQUEST),
    "breached": (breached, nobody, REQUEST),
    "rollback": (Outside, nobody, BACK),
}


async def record(client: Client, write: Callable[[WorkflowHistory, str], None]) -> None:
    """Run every scenario, and write the histories of the sagas, their watches and their lane."""
    for number, name in enumerate(SCENARIOS, start=7):
        await _record(client, name, number, write)
    write(await client.get_workflow_handle(LANE).fetch_history(), LANE)


async def _record(client: Client, name: str, number: int, write: Callable[[WorkflowHistory, str], None]) -> None:
    make, drive, request = SCENARIOS[name]
    outside, queue, saga = make(), "deliveries", f"deliver-shop-{name}"
    outside.number, outside.production.live["production"] = number, 6
    outside.past = [_release(6)]
    lanes = Lanes(lanes=TemporalLanes(client, task_queue=queue), sagas=TemporalSagas(client), releases=MemoryReleases())
    faked = [each for each in outside.activities() if each.__name__ not in ("do_join", "do_look")]
    activities: list[Callable[..., Any]] = [*faked, lanes.join_lane, lanes.look_at_holder, lanes.recall_releases]
    async with contextlib.AsyncExitStack() as stack:
        for suffix in ("-workspace", "-sandbox", "-deploy"):
            await stack.enter_async_context(Worker(client, task_queue=f"{queue}{suffix}", activities=activities))
        await stack.enter_async_context(
            Worker(client, task_queue=queue, workflows=list(WORKFLOWS), activities=activities)
        )
        handle = await client.start_workflow("DeliverySaga", dict(request), id=saga, task_queue=queue)
        await drive(handle, outside)
        with contextlib.suppress(WorkflowFailureError):  # the scenarios that end so
            await handle.result()
        await _thaw(client)
    write(await handle.fetch_history(), saga)
    if "watch.ended" in outside.kinds():
        write(await client.get_workflow_handle(f"{saga}-watch").fetch_history(), f"{saga}-watch")


async def _thaw(client: Client) -> None:
    """What was rolled back froze the lane; the leaver's word may still be on its way."""
    lane = client.get_workflow_handle(LANE)
    async with asyncio.timeout(30):
        while (await lane.query("state"))["holder"]:  # noqa: ASYNC110 - the condition lies on the server
            await asyncio.sleep(0.02)
    if (await lane.query("state"))["frozen"]:
        await lane.execute_update("acknowledge", {"by": "ann", "reason": "seen"})


def _release(number: int) -> Release:
    return Release(
        project="shop", number=number, saga="s", revision=1, kind="deliver", status="promoted", commit="c0", previous=5
    )
