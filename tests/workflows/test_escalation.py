"""The escalation matrix in a build: what goes on by itself, what stays a draft, what stops for a person."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import Any

from temporalio.client import Client

from activities.gates import GateReport, RunGatesInput
from activities.repository.changes import ApplyChangeInput
from domain.build.project import Consent
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


async def test_a_high_risk_stops_for_a_person_though_the_project_asks_for_nothing(client: Client) -> None:
    def touch(request: ApplyChangeInput) -> tuple[str, ...]:
        return RISKY if request.task == "store" else ("api.py",)

    world = World(consent=replace(LANDS, land="branch"), touch=touch, gates=struggling(2))
    queue = uuid.uuid4().hex
    async with serving(client, world, queue):
        handle = await begin(client, queue, {**UNATTENDED, "approved": ["change"]})
        ask = await opened(world, "change")
        assert "task store: risk" in ask["sentence"]
        await handle.signal("approve", {"digest": ask["digest"][:12], "by": "ann"})
        async with asyncio.timeout(60):
            assert (await handle.result())["status"] == "succeeded"
