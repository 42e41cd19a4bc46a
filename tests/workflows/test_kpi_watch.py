"""The watch of a release on a real Temporal server: windows of milliseconds, whose figures a test writes down."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.records import RecordEventsInput
from domain.kpi.policy import ASK, EXTEND, ROLL_BACK, WatchPolicy
from domain.kpi.probe import Probe
from domain.kpi.watching import WatchOutcome, WatchRequest
from domain.kpi.window import Arm, Window
from domain.ports.load import LoadOrder
from domain.ports.store import Event
from tests.domain.kpi_windows import arm
from tests.workflows.running import until
from workflows.delivery.watch import KpiWatch

POLICY = WatchPolicy(seconds=0.2, window=0.05, timeout=0.05)  # four windows
OPEN = arm(240)  # as many failures as the baseline of OPEN_BOTH: nothing can be told
BLIND = arm(asked=0, unmeasured=600)


@workflow.defn(name="Parent", sandboxed=False)
class Parent:
    """Stands for the delivery: starts the watch, and passes on what it hears and what it is told to say."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self._watch: workflow.ChildWorkflowHandle[Any, WatchOutcome] | None = None

    @workflow.run
    async def run(self, request: Any) -> WatchOutcome:
        self._watch = await workflow.start_child_workflow(
            "KpiWatch", request, id=f"{workflow.info().workflow_id}-watch", result_type=WatchOutcome
        )
        return await self._watch

    @workflow.signal
    def undecided(self, raw: Any) -> None:
        self.heard.append(raw)

    @workflow.signal
    async def say(self, name: str, raw: Any) -> None:
        await workflow.wait_condition(lambda: self._watch is not None)
        assert self._watch is not None
        await self._watch.signal(name, raw)

    @workflow.query
    def told(self) -> list[Any]:
        return self.heard


@dataclass
class Outside:
    """What is measured: ``script`` window by window, then ``lasting``; an exception is raised instead."""

    script: list[Any] = field(default_factory=list)
    lasting: Any = field(default_factory=arm)
    baseline: Arm | None = field(default_factory=arm)
    hold: asyncio.Event | None = None
    orders: list[LoadOrder] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    @activity.defn(name="measure_window")
    async def measure(self, order: LoadOrder) -> Window:
        self.orders.append(order)
        if self.hold is not None:
            while not self.hold.is_set():
                activity.heartbeat()
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.01)
        found = self.script.pop(0) if self.script else self.lasting
        if isinstance(found, Exception):
            raise found
        return Window(number=order.number, seconds=0.05, candidate=found, baseline=self.baseline)

    @activity.defn(name="record_events")
    async def record(self, request: RecordEventsInput) -> int:
        self.events.extend(request.events)
        return len(request.events)

    def rows(self, kind: str) -> list[dict[str, Any]]:
        return [dict(event.data) for event in self.events if event.kind == kind]


@dataclass
class Scene:
    client: Client
    outside: Outside
    queue: str
    request: Any
    handle: WorkflowHandle[Any, Any]

    async def outcome(self) -> WatchOutcome:
        async with asyncio.timeout(60):
            found: WatchOutcome = await self.handle.result()
        return found

    async def asked(self, *, times: int = 1) -> Any:
        """What the watch signalled to its parent, once it has ``times``."""
        async with asyncio.timeout(60):
            while len(told := await self.handle.query("told")) < times:  # noqa: ASYNC110 - it lies in the server
                await asyncio.sleep(0.02)
        return told[-1]

    async def say(self, name: str, raw: Any) -> None:
        await self.handle.signal("say", args=[name, raw])

    async def windows(self, number: int) -> None:
        await until(lambda: len(self.outside.rows("watch.window")) >= number)


def request_of(policy: WatchPolicy = POLICY, **changes: Any) -> WatchRequest:
    given: dict[str, Any] = {
        "case": "build-notes-1",
        "project": "notes",
        "release": 7,
        "candidate": "http://127.0.0.1:8007",
        "baseline": "http://127.0.0.1:8006",
        "health": Probe(path="/health"),
        "policy": policy,
        "heartbeat": 2.0,
    }
    return WatchRequest(**{**given, **changes})


@asynccontextmanager
async def watching(
    client: Client, outside: Outside, policy: WatchPolicy = POLICY, **changes: Any
) -> AsyncIterator[Scene]:
    queue, request = uuid.uuid4().hex, request_of(policy, **changes)
    async with (
        Worker(client, task_queue=queue, workflows=[KpiWatch, Parent], activities=[outside.record]),
        Worker(client, task_queue=f"{queue}-deploy", activities=[outside.measure]),
    ):
        handle = await client.start_workflow(
            "Parent", request, id=f"deliver-notes-{uuid.uuid4().hex}", task_queue=queue, result_type=WatchOutcome
        )
        yield Scene(client, outside, queue, request, handle)


