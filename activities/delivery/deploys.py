"""Releases on their target: the only activities that touch it, in the only process that holds deploy secrets."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass

from temporalio import activity

from activities.delivery.looking import Proof, Snapshot, prove, site_of, snapshot, until_healthy
from activities.documents import canonical
from activities.intake import Engine
from activities.repository.landing import CompensateInput
from domain.build.project import Project
from domain.delivery.project import Delivery
from domain.errors import KeyConflict, TargetMissing, UnknownName
from domain.ports.blobs import Blobs
from domain.ports.target import (
    ABSENT,
    HEALTHY,
    PRODUCTION,
    STAGING,
    Order,
    Target,
    Unit,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteInput:
    """A project's environment."""

    project: str
    environment: str = PRODUCTION


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitInput:
    """Release ``release`` on an environment; ``artifact`` is the digest of the tar that it is made of."""

    project: str
    environment: str
    release: int
    artifact: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedUnit:
    """``url`` is the unit's own address, ``seconds`` how long it took to be healthy."""

    url: str
    config: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchInput:
    """Lead a site's traffic from release ``expected`` (0: nowhere) to ``to``."""

    project: str
    environment: str
    to: int
    expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStepInput:
    """The project's own step ``name``, or its undo, in a release; ``key`` names this run of it."""

    project: str
    release: int
    name: str
    key: str
    undo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """``sentence`` is the end of what it printed, in one line: untrusted text."""

    green: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneInput:
    """Release ``live`` serves; of the older ones among ``known`` the newest ``keep`` stay that are there."""

    project: str
    live: int
    known: tuple[int, ...]


