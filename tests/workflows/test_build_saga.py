"""Scenarios of a whole build, on a real Temporal server with a faked outside world."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError, CancelledError

from activities.models import CalledModel, CallModelInput
from activities.planning import CheckedPlan, CheckPlanInput
from tests.workflows.fakes import BASE, GREEN, RED, World, fits, refuse, unfit
from tests.workflows.running import SPEC, UNATTENDED, begin, build, failure_of, opened, serving


async def test_a_build_runs_its_tasks_in_order_each_on_the_last_ones_commit(client: Client) -> None:
    world = World()
    result = await build(client, world)
    assert result["status"] == "succeeded"
    assert result["commit"] == "api-1"
    assert [(move.old, move.new) for move in world.of("advance_head")] == [("c0", "store-1"), ("store-1", "api-1")]
    assert [run.base_ran for run in world.of("run_gates")] == [3, 3]
    assert world.events[-1].kind == "build.ended"


async def test_every_outward_step_has_its_undo_registered_before_it_acts_and_closed_at_the_end(client: Client) -> None:
    world = World()
    await build(client, world)
    watched = ("register_undo", "fetch_base", "take_place", "land_result", "release_build", "close_undo")
    order = [name for name, _ in world.done if name in watched]
    before = [
        "register_undo",
        "register_undo",
        "fetch_base",
        "take_place",
        "take_place",
        "register_undo",
        "land_result",
    ]
    assert order == [*before, "close_undo", "release_build", "close_undo", "close_undo"]
    assert [close.outcome for close in world.of("close_undo")] == ["final", "undone", "final"]


async def test_a_red_attempt_tells_the_next_one_what_was_wrong(client: Client) -> None:
    reports = iter([RED, GREEN, GREEN])
    world = World(gates=lambda _: next(reports))
    await build(client, world)
    first, second, third = world.of("render_change_prompt")
    assert (first.task, first.reason, first.report) == ("store", "", "")
    assert (second.task, second.reason, second.report, second.change) == ("store", RED.reason, "trimmed", "d")
    assert (third.task, third.reason) == ("api", "")
    assert [call.key.attempt for call in world.of("call_model")] == [1, 1, 2, 1]


async def test_a_refused_change_goes_back_with_its_reason(client: Client) -> None:
    def apply(request: Any) -> None:
        if request.task == "store" and request.attempt == 1:
            raise refuse("InvalidChange", "../x: leads out of the repository")

    world = World(apply=apply)
    await build(client, world)
    again = world.of("render_change_prompt")[1]
    assert (again.reason, again.change) == ("../x: leads out of the repository", "change-1")
    assert "change.refused" in world.kinds()


async def test_a_task_out_of_attempts_fails_the_build_and_leaves_nothing_behind(client: Client) -> None:
    world = World(gates=lambda request: RED if request.written else GREEN)
    error = await failure_of(client, world, UNATTENDED)
    assert error.type == "AttemptsExhausted"
    assert "task store: 3 attempts were not enough; 1 of 3 tests failed" in error.message
    assert len(world.of("forget_build")) == 1
    assert world.of("advance_head") == []
    assert world.of("land_result") == []
    assert [close.outcome for close in world.of("close_undo")] == ["undone", "undone"]
    assert world.events[-1].data["status"] == "failed"


async def test_a_red_base_is_refused_before_any_model_is_asked(client: Client) -> None:
    world = World(base=replace(BASE, usable=False, reason="1 test failed, and cannot be told by name"))
    error = await failure_of(client, world)
    assert error.type == "BaseIsRed"
    assert "cannot be told by name" in error.message
    assert world.of("call_model") == []
    assert len(world.of("forget_build")) == 1


async def test_an_unusable_plan_goes_back_with_its_problems_until_the_attempts_are_used_up(client: Client) -> None:
    def check(request: CheckPlanInput) -> CheckedPlan:
        return CheckedPlan(tasks=(), problems=("the plan has no task",))

    world = World(check=check)
    error = await failure_of(client, world)
    assert error.type == "InvalidPlan"
    assert [render.problems for render in world.of("render_plan_prompt")] == [
        (),
        ("the plan has no task",),
        ("the plan has no task",),
    ]


async def test_an_answer_that_does_not_fit_goes_back_once_to_the_same_model(client: Client) -> None:
    def model(call: CallModelInput) -> CalledModel:
        return unfit(call) if call.key.step == "plan" and call.key.turn == 1 else fits(call)

    world = World(model=model)
    await build(client, world)
    first, second = world.of("call_model")[:2]
    assert (first.model, first.prompt) == ("planner", "plan-prompt")
    assert (second.model, second.prompt, second.key.turn) == ("planner", "plan-prompt-again", 2)


async def test_when_a_model_fails_for_good_the_next_of_the_chain_is_asked(client: Client) -> None:
    def model(call: CallModelInput) -> CalledModel:
        if call.model == "coder":
            raise refuse("ProviderRefused", "the key is wrong")
        return fits(call)

    world = World(model=model)
    await build(client, world)
    asked = [(call.model, call.key.turn) for call in world.of("call_model") if call.key.step == "change"]
    assert asked == [("coder", 1), ("second", 2)] * 2
    failed = next(event for event in world.events if event.kind == "call.failed")
    assert failed.data["faults"][0]["kind"] == "ProviderRefused"


async def test_when_every_model_fails_the_build_says_which_and_why(client: Client) -> None:
    def model(call: CallModelInput) -> CalledModel:
        raise refuse("ProviderRefused", "the key is wrong")

    error = await failure_of(client, World(model=model))
    assert error.type == "ModelsExhausted"
    assert error.message.endswith("gave a usable answer: planner: the key is wrong")


async def test_a_stuck_tasks_packet_says_what_each_model_of_the_chain_failed_with(client: Client) -> None:
    def model(call: CallModelInput) -> CalledModel:
        if call.key.step == "change":
            raise refuse("ProviderRefused", f"the key of {call.model} is wrong")
        return fits(call)

    world, queue = World(model=model), uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(60):
        handle = await begin(client, queue)
        await opened(world, "task")
        await handle.signal("abort", {"by": "ann"})
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    tried = world.of("pack")[0].document["tried"]
    assert "coder: the key of coder is wrong; second: the key of second is wrong" in tried[-1]["outcome"]


@pytest.mark.parametrize(
    ("request_", "name", "kind"),
    [
        ({"spec": "  "}, "", "InvalidInput"),
        ({"specs": "x"}, "", "InvalidInput"),
        ("just text", "", "InvalidInput"),
        (["x"], "", "InvalidInput"),
        ({"spec": "x" * 70_000}, "", "TooLarge"),
        (SPEC, "a..b", "InvalidName"),
        (SPEC, "x.lock", "InvalidName"),
        (SPEC, "bad name", "InvalidName"),
        (SPEC, "-x", "InvalidName"),
    ],
)
async def test_a_mistyped_start_fails_typed_at_once_and_touches_nothing(
    client: Client, request_: Any, name: str, kind: str
) -> None:
    world = World()
    error = await failure_of(client, world, request_, name=name)
    assert error.type == kind
    assert world.done == []


async def test_an_unknown_project_ends_at_once_with_the_known_ones(client: Client) -> None:
    world = World()
    error = await failure_of(client, world, {"spec": "x", "project": "nowhere"})
    assert (error.type, error.message) == ("UnknownName", "unknown project 'nowhere'; known: notes")
    assert [name for name, _ in world.done] == ["admit_build"]


async def test_a_refused_landing_undoes_the_build(client: Client) -> None:
    def land(request: Any) -> None:
        raise refuse("BranchTaken", "mendwork/x exists")

    world = World(land=land)
    error = await failure_of(client, world)
    assert error.type == "BranchTaken"
    undone = [name for name, _ in world.done if name in ("retract_result", "forget_build")]
    assert undone == ["retract_result", "forget_build"]


async def test_what_cannot_be_undone_is_said(client: Client) -> None:
    def forget(request: Any) -> bool:
        raise refuse("RepositoryRefused", "the disk is gone")

    world = World(base=replace(BASE, usable=False), forget=forget)
    await failure_of(client, world)
    assert "could not be undone: forget_build: the disk is gone" in world.events[-1].data["sentence"]
    assert [close.outcome.partition(":")[0] for close in world.of("close_undo")] == ["undone", "failed"]


@pytest.mark.parametrize("stubborn", [False, True], ids=["the step stops", "the step ends well all the same"])
async def test_a_cancelled_build_waits_for_its_running_step_and_then_compensates(
    client: Client, stubborn: bool
) -> None:
    world = World(hold=asyncio.Event(), stubborn=stubborn)
    queue = uuid.uuid4().hex
    async with serving(client, world, queue):
        handle = await begin(client, queue)
        async with asyncio.timeout(90):
            await world.holding.wait()
            await handle.cancel()
            with pytest.raises(WorkflowFailureError) as caught:
                await handle.result()
    assert isinstance(caught.value.cause, CancelledError)
    names = [name for name, _ in world.done]
    assert names.index("call_stopped") < names.index("forget_build")
    assert "apply_change" not in names
    assert world.events[-1].data["status"] == "aborted"


async def test_the_state_query_tells_phase_and_tasks(client: Client) -> None:
    world = World(hold=asyncio.Event())
    queue = uuid.uuid4().hex
    async with serving(client, world, queue):
        handle = await begin(client, queue)
        async with asyncio.timeout(90):
            await world.holding.wait()
            state = await handle.query("state")
            assert world.hold is not None
            world.hold.set()
            await handle.result()
    tasks = {"store": "running", "api": "waiting"}
    assert state == {"phase": "tasks", "status": "running", "paused": False, "tasks": tasks}


@pytest.mark.parametrize("request_", [None, [], {"build": "b"}, {"task": 3}])
async def test_a_mistyped_task_fails_typed_at_once(client: Client, request_: Any) -> None:
    world = World()
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle: WorkflowHandle[Any, Any] = await client.start_workflow("TaskSaga", request_, id=queue, task_queue=queue)
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "InvalidInput"
    assert world.done == []
