"""Deliveries that were terminated: led back, taken down, ended in the log of their case and in the record."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.repository.landing import CompensateInput
from domain.ports.releases import OPEN, Release
from tests.workflows.test_sweeper import Scene, scene


@dataclass
class Target:
    """What is undone on the target; ``stuck`` actions fail for good."""

    stuck: Sequence[str] = ()
    done: list[tuple[str, str, int, int]] = field(default_factory=list)

    @activity.defn(name="restore_traffic")
    async def restore(self, request: CompensateInput) -> bool:
        return self._undo("restore_traffic", request)

    @activity.defn(name="retire_unit")
    async def retire(self, request: CompensateInput) -> bool:
        return self._undo("retire_unit", request)

    def _undo(self, name: str, request: CompensateInput) -> bool:
        self.done.append((name, request.environment, request.release, request.to))
        if name in self.stuck:
            raise ApplicationError("release 6 died", type="ReleaseDied", non_retryable=True)
        return True


@asynccontextmanager
async def delivery(client: Client, target: Target, *, build: str = "", switched: bool = True) -> AsyncIterator[Any]:
    """A delivery that was terminated; yields the scene and its id."""
    async with scene(client) as at:
        saga = f"{build}-release" if build else f"deliver-shop-{uuid.uuid4().hex}"
        handle = await at.begin(saga)
        number = await at.store.releases.reserve("shop", saga=saga)
        release = Release(
            project="shop",
            number=number,
            saga=saga,
            revision=3,
            kind="deliver",
            status=OPEN,
            commit="c1",
            build=build,
            previous=6,
        )
        await at.store.releases.record(release)
        await at.note(
            build or saga, "delivery.began", release=number, kind="deliver", commit="c1", project="shop", saga=saga
        )
        await begun(at, saga, "start-production", "retire_unit", release=number)
        if switched:
            await begun(at, saga, "switch-production", "restore_traffic", release=number, to=6)
        await handle.terminate()
        deploy = [target.restore, target.retire]
        async with Worker(client, task_queue=f"{at.queue}-deploy", activities=deploy):
            yield at, saga, number


async def begun(at: Scene, saga: str, step: str, action: str, *, release: int, to: int = 0) -> None:
    more: dict[str, Any] = {"project": "shop", "environment": "production", "release": release, "to": to}
    await at.register(saga, step, action, **more)


@pytest.mark.parametrize(("switched", "status"), [(True, "rolled back"), (False, "undelivered")])
async def test_is_undone_newest_first_and_ends_in_the_record(client: Client, switched: bool, status: str) -> None:
    target = Target()
    async with delivery(client, target, switched=switched) as (at, saga, number):
        await at.sweep()
        back = [("restore_traffic", "production", number, 6)] if switched else []
        assert target.done == [*back, ("retire_unit", "production", number, 0)]
        release = await at.store.releases.get("shop", number)
        assert (release.status, release.revision, release.ended > 0) == (status, 4, True)
        assert "was terminated" in release.sentence
        assert (await at.kinds(saga))[-1] == "delivery.ended"
        row = await at.store.builds.get(saga)
        assert (row.status, row.ended > 0) == (status, True)
        assert await at.open(saga) == []
        assert (await at.sweep())["builds"] == []


async def test_of_a_build_ends_in_the_log_of_the_build(client: Client) -> None:
    build = f"build-shop-{uuid.uuid4().hex}"
    async with delivery(client, Target(), build=build) as (at, saga, _):
        await at.sweep()
        assert (await at.kinds(build))[-1] == "delivery.ended"
        assert await at.kinds(saga) == []


async def test_what_cannot_be_led_back_is_unclear_and_named(client: Client) -> None:
    async with delivery(client, Target(stuck=["restore_traffic"])) as (at, _, number):
        await at.sweep()
        release = await at.store.releases.get("shop", number)
        assert release.status == "unclear"
        assert "restore_traffic: release 6 died" in release.sentence


async def test_a_build_is_left_alone_while_its_delivery_runs(client: Client) -> None:
    async with scene(client) as at:
        build = await at.terminated()
        handle = await at.begin(f"{build}-release")
        assert (await at.sweep())["builds"] == []
        await handle.terminate()
        assert (await at.sweep())["builds"] == [build]
