"""Scenarios of set-up: environments for every gate, and packages that nobody has heard of."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.sandboxed.environments import Prepared, PrepareInput
from tests.workflows.fakes import GREEN, RED, World, refuse
from tests.workflows.running import UNATTENDED, begin, build, failure_of, opened, serving


@asynccontextmanager
async def running(client: Client, world: World) -> AsyncIterator[WorkflowHandle[Any, Any]]:
    queue = uuid.uuid4().hex
    async with serving(client, world, queue):
        yield await begin(client, queue)


def unheard_of(request: PrepareInput) -> Prepared:
    """The change of the task store wants a package that only a person can allow."""
    new = request.commit.startswith("store") and "left-pat" not in request.allowed
    return Prepared(key="", unknown=("left-pat",)) if new else Prepared(key=f"env-{request.commit}", built=True)


async def test_every_gate_runs_in_the_environment_of_its_own_commit(client: Client) -> None:
    world = World(sets_up=True, prepare=lambda request: Prepared(key=f"env-{request.commit}"))
    await build(client, world)
    prepared = [(request.commit, request.base) for request in world.of("prepare_environment")]
    assert prepared == [("c0", ""), ("store-1", "c0"), ("api-1", "c0")]
    assert world.of("measure_base")[0].environment == "env-c0"
    assert [run.environment for run in world.of("run_gates")] == ["env-store-1", "env-api-1"]


async def test_a_project_without_a_set_up_prepares_nothing(client: Client) -> None:
    world = World()
    await build(client, world)
    assert world.of("prepare_environment") == []


async def test_a_base_that_cannot_be_set_up_ends_the_build_before_any_model_is_asked(client: Client) -> None:
    def prepare(_: PrepareInput) -> Prepared:
        raise refuse("SetupFailed", "the set-up command exited with 1: no such package")

    world = World(sets_up=True, prepare=prepare)
    error = await failure_of(client, world)
    assert error.type == "SetupFailed"
    assert "no such package" in error.message
    assert world.of("call_model") == []
    assert len(world.of("forget_build")) == 1


async def test_a_change_that_cannot_be_set_up_goes_back_to_its_model(client: Client) -> None:
    def prepare(request: PrepareInput) -> Prepared:
        if request.commit == "store-1":
            raise refuse("SetupFailed", "the set-up command exited with 1")
        return Prepared(key="env")

    world = World(sets_up=True, prepare=prepare)
    await build(client, world)
    again = world.of("render_change_prompt")[1]
    assert (again.task, again.reason, again.change) == ("store", "the set-up command exited with 1", "d")


class TestPackagesThatNobodyKnows:
    async def test_a_person_is_asked_before_anything_is_installed_and_allows_it(self, client: Client) -> None:
        world = World(sets_up=True, prepare=unheard_of)
        async with running(client, world) as handle:
            asked = await opened(world, "task")
            assert asked["choices"] == ["allow", "retry", "raise", "skip", "take", "abort"]
            assert "left-pat" in asked["sentence"]
            calls = len(world.of("call_model"))
            await handle.execute_update("answer", {"ask": asked["id"], "choice": "allow", "by": "ann"})
            result = await handle.result()
        assert result["status"] == "succeeded"
        assert world.of("pack")[0].document["packages"] == ["left-pat"]
        assert [c.key.saga.rpartition("-")[2] for c in world.of("call_model")[calls:]] == ["api"], (
            "no call is made again"
        )
        allowed = [event.data for event in world.events if event.kind == "packages.allowed"]
        assert [(row["names"], row["by"]) for row in allowed] == [(["left-pat"], "ann")]
        assert {request.allowed for request in world.of("prepare_environment")[-2:]} == {("left-pat",)}

    async def test_what_was_allowed_and_is_red_is_written_again(self, client: Client) -> None:
        reports = iter([RED, GREEN, GREEN])
        world = World(sets_up=True, prepare=unheard_of, gates=lambda _: next(reports))
        async with running(client, world) as handle:
            asked = await opened(world, "task")
            await handle.execute_update("answer", {"ask": asked["id"], "choice": "allow", "by": "ann"})
            result = await handle.result()
        assert result["status"] == "succeeded"
        store = [render for render in world.of("render_change_prompt") if render.task == "store"]
        assert len(store) == 2
        assert RED.reason in store[1].reason

    async def test_unattended_nothing_unknown_is_installed(self, client: Client) -> None:
        world = World(sets_up=True, prepare=unheard_of)
        error = await failure_of(client, world, UNATTENDED)
        assert error.type == "UnknownPackages"
        assert world.of("run_gates") == []