async def watched(client: Client, outside: Outside, policy: WatchPolicy = POLICY, **changes: Any) -> WatchOutcome:
    async with watching(client, outside, policy, **changes) as scene:
        return await scene.outcome()


class TestByTheFigures:
    async def test_a_good_release_passes_after_its_windows_each_with_a_row(self, client: Client) -> None:
        outside = Outside()
        outcome = await watched(client, outside)
        assert (outcome.kind, outcome.verdict, outcome.by, outcome.windows) == ("pass", "pass", "", 4)
        assert [point.number for point in outcome.series] == [1, 2, 3, 4]
        rows = outside.rows("watch.window")
        assert [row["verdict"] for row in rows] == ["going on"] * 3 + ["pass"]
        assert {row["release"] for row in rows} == {7}
        assert (rows[0]["asked"], rows[0]["baseline_asked"], rows[0]["p95"]) == (600, 600, 20.0)
        assert [row["kind"] for row in outside.rows("watch.ended")] == ["pass"]
        assert {event.build for event in outside.events} == {"build-notes-1"}

    async def test_each_window_is_ordered_as_the_policy_says(self, client: Client) -> None:
        outside = Outside()
        probes = (Probe(path="/notes", contains="tags"), Probe(path="/none", status=404))
        await watched(client, outside, WatchPolicy(seconds=0.1, window=0.05, timeout=0.05, rate=7.0, probes=probes))
        assert [order.number for order in outside.orders] == [1, 2]
        assert outside.orders[0] == LoadOrder(
            number=1,
            candidate="http://127.0.0.1:8007",
            baseline="http://127.0.0.1:8006",
            health=Probe(path="/health"),
            probes=probes,
            rate=7.0,
            seconds=0.05,
            timeout=0.05,
        )

    async def test_a_release_that_is_down_ends_it_with_the_first_window(self, client: Client) -> None:
        outcome = await watched(client, Outside(script=[arm(healthy=False)]))
        assert (outcome.kind, outcome.windows) == ("fail", 1)
        assert "health" in outcome.reason

    async def test_more_errors_than_the_baselines_end_it_at_once(self, client: Client) -> None:
        outcome = await watched(client, Outside(script=[arm(), arm(60)]))
        assert (outcome.kind, outcome.windows) == ("fail", 2)
        assert "60 of 1200 (5.0%) failed" in outcome.reason

    async def test_a_first_release_has_no_baseline(self, client: Client) -> None:
        outside = Outside(baseline=None)
        outcome = await watched(client, outside, baseline="")
        assert outcome.kind == "pass"
        assert "no baseline" in outcome.reason
        assert outside.orders[0].baseline == ""


class TestWithoutData:
    async def test_a_worker_that_cannot_measure_is_no_data_and_never_a_pass(self, client: Client) -> None:
        broken = ApplicationError("only loopback", type="InvalidInput", non_retryable=True)
        outcome = await watched(client, Outside(lasting=broken))
        assert (outcome.kind, outcome.verdict) == ("no data", "no data")
        assert "0 of 4 windows could be measured" in outcome.reason

    async def test_a_worker_that_fails_once_is_asked_again_for_the_same_window(self, client: Client) -> None:
        outside = Outside(script=[ApplicationError("a moment")])
        assert (await watched(client, outside)).kind == "pass"
        assert [order.number for order in outside.orders] == [1, 1, 2, 3, 4]

    async def test_no_worker_at_all_is_no_data_in_about_the_time_of_the_watch(self, client: Client) -> None:
        outside, queue = Outside(), uuid.uuid4().hex
        async with Worker(client, task_queue=queue, workflows=[KpiWatch], activities=[outside.record]):
            name = f"deliver-notes-{uuid.uuid4().hex}-watch"
            async with asyncio.timeout(60):
                outcome = await client.execute_workflow(
                    "KpiWatch", request_of(), id=name, task_queue=queue, result_type=WatchOutcome
                )
        assert outcome.kind == "no data"
        assert len(outside.rows("watch.window")) == 1  # it took the time of the others too

    @pytest.mark.parametrize("lasting", [BLIND, arm(asked=0)], ids=["unmeasured", "no traffic"])
    async def test_what_could_not_be_asked_goes_back_by_the_projects_policy(self, client: Client, lasting: Arm) -> None:
        outcome = await watched(client, Outside(lasting=lasting, baseline=lasting))
        assert (outcome.kind, outcome.by) == ("no data", "")


