"""What Temporal's own lists and queries tell of a build, on a real server with a faked outside world."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from domain.build.project import Consent
from domain.human.attributes import ATTRIBUTES
from tests.workflows.fakes import RED, World
from tests.workflows.running import SPEC, UNATTENDED, begin, build, failure_of, opened, serving

ASKED = Consent(approve=("change",), review=False)


async def told(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    """The saga's search attributes as the server describes it."""
    described = await handle.describe()
    return {pair.key.name: pair.value for pair in described.typed_search_attributes if pair.key.name in ATTRIBUTES}


async def upserts(handle: WorkflowHandle[Any, Any]) -> list[set[str]]:
    """The names that each event of the history told."""
    history = await handle.fetch_history()
    events = [each.upsert_workflow_search_attributes_event_attributes for each in history.events]
    return [set(event.search_attributes.indexed_fields) for event in events if event.search_attributes.indexed_fields]


async def test_lists_can_be_asked_what_a_build_is_and_ended_as(client: Client) -> None:
    name = f"build-notes-{uuid.uuid4().hex}"
    await build(client, World(), {**UNATTENDED, "tags": ["ui", "urgent"]}, name=name)
    found = await told(client.get_workflow_handle(name))
    assert (found["BuildPhase"], found["BuildStatus"], found["NeedsApproval"]) == ("landing", "succeeded", False)
    assert (found["ProjectId"], found["Tags"], len(found["SpecHash"]) <= 16) == ("notes", ["ui", "urgent"], True)
    assert found["CostUsd"] >= 0


async def test_a_build_that_waits_for_a_person_says_so_until_it_is_answered(client: Client) -> None:
    world, queue = World(consent=ASKED), uuid.uuid4().hex
    async with serving(client, world, queue), asyncio.timeout(90):
        handle = await begin(client, queue)
        ask = await opened(world, "change")
        waiting = await told(handle)
        phases = [each["phase"] for each in await handle.query("timeline")]
        cost = await handle.query("cost")
        await handle.signal("approve", {"digest": ask["digest"], "by": "ann"})
        await handle.result()
    assert (waiting["NeedsApproval"], waiting["BuildPhase"], waiting["BuildStatus"]) == (True, "approve", "running")
    assert phases == ["intake", "base", "plan", "tasks", "approve"]
    assert cost["spent_micros"] == round(waiting["CostUsd"] * 1_000_000)
    assert (await told(handle))["NeedsApproval"] is False


async def test_a_failed_build_says_so_and_one_that_was_mistyped_never_began(client: Client) -> None:
    failed, mistyped = f"build-notes-{uuid.uuid4().hex}", f"build-notes-{uuid.uuid4().hex}"
    await failure_of(client, World(gates=lambda _: RED), UNATTENDED, name=failed)
    await failure_of(client, World(), {"spec": ""}, name=mistyped)
    assert (await told(client.get_workflow_handle(failed)))["BuildStatus"] == "failed"
    assert await told(client.get_workflow_handle(mistyped)) == {}


async def test_only_what_changed_is_told(client: Client) -> None:
    name = f"build-notes-{uuid.uuid4().hex}"
    await build(client, World(), UNATTENDED, name=name)
    events = await upserts(client.get_workflow_handle(name))
    assert sum("ProjectId" in names for names in events) == 1
    assert sum("BuildPhase" in names for names in events) == 5
    assert len(events) <= 12


@pytest.mark.parametrize("tags", [["x"] * 21, [""], ["x" * 65]])
async def test_tags_that_no_list_could_hold_are_refused(client: Client, tags: list[str]) -> None:
    error = await failure_of(client, World(), {**SPEC, "tags": tags})
    assert (error.type, "20 tags of 1 to 64 characters" in error.message) == ("InvalidInput", True)


async def test_every_attribute_that_is_registered_is_told(client: Client) -> None:
    name = f"build-notes-{uuid.uuid4().hex}"
    await build(client, World(), {**UNATTENDED, "tags": ["ui"]}, name=name)
    assert set(await told(client.get_workflow_handle(name))) == set(ATTRIBUTES)