class Deploys:
    """``targets`` by name, ``secrets`` the values that releases may be given by name."""

    def __init__(
        self, *, engine: Engine, targets: Mapping[str, Target], blobs: Blobs, secrets: Mapping[str, str]
    ) -> None:
        self._engine = engine
        self._targets = targets
        self._blobs = blobs
        self._secrets = secrets

    @activity.defn
    async def snapshot_site(self, request: SiteInput) -> Snapshot:
        """What runs now. Raises TargetMissing, TargetUnavailable."""
        _, delivery, target = self._known(request.project)
        live = await target.traffic.current(site_of(request.project, delivery, request.environment))
        return snapshot(live)

    @activity.defn
    async def start_unit(self, request: UnitInput) -> StartedUnit:
        """Start a release beside what serves, and wait until it is healthy.

        Raises ReleaseDied, ReleaseSilent, PortTaken, ResourceShort, TargetMissing, TargetUnavailable.
        """
        _, delivery, target = self._known(request.project)
        unit = Unit(project=request.project, environment=request.environment, release=request.release)
        began = time.monotonic()
        await target.units.trigger(await self._order(unit, delivery, request.artifact))
        status = await until_healthy(target, unit, patience=delivery.start_seconds)
        return StartedUnit(url=status.url, config=status.config, seconds=round(time.monotonic() - began, 3))

    @activity.defn
    async def find_unit(self, request: UnitInput) -> str:
        """The unit's own address, "" when it does not run."""
        _, _, target = self._known(request.project)
        unit = Unit(project=request.project, environment=request.environment, release=request.release)
        return (await target.units.poll(unit)).url

    @activity.defn
    async def switch_traffic(self, request: SwitchInput) -> Snapshot:
        """Lead traffic to a release. Raises Overtaken, ReleaseDied, ReleaseSilent, PortTaken, TargetUnavailable."""
        _, delivery, target = self._known(request.project)
        site = site_of(request.project, delivery, request.environment)
        return snapshot(await target.traffic.switch(site, request.to, expected=request.expected))

    @activity.defn
    async def prove_live(self, request: UnitInput) -> Proof:
        """Look from outside whether ``release`` answers (0: whether nobody does)."""
        _, delivery, target = self._known(request.project)
        site = site_of(request.project, delivery, request.environment)
        return await prove(target, site, delivery, release=request.release)

    @activity.defn
    async def restore_traffic(self, request: CompensateInput) -> bool:
        """Compensation of ``switch_traffic``: traffic is at release ``to`` again (0: the site is closed), seen so from
        outside. Raises ReleaseMissing, ReleaseDied, ReleaseSilent, TargetUnavailable."""
        _, delivery, target = self._known(request.project)
        site = site_of(request.project, delivery, request.environment)
        await target.traffic.roll_back(site, request.to)
        return (await prove(target, site, delivery, release=request.to)).ok

    @activity.defn
    async def retire_unit(self, request: CompensateInput) -> bool:
        """Compensation of ``start_unit``: nothing of the unit is left, looked up afterwards."""
        _, delivery, target = self._known(request.project)
        unit = Unit(project=request.project, environment=request.environment, release=request.release)
        gone = await target.units.remove(unit, drain=delivery.drain_seconds)
        return gone and (await target.units.poll(unit)).state == ABSENT

    @activity.defn
    async def run_step(self, request: RunStepInput) -> StepReport:
        """A step of the project's own, in the new release; a repeat of one that ended returns how it ended."""
        _, delivery, target = self._known(request.project)
        step = next((step for step in delivery.steps if step.name == request.name), None)
        if step is None:
            raise UnknownName.among("step", request.name, [step.name for step in delivery.steps])
        unit = Unit(project=request.project, environment=PRODUCTION, release=request.release)
        argv = step.undo if request.undo else step.run
        status = await target.units.command(unit, argv, key=request.key, seconds=delivery.start_seconds)
        last = status.log.strip().splitlines()[-1:] or [status.sentence]
        return StepReport(green=status.state == HEALTHY, sentence=last[0][:300])

    @activity.defn
    async def undo_step(self, request: CompensateInput) -> bool:
        """Compensation of ``run_step``. Raises KeyConflict where the release has production's traffic still: what it
        needs is not taken away from under its users."""
        _, delivery, target = self._known(request.project)
        live = await target.traffic.current(site_of(request.project, delivery, PRODUCTION))
        if live is not None and live.release == request.release:
            raise KeyConflict(f"step {request.step!r}: release {request.release} serves production still")
        key = f"{request.build}/{request.step}/undo"
        ran = RunStepInput(project=request.project, release=request.release, name=request.step, key=key, undo=True)
        return (await self.run_step(ran)).green

    @activity.defn
    async def prune_units(self, request: PruneInput) -> tuple[int, ...]:
        """Remove units that nobody goes back to any more; return the releases. On staging only the live one is of use;
        a unit that traffic goes to always stays."""
        _, delivery, target = self._known(request.project)
        gone: set[int] = set()
        for environment, keep in ((PRODUCTION, delivery.keep), (STAGING, 0)):
            units = [Unit(project=request.project, environment=environment, release=n) for n in request.known]
            # Numbers of releases that never came to production count for nothing: they left no unit to go back to.
            there = [unit for unit in units if (await target.units.poll(unit)).state != ABSENT]
            older = sorted((unit for unit in there if unit.release < request.live), key=lambda unit: -unit.release)
            for unit in older[keep:]:
                if await target.units.remove(unit, drain=delivery.drain_seconds):
                    gone.add(unit.release)
        return tuple(sorted(gone))

    def _known(self, name: str) -> tuple[Project, Delivery, Target]:
        """The allowlist is asked again by everything that touches the outside. Raises UnknownName, TargetMissing."""
        project = self._engine.project(name)
        if project.delivery is None:
            raise TargetMissing(f"project {project.name!r} has no target: add [projects.{project.name}.delivery]")
        if project.delivery.target not in self._targets:
            raise UnknownName.among("deploy target", project.delivery.target, self._targets)
        target = self._targets[project.delivery.target]
        if lacking := target.missing():
            raise TargetMissing("; ".join(lacking.values()))
        return project, project.delivery, target

    async def _order(self, unit: Unit, delivery: Delivery, artifact: str) -> Order:
        lacking = [name for name in delivery.secrets if name not in self._secrets]
        if lacking:
            raise TargetMissing(f"the deploy worker's environment has no {', '.join(lacking)}, which the release needs")
        environment = {**delivery.environment, **{name: self._secrets[name] for name in delivery.secrets}}
        shape = {"run": list(delivery.run), "environment": dict(delivery.environment), "secrets": delivery.secrets}
        return Order(
            unit=unit,
            artifact=artifact,
            # Names of secrets, never their values: a digest of a short secret can be guessed.
            config=hashlib.sha256(canonical(shape)).hexdigest(),
            run=delivery.run,
            health=delivery.health,
            content=await self._blobs.get(artifact),
            environment=environment,
        )