def policy(**changes: Any) -> WatchPolicy:
    return WatchPolicy(**{**asdict(POLICY), "probes": (Probe(),), **changes})


class TestAPersonIsAsked:
    """By the parent, while measuring goes on."""

    async def test_once_and_promotes_what_the_figures_leave_open(self, client: Client) -> None:
        outside = Outside(lasting=OPEN, baseline=OPEN)
        async with watching(client, outside) as scene:
            asked = await scene.asked()
            assert (asked["kind"], asked["windows"]) == ("inconclusive", 4)
            assert "240" in asked["reason"] or "960" in asked["reason"]
            await scene.windows(6)
            await scene.say("decided", {"choice": "promote", "by": "ada"})
            outcome = await scene.outcome()
            assert (outcome.kind, outcome.by, outcome.verdict) == ("pass", "ada", "inconclusive")
            assert outcome.reason.startswith("ada promoted it: ")
            assert len(outside.rows("watch.undecided")) == 1

    async def test_and_takes_it_back(self, client: Client) -> None:
        async with watching(client, Outside(lasting=OPEN, baseline=OPEN)) as scene:
            await scene.asked()
            await scene.say("decided", {"choice": "roll back", "by": "ada"})
            outcome = await scene.outcome()
            assert (outcome.kind, outcome.by) == ("stopped", "ada")

    async def test_and_a_breach_meanwhile_ends_it(self, client: Client) -> None:
        outside = Outside(script=[OPEN] * 6 + [arm(healthy=False)], lasting=OPEN, baseline=OPEN)
        async with watching(client, outside) as scene:
            await scene.asked()
            outcome = await scene.outcome()
            assert (outcome.kind, outcome.by, outcome.windows) == ("fail", "", 7)

    async def test_and_better_figures_meanwhile_leave_it_to_them(self, client: Client) -> None:
        blind = [BLIND] * 4
        async with watching(client, Outside(script=blind), policy(on_no_data=ASK)) as scene:
            await scene.asked()
            await scene.windows(10)
            await scene.say("decided", {"choice": "promote", "by": "ada"})
            outcome = await scene.outcome()
            assert (outcome.kind, outcome.by, outcome.verdict) == ("pass", "ada", "pass")

    async def test_and_more_windows_may_tell(self, client: Client) -> None:
        outside = Outside(script=[BLIND] * 4)
        async with watching(client, outside, policy(on_no_data=ASK, extensions=4)) as scene:
            await scene.asked()
            await scene.say("decided", {"choice": "extend", "by": "ada"})
            outcome = await scene.outcome()
            assert (outcome.kind, outcome.by) == ("pass", "")
            assert outcome.windows >= 8

    async def test_and_again_when_they_do_not(self, client: Client) -> None:
        async with watching(client, Outside(lasting=OPEN, baseline=OPEN), policy(extensions=2)) as scene:
            await scene.asked()
            await scene.say("decided", {"choice": "extend", "by": "ada"})
            assert (await scene.asked(times=2))["windows"] >= 6
            await scene.say("decided", {"choice": "roll back", "by": "bob"})
            assert (await scene.outcome()).by == "bob"

    async def test_what_is_no_answer_is_recorded_and_changes_nothing(self, client: Client) -> None:
        outside = Outside(hold=asyncio.Event())
        async with watching(client, outside) as scene:
            await until(lambda: outside.orders)
            for raw in ({"choice": "promote", "by": "ada"}, {"choice": "moon"}, "promote", None, 7):
                await scene.say("decided", raw)
            assert outside.hold is not None
            child = client.get_workflow_handle(f"{scene.handle.id}-watch")
            await heard(child, "decided", 5)
            outside.hold.set()
            outcome = await scene.outcome()
            assert (outcome.kind, outcome.by) == ("pass", "")
            refused = outside.rows("answer.refused")
            reasons = sorted(row["reason"].split(":")[0] for row in refused)
            assert reasons == ["known choices"] * 4 + ["nothing is asked"]


async def heard(handle: WorkflowHandle[Any, Any], signal: str, times: int) -> None:
    """Until the history holds so many of the signal."""
    async with asyncio.timeout(60):
        while True:
            history = await handle.fetch_history()
            names = [event.workflow_execution_signaled_event_attributes.signal_name for event in history.events]
            if names.count(signal) >= times:
                return
            await asyncio.sleep(0.05)


