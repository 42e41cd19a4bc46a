"""The housekeeper: what the store judges is what the mirrors lose, and what fails stops only its own kind."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.keeping.places import ClearFoldersInput, DropPinsInput, ListPinsInput, SweepEnvironmentsInput
from activities.keeping.stored import JudgedPins, JudgePinsInput, SweepBlobsInput
from domain.keeping.holders import DAY_MS
from domain.keeping.sweeping import Kind
from domain.ports.kept.keeping import Pins
from workflows.housekeeper import Housekeeper

THERE = Pins(project="shop", builds=("b-1", "b-2"), snapshots=("b-1@1",), bytes=9)
PAST = Pins(project="shop", builds=("b-1",), snapshots=(), bytes=0)
JUDGED = JudgedPins(pins=(PAST,), stayed=2, before=77, began=55, oldest="b-2")


@dataclass
class House:
    """The activities, which remember what they were asked; those in ``broken`` fail for good."""

    broken: tuple[str, ...] = ()
    asked: dict[str, Any] = field(default_factory=dict)

    def _done(self, name: str, request: Any) -> None:
        self.asked[name] = request
        if name in self.broken:
            raise ApplicationError("the table is damaged", type="DigestMismatch", non_retryable=True)

    @activity.defn(name="sweep_blobs")
    async def sweep_blobs(self, request: SweepBlobsInput) -> Kind:
        self._done("sweep_blobs", request)
        return Kind(kind="blobs", count=3, bytes=300)

    @activity.defn(name="judge_pins")
    async def judge_pins(self, request: JudgePinsInput) -> JudgedPins:
        self._done("judge_pins", request)
        return JUDGED

    @activity.defn(name="list_pins")
    async def list_pins(self, request: ListPinsInput) -> tuple[Pins, ...]:
        self._done("list_pins", request)
        return (THERE,)

    @activity.defn(name="drop_pins")
    async def drop_pins(self, request: DropPinsInput) -> Kind:
        self._done("drop_pins", request)
        return Kind(kind="mirrors", count=1)

    @activity.defn(name="clear_folders")
    async def clear_folders(self, request: ClearFoldersInput) -> Kind:
        self._done("clear_folders", request)
        return Kind(kind="folders", count=2)

    @activity.defn(name="sweep_environments")
    async def sweep_environments(self, request: SweepEnvironmentsInput) -> Kind:
        self._done("sweep_environments", request)
        return Kind(kind="environments")


@asynccontextmanager
async def workers(client: Client, house: House) -> AsyncIterator[str]:
    queue = uuid.uuid4().hex
    beside: list[Callable[..., Any]] = [house.sweep_blobs, house.judge_pins]
    places: list[Callable[..., Any]] = [house.list_pins, house.drop_pins, house.clear_folders]
    async with (
        Worker(client, task_queue=queue, workflows=[Housekeeper], activities=beside),
        Worker(client, task_queue=f"{queue}-workspace", activities=places),
        Worker(client, task_queue=f"{queue}-sandbox", activities=[house.sweep_environments]),
    ):
        yield queue


async def keep(client: Client, house: House, **words: Any) -> list[dict[str, Any]]:
    async with workers(client, house) as queue:
        kinds: list[dict[str, Any]] = await client.execute_workflow(
            "Housekeeper", words, id=f"house-{queue}", task_queue=queue
        )
    return kinds


async def test_every_kind_is_looked_at_with_the_same_now(client: Client) -> None:
    house = House()
    kinds = await keep(client, house)
    assert [(kind["kind"], kind["count"], kind["fault"]) for kind in kinds] == [
        ("blobs", 3, ""),
        ("mirrors", 1, ""),
        ("environments", 0, ""),
        ("folders", 2, ""),
    ]
    now = house.asked["sweep_blobs"].now
    assert house.asked["sweep_blobs"] == SweepBlobsInput(now=now)
    assert house.asked["judge_pins"] == JudgePinsInput(now=now, pins=(THERE,))
    assert house.asked["drop_pins"] == DropPinsInput(pins=(PAST,), projects=("shop",), before=77)
    assert house.asked["sweep_environments"] == SweepEnvironmentsInput(now=now, began=55)
    assert house.asked["clear_folders"] == ClearFoldersInput(before=now - DAY_MS)
    assert kinds[1]["stayed"] == 2


async def test_a_dry_run_of_one_project_asks_everybody_for_no_more(client: Client) -> None:
    house = House()
    kinds = await keep(client, house, dry_run=True, project="shop", afresh=True)
    assert [kind["kind"] for kind in kinds] == ["blobs", "mirrors", "environments"], "folders are nobody's project's"
    assert {name: asked.dry_run for name, asked in house.asked.items() if hasattr(asked, "dry_run")} == {
        "sweep_blobs": True,
        "drop_pins": True,
        "sweep_environments": True,
    }
    assert house.asked["list_pins"] == ListPinsInput(project="shop")
    assert (house.asked["sweep_blobs"].project, house.asked["sweep_blobs"].afresh) == ("shop", True)


async def test_what_fails_stops_only_its_own_kind(client: Client) -> None:
    kinds = await keep(client, House(broken=("sweep_blobs",)))
    assert [kind["fault"] for kind in kinds] == ["DigestMismatch", "", "", ""]
    assert kinds[0]["why"] == "the table is damaged"


async def test_when_nobody_can_judge_neither_refs_nor_environments_go(client: Client) -> None:
    house = House(broken=("judge_pins",))
    kinds = await keep(client, house)
    assert [kind["fault"] for kind in kinds] == ["", "DigestMismatch", "DigestMismatch", ""]
    assert "drop_pins" not in house.asked
    assert "sweep_environments" not in house.asked


async def test_a_mistyped_start_fails_at_once(client: Client) -> None:
    with pytest.raises(WorkflowFailureError) as error:
        await keep(client, House(), dryrun=True)
    assert "dryrun" in str(error.value.cause)
