"""Releases on their target at the activities' grain: what is ordered, what is proven, what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.delivery import looking
from activities.delivery.deploys import (
    Deploys,
    PruneInput,
    RunStepInput,
    SiteInput,
    StartedUnit,
    SwitchInput,
    UnitInput,
)
from activities.delivery.looking import Snapshot
from activities.intake import Engine
from activities.repository.landing import CompensateInput
from adapters.blobs.memory import MemoryBlobs
from adapters.target.memory import MemoryTarget, open_memory
from domain.build.project import Project
from domain.delivery.project import Delivery, Step
from domain.errors import (
    DigestMismatch,
    KeyConflict,
    Overtaken,
    ReleaseDied,
    ReleaseMissing,
    ReleaseSilent,
    TargetMissing,
    UnknownName,
)
from domain.kpi.probe import Probe
from domain.ports.target import Unit

STEPS = (
    Step(name="migrate", run=("up",), kind="compensatable", undo=("down",)),
    Step(name="broken", run=("false",), kind="read-only"),
)
DELIVERY = Delivery(
    target="memory",
    run=("serve",),
    health=Probe(path="/"),
    environment={"GREETING": "hi"},
    secrets=("SHOP_KEY",),
    steps=STEPS,
    start_seconds=0.3,
    keep=2,
)
SHOP = Project(name="shop", repository="/x", branch="main", test=("t",), delivery=DELIVERY)
PLAIN = replace(SHOP, name="plain", delivery=None)
CONTENT = b"a tar"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof that fails fails soon."""
    monkeypatch.setattr(looking, "PROOF_SECONDS", 0.2)
    monkeypatch.setattr(looking, "LOOK_SECONDS", 0.01)


class Scene:
    """One project on a target in memory."""

    def __init__(
        self,
        root: Path,
        *,
        delivery: Delivery = DELIVERY,
        secrets: Mapping[str, str] | None = None,
        target: MemoryTarget | None = None,
    ) -> None:
        projects = {"shop": replace(SHOP, delivery=delivery), "plain": PLAIN}
        self.target = target or open_memory(root)
        self.blobs = MemoryBlobs()
        self.deploys = Deploys(
            engine=Engine(projects=projects, reasoning=(), coding=(), heartbeat=5),
            targets={"memory": self.target},
            blobs=self.blobs,
            secrets={"SHOP_KEY": "canary-77"} if secrets is None else secrets,
        )

    async def start(self, release: int, environment: str = "production", content: bytes = CONTENT) -> StartedUnit:
        artifact = await self.blobs.put(content)
        unit = UnitInput(project="shop", environment=environment, release=release, artifact=artifact)
        started = await ActivityEnvironment().run(self.deploys.start_unit, unit)
        assert isinstance(started, StartedUnit)
        return started

    async def switch(self, to: int, *, expected: int) -> Snapshot:
        switch = SwitchInput(project="shop", environment="production", to=to, expected=expected)
        return await self.deploys.switch_traffic(switch)

    async def live(self) -> int:
        return (await self.deploys.snapshot_site(SiteInput(project="shop"))).release


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def undo(release: int, *, to: int = 0, step: str = "", environment: str = "production") -> CompensateInput:
    return CompensateInput(project="shop", build="d", environment=environment, release=release, to=to, step=step)


class TestStarting:
    async def test_a_unit_gets_its_configuration_and_the_secrets_that_it_names(self, scene: Scene) -> None:
        await scene.start(1)
        order = scene.target.units.orders[Unit(project="shop", environment="production", release=1)]
        assert order.environment == {"GREETING": "hi", "SHOP_KEY": "canary-77"}
        assert "canary-77" not in repr(order)

    async def test_a_repeat_finds_it(self, scene: Scene) -> None:
        first = await scene.start(1)
        assert (await scene.start(1)).config == first.config

    async def test_the_same_release_with_another_artifact_is_refused(self, scene: Scene) -> None:
        await scene.start(1)
        with pytest.raises(KeyConflict):
            await scene.start(1, content=b"another")

    async def test_the_digest_of_the_configuration_does_not_depend_on_the_value_of_a_secret(
        self, tmp_path: Path
    ) -> None:
        one, other = Scene(tmp_path, secrets={"SHOP_KEY": "a"}), Scene(tmp_path, secrets={"SHOP_KEY": "b"})
        assert (await one.start(1)).config == (await other.start(1)).config

    async def test_another_environment_is_another_configuration(self, tmp_path: Path) -> None:
        one = Scene(tmp_path)
        other = Scene(tmp_path, delivery=replace(DELIVERY, environment={"GREETING": "ho"}))
        assert (await one.start(1)).config != (await other.start(1)).config

    @pytest.mark.parametrize(("run", "error"), [(("dies",), ReleaseDied), (("silent",), ReleaseSilent)])
    async def test_what_does_not_serve_is_classified(
        self, tmp_path: Path, run: tuple[str, ...], error: type[Exception]
    ) -> None:
        with pytest.raises(error, match="release 1 on production"):
            await Scene(tmp_path, delivery=replace(DELIVERY, run=run)).start(1)

    async def test_a_secret_that_the_worker_lacks_is_named_and_nothing_starts(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path, secrets={})
        with pytest.raises(TargetMissing, match="SHOP_KEY"):
            await scene.start(1)
        assert scene.target.units.orders == {}

    async def test_an_artifact_that_was_damaged_is_never_run(self, scene: Scene) -> None:
        artifact = await scene.blobs.put(CONTENT)
        scene.blobs._contents[artifact] = b"tampered"
        unit = UnitInput(project="shop", environment="production", release=1, artifact=artifact)
        with pytest.raises(DigestMismatch):
            await ActivityEnvironment().run(scene.deploys.start_unit, unit)


