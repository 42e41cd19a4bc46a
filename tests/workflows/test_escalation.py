"""The escalation matrix in a build: what goes on by itself, what stays a draft, what stops for a person."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import pytest
from temporalio.client import Client

from activities.gates import GateReport, RunGatesInput
from activities.repository.changes import ApplyChangeInput
from domain.build.project import Consent, Limits
from tests.workflows.fakes import GREEN, RED, World
from tests.workflows.running import UNATTENDED, begin, build, opened, serving

LANDS = Consent(approve=(), review=False, land="target")
RISKY = (
    *("migrations/0001.sql", "auth/login.py", "pyproject.toml", ".github/workflows/ci.yml"),
    *(f"src/part{n}.py" for n in range(60)),
)


def struggling(times: int) -> Any:
    """Gates that are red for the first ``times`` attempts of a task, and cannot count their tests."""

    def gates(request: RunGatesInput) -> GateReport:
        tries = request.label.rpartition("/gates/")[2]
        red = "-task-" in request.label and int(tries) <= times
        return RED if red else replace(GREEN, ran=-1)

    return gates


def weighed(world: World) -> list[dict[str, Any]]:
    return [dict(event.data) for event in world.events if event.kind == "task.weighed"]


async def test_green_at_once_goes_on_by_itself_and_says_why(client: Client) -> None:
    world = World(consent=LANDS)
    await build(client, world, UNATTENDED)
    assert {entry["action"] for entry in weighed(world)} == {"autonomous"}
    assert all("confidence" in entry["why"] for entry in weighed(world))
    assert "target.forwarded" in world.kinds()


async def test_a_low_confidence_is_a_draft_that_stays_on_its_own_branch(client: Client) -> None:
    world = World(consent=LANDS, gates=struggling(2))
    result = await build(client, world, UNATTENDED)
    assert result["status"] == "succeeded"
    assert "draft" in {entry["action"] for entry in weighed(world)}
    assert world.of("forward_target") == []
    ended = next(event.data for event in world.events if event.kind == "build.ended")
    assert "left on its own branch for a review" in ended["sentence"]


async def test_a_draft_that_a_person_consented_to_is_forwarded(client: Client) -> None:
    world = World(consent=LANDS, gates=struggling(2))
    await build(client, world, {**UNATTENDED, "approved": ["change"]})
    assert len(world.of("forward_target")) == 1


async def test_work_that_needed_a_fourth_attempt_is_handed_to_a_person(client: Client) -> None:
    world = World(consent=replace(LANDS, land="branch"), limits=Limits(attempts=4), gates=struggling(3))
    ask = await asked_and_approved(client, world)
    assert "retries 3 is above 2 (a person, after three retries)" in ask["sentence"]
    assert "person" in {entry["action"] for entry in weighed(world)}


@pytest.mark.parametrize("weights", [{}, {"migrations": 0.9}])
async def test_the_projects_own_weights_of_the_formula_hold_for_its_tasks(
    client: Client, weights: dict[str, float]
) -> None:
    def touch(request: ApplyChangeInput) -> tuple[str, ...]:
        return ("migrations/0001.sql",) if request.task == "store" else ("api.py",)

    world = World(consent=replace(LANDS, land="branch"), touch=touch, weights=weights)
    if weights:
        ask = await asked_and_approved(client, world)
        assert "is above 0.7 (stop and ask)" in ask["sentence"]
    else:
        await build(client, world, {**UNATTENDED, "approved": ["change"]})
        assert "ask.opened" not in world.kinds()


async def asked_and_approved(client: Client, world: World) -> dict[str, Any]:
    """The ask for the change of a build that nobody wanted to be asked about; Ann approves it, and it ends well."""
    queue = uuid.uuid4().hex
    async with serving(client, world, queue):
        handle = await begin(client, queue, {**UNATTENDED, "approved": ["change"]})
        ask = await opened(world, "change")
        await handle.signal("approve", {"digest": ask["digest"][:12], "by": "ann"})
        async with asyncio.timeout(60):
            assert (await handle.result())["status"] == "succeeded"
    return ask


async def test_a_high_risk_stops_for_a_person_though_the_project_asks_for_nothing(client: Client) -> None:
    def touch(request: ApplyChangeInput) -> tuple[str, ...]:
        return RISKY if request.task == "store" else ("api.py",)

    world = World(consent=replace(LANDS, land="branch"), touch=touch, gates=struggling(2))
    assert "task store: risk" in (await asked_and_approved(client, world))["sentence"]