class TestByPolicy:
    async def test_an_open_verdict_is_extended_and_passes_when_it_can(self, client: Client) -> None:
        outside = Outside(script=[BLIND] * 2)
        outcome = await watched(client, outside, policy(on_inconclusive=EXTEND))
        assert (outcome.kind, outcome.windows) == ("pass", 5)

    async def test_and_a_person_is_asked_when_it_cannot(self, client: Client) -> None:
        outside = Outside(lasting=OPEN, baseline=OPEN)
        async with watching(client, outside, policy(on_inconclusive=EXTEND, extensions=2)) as scene:
            assert (await scene.asked())["windows"] == 6
            await scene.say("stop", {"by": "ada"})
            await scene.outcome()

    async def test_an_open_verdict_goes_back_where_the_project_says_so(self, client: Client) -> None:
        outcome = await watched(client, Outside(lasting=OPEN, baseline=OPEN), policy(on_inconclusive=ROLL_BACK))
        assert (outcome.kind, outcome.windows) == ("inconclusive", 4)


class TestItsLife:
    async def test_who_wants_the_release_back_does_not_wait_for_the_window(self, client: Client) -> None:
        outside = Outside(hold=asyncio.Event())
        async with watching(client, outside, policy(window=60.0, seconds=240.0)) as scene:
            await until(lambda: outside.orders)
            await scene.say("stop", {"by": "ada"})
            outcome = await scene.outcome()
            assert (outcome.kind, outcome.by, outcome.windows) == ("stopped", "ada", 0)
            assert [row["by"] for row in outside.rows("watch.ended")] == ["ada"]

    async def test_a_cancelled_watch_says_so_in_the_log(self, client: Client) -> None:
        outside = Outside(hold=asyncio.Event())
        async with watching(client, outside, policy(window=60.0, seconds=240.0)) as scene:
            await until(lambda: outside.orders)
            await scene.handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await scene.outcome()
            assert [row["kind"] for row in outside.rows("watch.ended")] == ["cancelled"]

    async def test_a_long_wait_goes_on_in_new_runs_with_its_windows_and_its_question(self, client: Client) -> None:
        outside = Outside(lasting=OPEN, baseline=OPEN)
        async with watching(client, outside, history_events=150) as scene:
            await scene.asked()
            await until(lambda: len({event.run for event in outside.events}) >= 3)
            await scene.say("decided", {"choice": "promote", "by": "ada"})
            outcome = await scene.outcome()
            assert outcome.kind == "pass"
            numbers = [row["number"] for row in outside.rows("watch.window")]
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(outcome.series) == min(60, len(numbers))
            assert len(await scene.handle.query("told")) == 1
            assert len({event.first_run for event in outside.events}) == 1

    async def test_a_watch_that_nobody_started_ends_where_it_would_ask(self, client: Client) -> None:
        outside, queue = Outside(lasting=OPEN, baseline=OPEN), uuid.uuid4().hex
        async with (
            Worker(client, task_queue=queue, workflows=[KpiWatch], activities=[outside.record]),
            Worker(client, task_queue=f"{queue}-deploy", activities=[outside.measure]),
        ):
            name = f"deliver-notes-{uuid.uuid4().hex}-watch"
            outcome = await client.execute_workflow(
                "KpiWatch", request_of(), id=name, task_queue=queue, result_type=WatchOutcome
            )
        assert outcome.kind == "inconclusive"
        assert outcome.reason.endswith("nobody is there to be asked")

    @pytest.mark.parametrize(
        "request_value", [None, 7, "watch", {"case": "x"}, {**asdict(request_of()), "release": "seven"}]
    )
    async def test_a_start_that_is_no_watch_fails_typed_and_at_once(self, client: Client, request_value: Any) -> None:
        queue = uuid.uuid4().hex
        async with Worker(client, task_queue=queue, workflows=[KpiWatch]):
            with pytest.raises(WorkflowFailureError) as caught:
                await client.execute_workflow("KpiWatch", request_value, id=uuid.uuid4().hex, task_queue=queue)
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "InvalidInput"

    async def test_where_it_stands_can_be_asked(self, client: Client) -> None:
        outside = Outside(script=[arm()], lasting=arm())
        async with watching(client, outside) as scene:
            await scene.outcome()
            state = await client.get_workflow_handle(f"{scene.handle.id}-watch").query("state")
            assert (state["windows"], state["until"], state["asked"], state["verdict"]) == (4, 4, False, "pass")
