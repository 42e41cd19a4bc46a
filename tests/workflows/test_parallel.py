"""Scenarios of tasks side by side: places, locks, merges, what is sent back, what is left out."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.client import Client

from activities.models import CalledModel, CallModelInput
from activities.planning import CheckedPlan, TaskBrief
from activities.repository.merging import RebasedCommit, RebaseInput
from domain.build.project import Limits
from tests.workflows.fakes import GREEN, RED, World, fits, refuse
from tests.workflows.running import SPEC, UNATTENDED, begin, build, failure_of, opened, serving, until


def plan(*tasks: TaskBrief) -> Any:
    return lambda _: CheckedPlan(tasks=tasks, problems=())


def task(name: str, *depends_on: str, files: tuple[str, ...] = ()) -> TaskBrief:
    return TaskBrief(id=name, title=name, depends_on=depends_on, files=files or (f"{name}.py",))


def conflicting(request: RebaseInput) -> RebasedCommit:
    return RebasedCommit(commit="", conflicts=("app.py",), report="both sides")


def tasks_of(world: World, name: str) -> list[str]:
    return [request.task for request in world.of(name)]


def kinds_of(world: World, name: str) -> list[str]:
    return [event.kind for event in world.events if event.task == name]


async def test_tasks_without_dependencies_run_at_the_same_time_up_to_the_limit(client: Client) -> None:
    world = World(hold=asyncio.Event(), limits=Limits(parallel=2))
    world.check = plan(task("a"), task("b"), task("c"))
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue)
        await until(lambda: len([c for c in world.of("call_model") if c.key.step == "change"]) == 2)
        state = await handle.query("state")
        assert world.hold is not None
        world.hold.set()
        result = await handle.result()
    assert state["tasks"] == {"a": "running", "b": "running", "c": "waiting"}
    assert result["status"] == "succeeded"


async def test_a_second_merge_is_brought_on_top_of_the_first_and_gated_again(client: Client) -> None:
    world = World(check=plan(task("a"), task("b")))
    result = await build(client, world)
    (rebased,) = world.of("rebase_commits")
    first = rebased.onto
    assert {first, rebased.head} == {"a-1", "b-1"}
    assert rebased.base == "c0"
    assert result["commit"] == f"{rebased.head}@{first}"
    assert [run.label.split("/")[1] for run in world.of("run_gates")].count("merge") == 1
    assert [(m.old, m.new) for m in world.of("advance_head")] == [("c0", first), (first, result["commit"])]


async def test_a_conflict_sends_the_task_back_on_top_of_the_newer_state_with_both_sides(client: Client) -> None:
    tries = iter([conflicting])
    world = World(check=plan(task("a"), task("b")))
    world.rebase = lambda request: next(tries, lambda r: RebasedCommit(commit="merged", diff="d"))(request)
    result = await build(client, world)
    loser = world.of("rebase_commits")[0].head.partition("-")[0]
    again = [render for render in world.of("render_change_prompt") if render.task == loser][1]
    assert again.base == world.of("rebase_commits")[0].onto
    assert "conflicts in app.py" in again.reason
    assert (again.report, again.change) == ("both sides", "d")
    assert result["status"] == "succeeded"
    assert [call.key.attempt for call in world.of("call_model") if f"task-{loser}" in call.key.saga] == [1, 2]


async def test_tests_that_are_red_after_a_merge_send_the_task_back(client: Client) -> None:
    world = World(check=plan(task("a"), task("b")))
    merged: list[str] = []

    def gates(request: Any) -> Any:
        if "/merge/" in request.label and not merged:
            merged.append(request.label)
            return RED
        return GREEN

    world.gates = gates
    result = await build(client, world)
    sent = next(event for event in world.events if event.kind == "task.sent_back")
    assert sent.data["why"] == "red"
    assert "together with what was merged meanwhile the tests are red: 1 of 3 tests failed" in sent.data["sentence"]
    assert result["status"] == "succeeded"


async def test_a_task_that_is_sent_back_too_often_becomes_a_question_and_unattended_is_left_out(client: Client) -> None:
    world = World(check=plan(task("a"), task("b"), task("c", "a", "b")), rebase=conflicting)
    world.limits = Limits(sent_back=0)
    result = await build(client, world, UNATTENDED)
    assert result["status"] == "partial"
    assert len(result["tasks"]) == 1
    loser = next(name for name in ("a", "b") if name not in result["tasks"])
    assert result["missing"] == [loser, "c"]
    sent = [event.data["times"] for event in world.events if event.kind == "task.sent_back"]
    assert sent == [1]
    ended = world.events[-1]
    assert ended.data["status"] == "partial"
    assert f"without {loser} (sent back more than 0 times" in ended.data["sentence"]
    assert "it depends on" in ended.data["sentence"]


@pytest.mark.parametrize("why", ["conflict", "red"])
async def test_what_came_back_twice_is_asked_about_the_third_time(client: Client, why: str) -> None:
    world = World(
        check=plan(*(task(name) for name in "abcdefgh")), limits=Limits(parallel=8)
    )  # one merges, all others meet it
    if why == "conflict":
        world.rebase = conflicting
    else:
        world.gates = lambda request: RED if "/merge/" in request.label else GREEN
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue)
        ask = await opened(world, "task")
        await handle.signal("abort", {"by": "ann", "reason": "seen"})
        with pytest.raises(Exception, match="failed"):
            await handle.result()
    asked = next(event.task for event in world.events if event.kind == "task.sent_back" and event.data["times"] == 3)
    sent = [event.data for event in world.events if event.kind == "task.sent_back" and event.task == asked]
    assert [(data["times"], data["why"]) for data in sent] == [(1, why), (2, why), (3, why)]
    assert "sent back more than 2 times" in ask["sentence"]


async def test_one_task_that_fails_never_stops_its_siblings(client: Client) -> None:
    def model(call: CallModelInput) -> CalledModel:
        if "-task-a" in call.key.saga:
            raise refuse("ProviderRefused", "no")
        return fits(call)

    world = World(check=plan(task("a"), task("b"), task("c", "a"), task("d", "b")), model=model)
    result = await build(client, world, UNATTENDED)
    assert (result["status"], result["tasks"], result["missing"]) == ("partial", ["b", "d"], ["a", "c"])
    assert world.of("land_result")[0].commit == result["commit"]


async def test_nothing_merged_at_all_is_a_failure_with_the_first_reason(client: Client) -> None:
    world = World(check=plan(task("a"), task("b")), gates=lambda r: RED if r.written else GREEN)
    error = await failure_of(client, world, UNATTENDED)
    assert error.type == "AttemptsExhausted"
    assert error.message.startswith("task a: 3 attempts were not enough")
    assert world.of("land_result") == []


async def test_tasks_that_declare_the_same_file_do_not_run_at_the_same_time(client: Client) -> None:
    world = World(check=plan(task("a", files=("app.py",)), task("b", files=("app.py",))))
    result = await build(client, world)
    assert world.of("rebase_commits") == []
    assert result["commit"] == "b-1"
    assert [render.base for render in world.of("render_change_prompt")] == ["c0", "a-1"]


async def test_a_task_that_touches_what_a_running_sibling_declared_waits_for_its_merge(client: Client) -> None:
    world = World(check=plan(task("a"), task("b")), hold=asyncio.Event())
    world.held = lambda call: "-task-a" in call.key.saga
    world.touch = lambda request: (f"{request.task}.py", "a.py")
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue)
        await until(lambda: "task.waits" in world.kinds())
        assert world.of("advance_head") == []
        assert world.hold is not None
        world.hold.set()
        await handle.result()
    assert [move.new for move in world.of("advance_head")] == ["a-1", "b-1@a-1"]


async def test_a_place_is_taken_before_the_first_call_and_given_back_whatever_happens(client: Client) -> None:
    world = World(check=plan(task("a"), task("b")))
    world.gates = lambda r: RED if "-task-a" in r.label else GREEN
    await build(client, world, UNATTENDED)
    taken, given = world.of("take_place"), world.of("give_place")
    assert sorted(p.holder for p in taken) == sorted(p.holder for p in given)
    assert {p.limit for p in taken} == {8}


async def test_a_retried_task_waits_for_a_place_like_every_other(client: Client) -> None:
    world = World(check=plan(task("a"), task("b")), hold=asyncio.Event(), limits=Limits(parallel=1, attempts=1))
    world.held = lambda call: "-task-b" in call.key.saga
    world.gates = lambda r: RED if "-task-a/gates/1" in r.label else GREEN
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue)
        await opened(world, "task")
        await world.holding.wait()
        await handle.execute_update("answer", {"choice": "retry", "by": "ann"})
        await until(lambda: "ask.closed" in world.kinds())
        state = await handle.query("state")
        assert world.hold is not None
        world.hold.set()
        result = await handle.result()
    assert state["tasks"] == {"a": "waiting", "b": "running"}
    assert result["status"] == "succeeded"


async def test_siblings_that_run_are_stopped_before_compensation_starts(client: Client) -> None:
    world = World(check=plan(task("a"), task("b")), hold=asyncio.Event())
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue)
        await until(lambda: len([c for c in world.of("call_model") if c.key.step == "change"]) == 2)
        await handle.signal("abort", {"by": "ann", "reason": "wrong spec"})
        with pytest.raises(Exception, match="failed"):
            await handle.result()
    names = [name for name, _ in world.done]
    assert names.count("call_stopped") == 2
    assert max(i for i, name in enumerate(names) if name == "call_stopped") < names.index("release_build")
    assert max(i for i, name in enumerate(names) if name == "give_place") < names.index("release_build")
    assert world.events[-1].data["status"] == "aborted"
    assert world.events[-1].data["sentence"] == "ann ended the build: wrong spec"


async def test_a_long_history_drains_and_goes_on_in_a_new_run(client: Client) -> None:
    many = tuple(task(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(8))
    world = World(check=plan(*many), limits=Limits(history_events=120))
    result = await build(client, world, SPEC)
    assert result["status"] == "succeeded"
    assert [move.new for move in world.of("advance_head")] == [f"t{n}-1" for n in range(8)]
    assert len({event.run for event in world.events if not event.task}) > 1
    assert "build.continued" in world.kinds()
    assert len([c for c in world.of("call_model") if c.key.step == "plan"]) == 1
    by_run: dict[str, list[int]] = {}
    for event in world.events:
        by_run.setdefault(event.run, []).append(event.sequence)
    assert all(sorted(numbers) == list(range(1, len(numbers) + 1)) for numbers in by_run.values())
    assert len({event.first_run for event in world.events if event.kind.startswith("build.")}) == 1
