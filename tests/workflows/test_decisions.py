"""Scenarios of people: questions, approvals and what they say in between, on a real Temporal server."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from activities.models import CalledModel, CallModelInput
from activities.planning import AdoptedPlan, CheckedPlan, TaskBrief
from domain.build.project import Consent, Limits
from tests.workflows.fakes import GREEN, RED, World, fits, refuse
from tests.workflows.running import SPEC, begin, opened, serving, until

APPROVE = Consent(approve=("change",), review=False)


@asynccontextmanager
async def running(client: Client, world: World, request: Any = None) -> AsyncIterator[WorkflowHandle[Any, Any]]:
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        yield await begin(client, queue, request)


async def failure(handle: WorkflowHandle[Any, Any]) -> ApplicationError:
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


def red_until(world: World, attempt: int) -> None:
    """The task store is red before that attempt."""

    def gates(request: Any) -> Any:
        number = int(request.label.rpartition("/")[2])
        return RED if "-task-store/" in request.label and number < attempt else GREEN

    world.gates = gates


class TestQuestions:
    async def test_a_stuck_task_asks_and_a_retry_carries_the_hint_on_new_attempt_numbers(self, client: Client) -> None:
        world = World(limits=Limits(attempts=2))
        red_until(world, 4)
        async with running(client, world) as handle:
            asked = await opened(world, "task")
            said = {"choice": "retry", "reason": "use a list", "by": "ann"}
            ruling = await handle.execute_update("answer", {**said, "ask": asked["id"]})
            result = await handle.result()
        assert ruling["outcome"] == "accepted"
        assert result["status"] == "succeeded"
        store = [render for render in world.of("render_change_prompt") if render.task == "store"]
        assert store[2].reason.endswith("A person says: use a list")
        numbers = [c.key.attempt for c in world.of("call_model") if "-task-store" in c.key.saga]
        assert numbers == [1, 2, 3, 4]
        packet = world.of("pack")[0].document
        assert packet["kind"] == "AttemptsExhausted"
        assert packet["tried"][0]["outcome"].startswith("2 attempts were not enough")
        closed = next(event.data for event in world.events if event.kind == "ask.closed")
        assert (closed["choice"], closed["by"], closed["reason"]) == ("retry", "ann", "use a list")

    async def test_siblings_finish_while_a_question_waits_and_dependents_pause(self, client: Client) -> None:
        tasks = tuple(
            TaskBrief(id=name, title=name, depends_on=needs, files=(name,))
            for name, needs in (("store", ()), ("api", ("store",)), ("docs", ()))
        )
        world = World(check=lambda _: CheckedPlan(tasks=tasks, problems=()), limits=Limits(attempts=1))
        red_until(world, 2)
        async with running(client, world) as handle:
            await opened(world, "task")
            await until(lambda: any(e.kind == "task.merged" and e.task == "docs" for e in world.events))
            state = await handle.query("state")
            await handle.signal("answer", {"choice": "retry"})
            result = await handle.result()
        assert state["tasks"] == {"store": "asking", "api": "waiting", "docs": "merged"}
        assert result["status"] == "succeeded"

    async def test_skipping_leaves_the_task_and_its_dependents_out(self, client: Client) -> None:
        world = World(gates=lambda r: RED if "-task-api" in r.label else GREEN)
        async with running(client, world) as handle:
            await opened(world, "task")
            await handle.signal("answer", {"choice": "skip", "by": "ann"})
            result = await handle.result()
        assert (result["status"], result["missing"]) == ("partial", ["api"])

    async def test_a_commit_by_hand_is_gated_and_becomes_the_result(self, client: Client) -> None:
        world = World(limits=Limits(attempts=1))
        world.gates = lambda r: RED if "-task-store" in r.label else GREEN
        async with running(client, world) as handle:
            await opened(world, "task")
            await handle.signal("answer", {"choice": "take", "commit": "fix-store", "by": "ann"})
            result = await handle.result()
        assert result["tasks"] == ["store", "api"]
        gated = [run for run in world.of("run_gates") if "/merge/store" in run.label]
        assert [run.base_ran for run in gated] == [3]
        assert any(event.kind == "build.taken" for event in world.events)

    async def test_a_commit_by_hand_that_is_red_or_unknown_asks_again(self, client: Client) -> None:
        world = World(limits=Limits(attempts=1))
        world.gates = lambda r: RED if "-task-store" in r.label or "/merge/" in r.label else GREEN

        def take(request: Any) -> Any:
            raise refuse("InvalidInput", "there is no branch 'nowhere'; there are: main")

        good, world.take = world.take, take
        async with running(client, world) as handle:
            await opened(world, "task")
            await handle.signal("answer", {"choice": "take", "commit": "nowhere"})
            second = await opened(world, "task", number=2)
            world.take = good
            await handle.signal("answer", {"choice": "take", "commit": "red-one"})
            third = await opened(world, "task", number=3)
            await handle.signal("answer", {"choice": "abort", "by": "ann", "reason": "enough"})
            error = await failure(handle)
        assert "there is no branch 'nowhere'" in second["sentence"]
        assert "the commit red-one was not accepted" in third["sentence"]
        assert error.type == "Aborted"
        assert "ann ended the build at task store: enough" in error.message

    async def test_a_task_out_of_budget_asks_and_a_raised_limit_lets_it_go_on(self, client: Client) -> None:
        def model(call: CallModelInput) -> CalledModel:
            if call.key.step == "change" and call.budget.task == 2_000_000:
                raise refuse("BudgetExhausted", "task store: the limit of $2.00 is reached")
            return fits(call)

        world = World(model=model)
        async with running(client, world) as handle:
            asked = await opened(world, "task")
            await handle.execute_update("answer", {"choice": "raise", "task_budget": 3.5})
            result = await handle.result()
        assert "the limit of $2.00 is reached" in asked["sentence"]
        assert result["status"] == "succeeded"
        budgets = {call.budget.task for call in world.of("call_model") if call.key.step == "change"}
        assert budgets == {2_000_000, 3_500_000}

    async def test_an_unexplained_bill_stops_the_whole_build(self, client: Client) -> None:
        def model(call: CallModelInput) -> CalledModel:
            if call.key.step == "change":
                raise refuse("Overbilled", "charged $9, at most $1 was possible")
            return fits(call)

        world = World(model=model)
        async with running(client, world) as handle:
            error = await failure(handle)
        assert error.type == "Overbilled"
        assert len(world.of("forget_build")) == 1

    async def test_what_is_malformed_is_refused_with_a_row_and_the_question_stays(self, client: Client) -> None:
        world = World(limits=Limits(attempts=1))
        red_until(world, 2)
        async with running(client, world) as handle:
            await opened(world, "task")
            for raw in (None, "yes", {"choice": "maybe"}, {"choice": "take"}, {"colour": "red"}, {"choice": 3}):
                await handle.signal("answer", raw)
            await until(lambda: world.kinds().count("answer.refused") == 6)
            await handle.signal("answer", {"choice": "retry"})
            result = await handle.result()
        assert result["status"] == "succeeded"
        reasons = [event.data["reason"] for event in world.events if event.kind == "answer.refused"]
        assert (
            "unknown choice 'maybe'; known: allow, retry, raise, skip, take, abort, promote, extend, roll_back"
            in reasons
        )
        assert any("taking over needs a commit" in reason for reason in reasons)


class TestApproval:
    async def test_the_change_lands_only_after_its_digest_was_approved(self, client: Client) -> None:
        world = World(consent=APPROVE)
        async with running(client, world) as handle:
            asked = await opened(world, "change")
            assert world.of("land_result") == []
            pending = await handle.query("pending")
            ruling = await handle.execute_update("approve", {"digest": asked["digest"][:8], "by": "ann"})
            result = await handle.result()
        assert ruling["outcome"] == "accepted"
        assert result["status"] == "succeeded"
        assert pending[0]["how"]["approve"].endswith(asked["digest"][:12])
        packed = world.of("pack")[0]
        assert (packed.base, packed.commit) == ("c0", "api-1")
        assert packed.document["spent"]["settled"] == 42

    async def test_a_digest_of_less_than_eight_digits_is_malformed_and_another_one_is_stale(
        self, client: Client
    ) -> None:
        world = World(consent=APPROVE)
        async with running(client, world) as handle:
            asked = await opened(world, "change")
            with pytest.raises(WorkflowUpdateFailedError):
                await handle.execute_update("approve", {"digest": asked["digest"][:7]})
            stale = await handle.execute_update("approve", {"digest": "0" * 12})
            await handle.signal("approve", {"digest": asked["digest"]})
            await handle.result()
        assert stale["outcome"] == "refused"
        assert stale["reason"].startswith("stale: nothing with the digest 000000000000 waits")
        assert asked["digest"][:12] in stale["reason"]

    async def test_an_approval_that_comes_twice_counts_once_and_the_second_is_told_so(self, client: Client) -> None:
        world = World(consent=APPROVE, hold=asyncio.Event())
        world.held = lambda call: False
        async with running(client, world) as handle:
            asked = await opened(world, "change")
            said = {"digest": asked["digest"], "by": "ann"}
            first, second = await asyncio.gather(
                handle.execute_update("approve", said), handle.execute_update("approve", said)
            )
            await handle.result()
        assert sorted([first["outcome"], second["outcome"]]) == ["accepted", "refused"]
        assert any("duplicate" in r["reason"] for r in (first, second))
        assert len(world.of("land_result")) == 1

    async def test_when_approval_and_rejection_race_the_first_wins_and_the_other_is_told(self, client: Client) -> None:
        world = World(consent=APPROVE)
        async with running(client, world) as handle:
            asked = await opened(world, "change")
            approved, rejected = await asyncio.gather(
                handle.execute_update("approve", {"digest": asked["digest"], "by": "ann"}),
                handle.execute_update("reject", {"digest": asked["digest"], "reason": "no", "by": "bob"}),
            )
            if rejected["outcome"] == "accepted":
                again = await opened(world, "change", number=2)
                await handle.signal("approve", {"digest": again["digest"]})
            await handle.result()
        assert sorted([approved["outcome"], rejected["outcome"]]) == ["accepted", "refused"]
        late = rejected if approved["outcome"] == "accepted" else approved
        assert late["reason"].startswith("already decided: ")

    async def test_an_approval_before_the_question_counts_when_the_digest_is_asked_for(self, client: Client) -> None:
        first, queue = World(consent=APPROVE), uuid.uuid4().hex
        name = f"build-notes-{uuid.uuid4().hex}"
        async with serving(client, first, queue), asyncio.timeout(90):
            handle = await begin(client, queue, name=name)
            digest = (await opened(first, "change"))["digest"]
            await handle.signal("abort")
            with pytest.raises(WorkflowFailureError):
                await handle.result()
        # The packet of the same change of the same build has the same digest: said before it is asked.
        world, queue = World(consent=APPROVE, hold=asyncio.Event()), uuid.uuid4().hex
        async with serving(client, world, queue), asyncio.timeout(90):
            handle = await begin(client, queue, name=name)
            await world.holding.wait()
            early = await handle.execute_update("approve", {"digest": digest, "by": "ann"})
            assert world.hold is not None
            world.hold.set()
            result = await handle.result()
        assert early["outcome"] == "early"
        assert result["status"] == "succeeded"

    async def test_a_rejection_goes_back_into_planning_and_the_old_digest_is_worth_nothing(
        self, client: Client
    ) -> None:
        world = World(consent=APPROVE)
        async with running(client, world) as handle:
            asked = await opened(world, "change")
            await handle.execute_update("reject", {"digest": asked["digest"], "reason": "too clever", "by": "bob"})
            again = await opened(world, "change", number=2)
            stale = await handle.execute_update("approve", {"digest": asked["digest"]})
            await handle.execute_update("approve", {"digest": again["digest"]})
            result = await handle.result()
        assert stale["outcome"] == "refused"
        assert asked["digest"] != again["digest"]
        assert "bob rejected the change as it is now: too clever" in world.of("render_plan_prompt")[1].problems[0]
        attempts = [c.key.attempt for c in world.of("call_model") if "-task-store" in c.key.saga]
        assert attempts == [1, 2]
        assert result["commit"] == "api-2"

    async def test_a_rejection_without_a_reason_is_refused(self, client: Client) -> None:
        world = World(consent=APPROVE)
        async with running(client, world) as handle:
            asked = await opened(world, "change")
            ruling = await handle.execute_update("reject", {"digest": asked["digest"]})
            await handle.signal("approve", {"digest": asked["digest"]})
            await handle.result()
        assert ruling["outcome"] == "refused"
        assert "needs a reason" in ruling["reason"]

    async def test_an_approval_that_came_too_late_while_no_worker_ran_is_no_approval(self, client: Client) -> None:
        world = World(consent=Consent(approve=("change",), review=False, approval_seconds=15.0))
        queue = uuid.uuid4().hex
        async with asyncio.timeout(90):
            async with serving(client, world, queue):
                handle = await begin(client, queue)
                asked = await opened(world, "change")
            assert time.time() * 1000 < asked["deadline"], "the worker was to be gone before"
            await until(lambda: time.time() * 1000 > asked["deadline"])
            await handle.signal("approve", {"digest": asked["digest"], "by": "ann"})
            async with serving(client, world, queue):
                error = await failure(handle)
        assert error.type == "Escalated"
        assert world.of("land_result") == []
        refused = next(event.data for event in world.events if event.kind == "answer.refused")
        assert refused["reason"].startswith("expired")

    async def test_an_abort_in_the_same_instant_as_the_approval_wins(self, client: Client) -> None:
        world = World(consent=APPROVE)
        queue = uuid.uuid4().hex
        async with asyncio.timeout(90):
            async with serving(client, world, queue):
                handle = await begin(client, queue)
                digest = (await opened(world, "change"))["digest"]
            # No worker is there: both arrive in one workflow task.
            await handle.signal("approve", {"digest": digest})
            await handle.signal("abort", {"by": "ann"})
            async with serving(client, world, queue):
                error = await failure(handle)
        assert error.type == "Aborted"
        assert world.of("land_result") == []
        assert len(world.of("forget_build")) == 1

    async def test_approvals_given_beforehand_are_not_asked_for(self, client: Client) -> None:
        world = World(consent=APPROVE)
        async with running(client, world, {**SPEC, "approved": ["change"]}) as handle:
            await handle.result()
        assert "ask.opened" not in world.kinds()

    async def test_a_partial_change_says_what_is_missing_and_is_approved_as_such(self, client: Client) -> None:
        world = World(consent=APPROVE, gates=lambda r: RED if "-task-api" in r.label else GREEN)
        async with running(client, world, {**SPEC, "unattended": True}) as handle:
            asked = await opened(world, "change")
            await handle.signal("approve", {"digest": asked["digest"]})
            result = await handle.result()
        assert asked["sentence"].startswith("partial, without api; ")
        assert world.of("pack")[0].document["missing"][0]["task"] == "api"
        assert result["status"] == "partial"

    async def test_a_full_history_carries_what_waits_into_the_next_run(self, client: Client) -> None:
        world = World(consent=APPROVE, limits=Limits(history_events=60))
        async with running(client, world) as handle:
            asked = await opened(world, "change")
            await handle.signal("approve", {"digest": asked["digest"]})
            result = await client.get_workflow_handle(handle.id).result()
        assert result["status"] == "succeeded"
        assert "build.continued" in world.kinds()


class TestThePlan:
    async def test_a_plan_waits_for_its_approval_where_the_project_asks_for_it(self, client: Client) -> None:
        world = World(consent=Consent(approve=("plan",), review=False))
        world.model = lambda call: (
            fits(call)
            if call.key.step != "plan"
            else CalledModel(
                model="planner", answer="raw", value="a" * 64, problems=(), usage=fits(call).usage, faults=()
            )
        )
        async with running(client, world) as handle:
            asked = await opened(world, "plan")
            assert asked["digest"] == "a" * 64
            assert [c.key.step for c in world.of("call_model")] == ["plan"]
            await handle.signal("approve", {"digest": "a" * 8})
            result = await handle.result()
        assert result["status"] == "succeeded"

    async def test_an_edited_plan_replaces_it_and_needs_its_own_approval(self, client: Client) -> None:
        world = World(consent=Consent(approve=("plan",), review=False))
        world.model = lambda call: (
            fits(call)
            if call.key.step != "plan"
            else CalledModel(
                model="planner", answer="raw", value="a" * 64, problems=(), usage=fits(call).usage, faults=()
            )
        )
        async with running(client, world) as handle:
            await opened(world, "plan")
            ruling = await handle.execute_update("edit_plan", {"plan": {"summary": "s", "tasks": []}, "by": "ann"})
            second = await opened(world, "plan", number=2)
            stale = await handle.execute_update("approve", {"digest": "a" * 64})
            await handle.signal("approve", {"digest": second["digest"]})
            result = await handle.result()
        assert ruling["outcome"] == "accepted"
        assert second["digest"] == "e" * 64
        assert "stale" in stale["reason"]
        assert result["status"] == "succeeded"

    async def test_an_edited_plan_that_cannot_be_run_changes_nothing(self, client: Client) -> None:
        world = World(consent=Consent(approve=("plan",), review=False))
        world.adopt = lambda _: AdoptedPlan(plan="", tasks=(), problems=("the plan has no task",))
        async with running(client, world) as handle:
            asked = await opened(world, "plan")
            ruling = await handle.execute_update("edit_plan", {"plan": {"tasks": []}})
            await handle.signal("abort")
            await failure(handle)
        assert ruling == {"outcome": "refused", "reason": "the plan cannot be run: the plan has no task", "ask": ""}
        assert asked["digest"] == "plan-1"

    async def test_without_a_waiting_plan_there_is_nothing_to_edit(self, client: Client) -> None:
        world = World(consent=APPROVE)
        async with running(client, world) as handle:
            asked = await opened(world, "change")
            ruling = await handle.execute_update("edit_plan", {"plan": {}})
            await handle.signal("approve", {"digest": asked["digest"]})
            await handle.result()
        assert ruling["reason"] == "no plan waits for its approval"


class TestInBetween:
    async def test_a_pause_lets_running_calls_end_and_starts_nothing_new(self, client: Client) -> None:
        world = World(hold=asyncio.Event())
        async with running(client, world) as handle:
            await world.holding.wait()
            await handle.execute_update("pause", {"by": "ann"})
            assert world.hold is not None
            world.hold.set()
            await until(lambda: any(e.kind == "gates.ran" and e.task == "store" for e in world.events))
            state = await handle.query("state")
            calls = len(world.of("call_model"))
            await handle.execute_update("resume_now", {"by": "ann"})
            result = await handle.result()
        assert (state["paused"], calls) == (True, 2)
        assert result["status"] == "succeeded"
        assert [k for k in world.kinds() if k in ("build.paused", "build.resumed")] == ["build.paused", "build.resumed"]

    @pytest.mark.parametrize("kind", ["Busy", "StoreUnavailable"])
    async def test_what_passes_by_itself_is_waited_for_and_resume_now_ends_the_wait(
        self, client: Client, kind: str
    ) -> None:
        busy = [True]

        def model(call: CallModelInput) -> CalledModel:
            if call.key.step == "plan" and busy:
                raise refuse(kind, "all of the budget is held by running calls")
            return fits(call)

        world = World(model=model)
        async with running(client, world) as handle:
            await until(lambda: world.of("call_model"))
            busy.clear()
            await handle.execute_update("resume_now", {})
            result = await handle.result()
        assert result["status"] == "succeeded"
        assert {c.key.turn for c in world.of("call_model") if c.key.step == "plan"} == {1}

    async def test_raised_limits_reach_the_calls_that_come(self, client: Client) -> None:
        world = World(hold=asyncio.Event())
        async with running(client, world) as handle:
            await world.holding.wait()
            ruling = await handle.execute_update("raise_limits", {"task_budget": 7, "build_budget": 1, "by": "ann"})
            refused = await handle.execute_update("raise_limits", {"by": "ann"})
            assert world.hold is not None
            world.hold.set()
            await handle.result()
        assert ruling["outcome"] == "accepted"
        assert "name a limit to raise" in refused["reason"]
        last = world.of("call_model")[-1].budget
        assert (last.task, last.build) == (7_000_000, 10_000_000)

    async def test_an_abort_stops_a_waiting_build_at_once_and_undoes_it(self, client: Client) -> None:
        world = World(consent=APPROVE)
        async with running(client, world) as handle:
            await opened(world, "change")
            ruling = await handle.execute_update("abort", {"by": "ann", "reason": "not needed"})
            error = await failure(handle)
        assert ruling["outcome"] == "accepted"
        assert (error.type, error.message) == ("Aborted", "ann ended the build: not needed")
        assert [name for name, _ in world.done if name in ("release_build", "forget_build")] == [
            "release_build",
            "forget_build",
        ]

    async def test_two_restarts_of_the_worker_keep_the_question_and_its_answer(self, client: Client) -> None:
        world = World(consent=APPROVE)
        queue = uuid.uuid4().hex
        async with asyncio.timeout(90):
            async with serving(client, world, queue):
                handle = await begin(client, queue)
                digest = (await opened(world, "change"))["digest"]
            async with serving(client, world, queue):
                assert (await handle.query("pending"))[0]["digest"] == digest
            await handle.signal("approve", {"digest": digest})
            async with serving(client, world, queue):
                result = await handle.result()
        assert result["status"] == "succeeded"
