"""What goes when a release was promoted, what stays, and what is not undone under the users of a release."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from activities.delivery.deploys import Deploys, PruneInput
from activities.intake import Engine
from activities.repository.landing import CompensateInput
from adapters.blobs.memory import MemoryBlobs
from adapters.target.memory import open_memory
from domain.build.project import Project
from domain.delivery.project import Delivery, Step
from domain.errors import KeyConflict
from domain.kpi.probe import Probe
from domain.ports.target import ABSENT, PRODUCTION, STAGING, Order, Site, Unit

STEP = Step(name="migrate", run=("up",), kind="compensatable", undo=("down",))
DELIVERY = Delivery(target="memory", run=("serve",), steps=(STEP,), keep=2, drain_seconds=7.0)
SHOP = Project(name="shop", repository="/x", branch="main", test=("t",), delivery=DELIVERY)


class Scene:
    """A shop on a target in memory."""

    def __init__(self, root: Path) -> None:
        self.target = open_memory(root)
        engine = Engine(projects={"shop": SHOP}, reasoning=(), coding=(), heartbeat=5)
        self.deploys = Deploys(engine=engine, targets={"memory": self.target}, blobs=MemoryBlobs(), secrets={})

    async def up(self, environment: str, *releases: int) -> None:
        for release in releases:
            unit, content = Unit(project="shop", environment=environment, release=release), b"a tar"
            digest = hashlib.sha256(content).hexdigest()
            order = Order(
                unit=unit, artifact=digest, config="c", run=("serve",), health=Probe(path="/"), content=content
            )
            await self.target.units.trigger(order)

    async def lead(self, environment: str, to: int) -> None:
        await self.target.traffic.switch(Site(project="shop", environment=environment), to, expected=0)

    async def there(self, environment: str, *releases: int) -> list[int]:
        units = [Unit(project="shop", environment=environment, release=n) for n in releases]
        return [unit.release for unit in units if (await self.target.units.poll(unit)).state != ABSENT]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_what_never_came_to_production_does_not_push_out_what_one_goes_back_to(scene: Scene) -> None:
    """Releases 3 to 6 failed and left nothing: the two that stay are 1 and 2."""
    await scene.up(PRODUCTION, 1, 2, 7)
    await scene.lead(PRODUCTION, 7)
    assert await scene.deploys.prune_units(PruneInput(project="shop", live=7, known=tuple(range(1, 7)))) == ()
    assert await scene.there(PRODUCTION, 1, 2, 7) == [1, 2, 7]


async def test_the_newest_that_are_there_stay(scene: Scene) -> None:
    await scene.up(PRODUCTION, 1, 2, 5, 7)
    await scene.lead(PRODUCTION, 7)
    assert await scene.deploys.prune_units(PruneInput(project="shop", live=7, known=tuple(range(1, 7)))) == (1,)
    assert await scene.there(PRODUCTION, 1, 2, 5, 7) == [2, 5, 7]


async def test_requests_under_way_have_the_projects_time_to_end(scene: Scene) -> None:
    await scene.up(PRODUCTION, 1, 2, 3, 4, 5)
    await scene.lead(PRODUCTION, 4)
    assert await scene.deploys.prune_units(PruneInput(project="shop", live=4, known=(1, 2, 3))) == (1,)
    taken_back = CompensateInput(
        build="deliver-shop-5", step="start", project="shop", release=5, environment=PRODUCTION
    )
    assert await scene.deploys.retire_unit(taken_back)
    units = [Unit(project="shop", environment=PRODUCTION, release=n) for n in (1, 5)]
    assert scene.target.units.drains == dict.fromkeys(units, 7.0)


async def test_staging_keeps_only_what_it_leads_to(scene: Scene) -> None:
    await scene.up(STAGING, 1, 2, 3)
    await scene.lead(STAGING, 3)
    await scene.up(PRODUCTION, 1, 2, 3)
    await scene.lead(PRODUCTION, 3)
    assert await scene.deploys.prune_units(PruneInput(project="shop", live=3, known=(1, 2))) == (1, 2)
    assert await scene.there(STAGING, 1, 2, 3) == [3]
    assert await scene.there(PRODUCTION, 1, 2, 3) == [1, 2, 3]


async def test_a_step_is_not_taken_back_while_its_release_serves(scene: Scene) -> None:
    await scene.up(PRODUCTION, 1)
    undo = CompensateInput(project="shop", build="d", environment=PRODUCTION, release=1, step="migrate")
    assert await scene.deploys.undo_step(undo)
    await scene.lead(PRODUCTION, 1)
    with pytest.raises(KeyConflict, match="serves production still"):
        await scene.deploys.undo_step(undo)
