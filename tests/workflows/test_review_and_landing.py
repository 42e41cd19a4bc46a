"""Scenarios after the merges: a second model's findings, the target branch, what is left to a person."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from temporalio.client import Client

from activities.models import CalledModel, CallModelInput
from activities.repository.merging import RebasedCommit
from activities.reviewing import CheckedReview, FoundHigh
from domain.build.project import Consent
from tests.workflows.fakes import CLEAN, GREEN, RED, World, fits, refuse
from tests.workflows.running import SPEC, UNATTENDED, begin, build, failure_of, opened, serving

REVIEWED = Consent(approve=(), review=True)
ONTO_TARGET = Consent(approve=(), review=False, land="target")
HIGH = replace(CLEAN, high=(FoundHigh(task="store", sentence="store.py:3: loses data", report="told"),))


def reviews(*answers: CheckedReview) -> Any:
    left: Iterator[CheckedReview] = iter(answers)
    return lambda _: next(left, CLEAN)


async def test_another_model_than_the_writer_reviews_and_its_counts_are_recorded(client: Client) -> None:
    world = World(consent=REVIEWED, validation=("coder", "reviewer"))
    await build(client, world)
    call = next(c for c in world.of("call_model") if c.key.step == "review")
    assert (call.model, call.schema_name, call.payer.role) == ("reviewer", "Review", "validation")
    ended = next(event.data for event in world.events if event.kind == "review.ended")
    assert (ended["weak"], ended["high"], ended["low"], ended["model"]) == (False, 0, 1, "reviewer")


async def test_the_writer_itself_may_review_and_the_review_is_marked_as_weak(client: Client) -> None:
    world = World(consent=REVIEWED, validation=("coder",))
    await build(client, world)
    assert next(event.data for event in world.events if event.kind == "review.ended")["weak"] is True


async def test_high_findings_go_back_to_their_task_and_the_mended_change_is_reviewed_again(client: Client) -> None:
    world = World(consent=REVIEWED, review=reviews(HIGH))
    result = await build(client, world)
    again = [render for render in world.of("render_change_prompt") if render.task == "store"][1]
    assert (again.base, again.report) == ("api-1", "told")
    assert again.reason == "the review of the merged change found: store.py:3: loses data"
    assert [c.key.attempt for c in world.of("call_model") if c.key.step == "review"] == [1, 2]
    assert result["commit"] == "store-2"


async def test_findings_that_stay_go_back_twice_and_then_to_a_person(client: Client) -> None:
    world = World(consent=REVIEWED, review=reviews(HIGH, HIGH, HIGH))
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue)
        asked = await opened(world, "review")
        await handle.signal("answer", {"choice": "skip", "by": "ann"})
        result = await handle.result()
    assert "store: store.py:3: loses data" in asked["sentence"]
    assert result["status"] == "succeeded"
    assert [e.data["why"] for e in world.events if e.kind == "task.sent_back"] == ["finding", "finding"]


async def test_a_review_that_nobody_can_give_is_a_question_not_a_dead_end(client: Client) -> None:
    broken = [True]

    def model(call: CallModelInput) -> CalledModel:
        if call.key.step == "review" and broken:
            raise refuse("ProviderRefused", "no such model")
        return fits(call)

    world = World(consent=REVIEWED, model=model)
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue)
        asked = await opened(world, "review")
        broken.clear()
        await handle.signal("answer", {"choice": "retry"})
        result = await handle.result()
    assert "could not be reviewed" in asked["sentence"]
    assert result["status"] == "succeeded"


async def test_an_unattended_build_goes_on_without_a_review_that_nobody_can_give(client: Client) -> None:
    def model(call: CallModelInput) -> CalledModel:
        if call.key.step == "review":
            raise refuse("ProviderRefused", "no such model")
        return fits(call)

    result = await build(client, World(consent=REVIEWED, model=model), UNATTENDED)
    assert result["status"] == "succeeded"


async def test_the_target_is_forwarded_when_it_has_not_moved(client: Client) -> None:
    world = World(consent=ONTO_TARGET)
    await build(client, world)
    (forward,) = world.of("forward_target")
    assert (forward.old, forward.new) == ("c0", "api-1")
    assert world.of("rebase_commits") == []
    order = [name for name, _ in world.done if name in ("register_undo", "forward_target", "land_result")]
    assert order[-4:] == ["register_undo", "forward_target", "register_undo", "land_result"]


async def test_a_target_that_moved_is_caught_up_with_and_gated_again(client: Client) -> None:
    world = World(consent=ONTO_TARGET, target=lambda: "c9")
    result = await build(client, world)
    (rebased,) = world.of("rebase_commits")
    assert (rebased.onto, rebased.base, rebased.head) == ("c9", "c0", "api-1")
    assert [run.commit for run in world.of("run_gates") if "/landing/" in run.label] == ["api-1@c9"]
    (forward,) = world.of("forward_target")
    assert (forward.old, forward.new) == ("c9", "api-1@c9")
    assert world.of("land_result")[0].base == "c9"
    assert result["commit"] == "api-1@c9"


async def test_a_target_that_moves_while_the_result_is_tested_is_caught_up_with_again(client: Client) -> None:
    targets = iter(["c0", "c5", "c5"])
    overtaken = [True]

    def forward(request: Any) -> None:
        if overtaken:
            overtaken.clear()
            raise refuse("Overtaken", "main is at c5 now")

    world = World(consent=ONTO_TARGET, target=lambda: next(targets), forward=forward)
    await build(client, world)
    assert [(f.old, f.new) for f in world.of("forward_target")] == [("c0", "api-1"), ("c5", "api-1@c5")]


async def test_a_conflict_with_the_target_is_asked_about_and_may_be_left_on_its_branch(client: Client) -> None:
    world = World(consent=ONTO_TARGET, target=lambda: "c9")
    world.rebase = lambda _: RebasedCommit(commit="", conflicts=("app.py",), report="both")
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue, SPEC)
        asked = await opened(world, "landing")
        await handle.signal("answer", {"choice": "skip", "by": "ann"})
        result = await handle.result()
    assert "conflicts in app.py" in asked["sentence"]
    assert world.of("forward_target") == []
    assert world.of("land_result")[0].commit == "api-1"
    assert result["status"] == "succeeded"
    assert "the result is on its own branch" in world.events[-1].data["sentence"]


async def test_tests_that_are_red_on_the_moved_target_are_asked_about(client: Client) -> None:
    world = World(consent=ONTO_TARGET, target=lambda: "c9", gates=lambda r: RED if "/landing/" in r.label else GREEN)
    queue = uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue, SPEC)
        asked = await opened(world, "landing")
        await handle.signal("answer", {"choice": "abort", "by": "ann"})
        with pytest.raises(Exception, match="failed"):
            await handle.result()
    assert "the tests are red: 1 of 3 tests failed" in asked["sentence"]
    assert world.of("land_result") == []


async def test_a_target_that_is_checked_out_stays_and_the_build_says_so(client: Client) -> None:
    def forward(request: Any) -> None:
        raise refuse("RepositoryRefused", "main is checked out")

    world = World(consent=ONTO_TARGET, forward=forward)
    result = await build(client, world)
    assert result["status"] == "succeeded"
    assert "left as it is: main is checked out" in world.events[-1].data["sentence"]


async def test_a_refused_branch_after_the_target_was_forwarded_takes_the_target_back(client: Client) -> None:
    def land(request: Any) -> None:
        raise refuse("BranchTaken", "mendwork/x exists")

    world = World(consent=ONTO_TARGET, land=land)
    await failure_of(client, world)
    undone = [name for name, _ in world.done if name in ("retract_result", "rewind_target", "forget_build")]
    assert undone == ["retract_result", "rewind_target", "forget_build"]
    (rewind,) = world.of("rewind_target")
    assert (rewind.old, rewind.commit) == ("c0", "api-1")