class TestTraffic:
    async def test_a_site_without_a_release_is_release_0(self, scene: Scene) -> None:
        assert await scene.live() == 0

    async def test_is_switched_from_where_it_was_expected(self, scene: Scene) -> None:
        await scene.start(1)
        await scene.start(2)
        await scene.switch(1, expected=0)
        assert await scene.live() == 1
        with pytest.raises(Overtaken):
            await scene.switch(2, expected=0)
        await scene.switch(2, expected=1)
        assert await scene.live() == 2

    async def test_is_proven_by_who_answers(self, scene: Scene) -> None:
        await scene.start(1)
        await scene.switch(1, expected=0)
        right = UnitInput(project="shop", environment="production", release=1)
        assert (await scene.deploys.prove_live(right)).ok
        wrong = await scene.deploys.prove_live(replace(right, release=2))
        assert (wrong.ok, wrong.release) == (False, 1)

    async def test_is_led_back_and_the_unit_goes(self, scene: Scene) -> None:
        await scene.start(1)
        await scene.switch(1, expected=0)
        await scene.start(2)
        await scene.switch(2, expected=1)
        assert await scene.deploys.restore_traffic(undo(2, to=1))
        assert await scene.live() == 1
        assert await scene.deploys.retire_unit(undo(2))
        assert await scene.deploys.find_unit(UnitInput(project="shop", environment="production", release=2)) == ""

    async def test_of_a_first_release_is_closed_again(self, scene: Scene) -> None:
        await scene.start(1)
        await scene.switch(1, expected=0)
        assert await scene.deploys.restore_traffic(undo(1))
        assert await scene.live() == 0

    async def test_undoing_what_never_happened_is_done(self, scene: Scene) -> None:
        assert await scene.deploys.restore_traffic(undo(1))
        assert await scene.deploys.retire_unit(undo(1))

    async def test_a_unit_with_traffic_is_never_taken_down(self, scene: Scene) -> None:
        await scene.start(1)
        await scene.switch(1, expected=0)
        with pytest.raises(KeyConflict):
            await scene.deploys.retire_unit(undo(1))

    async def test_to_a_release_that_is_gone_is_classified(self, scene: Scene) -> None:
        with pytest.raises(ReleaseMissing):
            await scene.deploys.restore_traffic(undo(2, to=1))


class TestTheProjectsOwnSteps:
    async def test_run_once_by_their_key(self, scene: Scene) -> None:
        await scene.start(1)
        step = RunStepInput(project="shop", release=1, name="migrate", key="d/migrate")
        assert (await scene.deploys.run_step(step)).green
        assert (await scene.deploys.run_step(step)).green
        assert scene.target.units.commands == [("up",)]
        assert await scene.deploys.undo_step(undo(1, step="migrate"))
        assert scene.target.units.commands == [("up",), ("down",)]

    async def test_one_that_fails_is_red(self, scene: Scene) -> None:
        await scene.start(1)
        step = RunStepInput(project="shop", release=1, name="broken", key="d/broken")
        report = await scene.deploys.run_step(step)
        assert (report.green, report.sentence) == (False, "it ended with exit code 1")

    async def test_one_that_the_configuration_does_not_have_is_named(self, scene: Scene) -> None:
        with pytest.raises(UnknownName, match="broken, migrate"):
            await scene.deploys.run_step(RunStepInput(project="shop", release=1, name="rm", key="k"))


async def test_old_releases_go_but_those_that_one_goes_back_to(scene: Scene) -> None:
    for release in range(1, 6):
        await scene.start(release, content=str(release).encode())
    await scene.switch(5, expected=0)
    assert await scene.deploys.prune_units(PruneInput(project="shop", live=5, known=(1, 2, 3, 4))) == (1, 2)
    left = {unit.release for unit in scene.target.units.orders}
    assert left == {3, 4, 5}


class TestTheAllowlist:
    async def test_is_asked_by_everything_that_touches_the_target(self, scene: Scene) -> None:
        deploys = scene.deploys
        calls = [
            deploys.snapshot_site(SiteInput(project="other")),
            deploys.switch_traffic(SwitchInput(project="other", environment="production", to=1, expected=0)),
            deploys.restore_traffic(replace(undo(1), project="other")),
            deploys.retire_unit(replace(undo(1), project="other")),
            deploys.find_unit(UnitInput(project="other", environment="production", release=1)),
            deploys.prove_live(UnitInput(project="other", environment="production", release=1)),
            deploys.start_unit(UnitInput(project="other", environment="production", release=1, artifact="a")),
            deploys.run_step(RunStepInput(project="other", release=1, name="migrate", key="k")),
            deploys.undo_step(replace(undo(1, step="migrate"), project="other")),
            deploys.prune_units(PruneInput(project="other", live=1, known=())),
        ]
        for call in calls:
            with pytest.raises(UnknownName, match="unknown project 'other'"):
                await call

    async def test_a_project_without_a_target_is_told_how_to_get_one(self, scene: Scene) -> None:
        with pytest.raises(TargetMissing, match=r"add \[projects\.plain\.delivery\]"):
            await scene.deploys.snapshot_site(SiteInput(project="plain"))

    async def test_a_target_that_lacks_its_programs_says_which(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(type(scene.target), "missing", lambda _: {"haproxy": "haproxy is not installed: apt-get …"})
        with pytest.raises(TargetMissing, match="haproxy is not installed"):
            await scene.deploys.snapshot_site(SiteInput(project="shop"))
