"""How a release goes back: as often as it takes, and whoever ends a watch is heard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    Interceptor,
    SignalChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from activities.records import RecordEventsInput
from tests.workflows.deliveries import PRODUCTION_BEFORE, Outside, begin, delivering
from tests.workflows.test_delivery_saga import bad_from, failure

AT_ONCE = timedelta(milliseconds=10)


def away(times: int) -> Callable[[Any], bool]:
    """Leading production's traffic back fails so often, each time as if it might work in a moment; then it works."""
    left = iter(range(times))

    def restored(request: Any) -> bool:
        if request.environment == "production" and next(left, None) is not None:
            sentence = "the proxy does not listen"
            raise ApplicationError(sentence, type="TargetUnavailable", next_retry_delay=AT_ONCE)
        return True

    return restored


class SlowEnd(Outside):
    """The row of the watch's end can be held: its verdict is there, and nobody was told of it yet."""

    @activity.defn(name="record_events")
    async def do_record_events(self, request: RecordEventsInput) -> int:
        if any(event.kind == "watch.ended" for event in request.events):
            await self._did("end_watch", request)
        return await Outside.do_record_events(self, request)


class Deaf(WorkflowOutboundInterceptor):
    """A child that closed before its parent heard of it: the server finds nobody to signal."""

    async def signal_child_workflow(self, input: SignalChildWorkflowInput) -> None:
        raise ApplicationError("Unable to signal external workflow because it was not found")


class Between(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(Deaf(outbound))


class ToTheClosed(Interceptor):
    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        return Between


async def test_what_fails_nine_times_in_a_row_goes_back_at_the_tenth(client: Client) -> None:
    outside = Outside(window=bad_from(1), restored=away(9))
    error = await failure(client, outside)
    assert (error.type, outside.releases[-1].status) == ("KpiBreach", "rolled back")
    assert outside.names().count("restore_production") == 10
    assert outside.releases[-1].record["residues"] == []
    assert outside.production.seen() == PRODUCTION_BEFORE


async def test_what_fails_ten_times_is_left_and_everything_that_is_known_of_it_is_told(client: Client) -> None:
    outside = Outside(window=bad_from(1), restored=away(1_000))
    error = await failure(client, outside)
    last = outside.releases[-1]
    assert last.status == "unclear"
    assert outside.names().count("restore_production") == 10
    undone, live, how = last.record["residues"]
    assert undone == "restore_traffic: the proxy does not listen"
    assert live == "production of shop leads to release 7 now"
    assert "`mendwork rollback 7 --project shop --to 6`" in how
    assert all(residue in error.message for residue in (undone, live, how))
    assert outside.event("delivery.ended")["residues"] == [undone, live, how]
    assert "release.rolled_back" not in outside.kinds()
    closed = [request.outcome for request in outside.of("close_undo")]
    assert [outcome for outcome in closed if outcome != "undone"] == [f"failed: {undone}"]
    assert ("restore_staging" in outside.names(), outside.names().count("retire_unit")) == (True, 2)  # the rest went


async def heard(watch: WorkflowHandle[Any, Any]) -> None:
    """Wait until somebody has spoken to it, so that it knows that before the end of what it waits for."""
    while not any(  # noqa: ASYNC110  Temporal tells no one of a signal
        event.HasField("workflow_execution_signaled_event_attributes") for event in (await watch.fetch_history()).events
    ):
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("how", ["signal", "update"])
async def test_an_abort_during_the_watch_ends_it_first_and_then_leads_back(client: Client, how: str) -> None:
    outside = Outside(held="measure_window")
    async with delivering(client, outside) as queue, asyncio.timeout(60):
        handle = await begin(client, queue)
        await outside.holding.wait()
        say = handle.signal if how == "signal" else handle.execute_update
        await say("abort", {"by": "bob", "reason": "stop"})
        watching = client.get_workflow_handle(f"{handle.id}-watch")
        await heard(watching)
        outside.hold.set()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        watch = await watching.describe()
    assert watch.status == WorkflowExecutionStatus.COMPLETED
    last = outside.releases[-1]
    assert (last.status, last.sentence.startswith("bob: stop")) == ("rolled back", True)
    back = [name for name in outside.names() if name in ("measure_window", "restore_production", "retire_unit")]
    assert back == ["measure_window", "restore_production", "retire_unit", "retire_unit"]
    assert outside.event("release.rolled_back")["proof"] == {"release": 6, "ok": True}
    assert outside.production.seen() == PRODUCTION_BEFORE


@pytest.mark.parametrize("what", ["abort", "roll_back"])
async def test_who_is_told_that_it_goes_back_is_not_overruled_by_a_watch_that_just_passed(
    client: Client, what: str
) -> None:
    outside = SlowEnd(held="end_watch")
    async with delivering(client, outside) as queue, asyncio.timeout(60):
        handle = await begin(client, queue)
        await outside.holding.wait()
        ruling = await handle.execute_update(what, {"by": "bob", "reason": "stop"})
        outside.hold.set()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert ruling["outcome"] == "accepted"
    last = outside.releases[-1]
    assert (last.status, last.sentence.startswith("bob: stop")) == ("rolled back", True)
    assert last.record["watch"]["kind"] == "pass"
    assert outside.event("delivery.ended")["fault"] == "WatchEnded"
    assert outside.production.seen() == PRODUCTION_BEFORE


async def test_a_watch_that_closed_before_it_could_be_told_leaves_nobody_in_production(client: Client) -> None:
    outside = Outside(held="measure_window")
    async with delivering(client, outside, interceptors=[ToTheClosed()]) as queue, asyncio.timeout(60):
        handle = await begin(client, queue)
        await outside.holding.wait()
        await handle.signal("roll_back", {"by": "bob", "reason": "looks odd"})
        outside.hold.set()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert outside.releases[-1].status == "rolled back"
    assert outside.production.seen() == PRODUCTION_BEFORE
