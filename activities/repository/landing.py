"""The outward steps of a build, and their compensations."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from activities.intake import Engine
from domain.ports.blobs import Blobs
from domain.ports.workspace import Landing, Mirrors, Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class LandInput:
    """``commit`` becomes the result branch; ``base`` is what its diff is taken against."""

    project: str
    build: str
    base: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """``branch`` in the user's repository; ``diff`` is a digest."""

    branch: str
    commit: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardInput:
    """Fast-forward the project's branch from ``old`` to ``new``."""

    project: str
    build: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensateInput:
    """What a compensation needs; ``commit`` and ``old`` are "" where they do not matter.

    Of a delivery: ``release`` on ``environment`` is what was begun, ``to`` the release before it (0: none), ``step`` a
    step of the project's own.
    """

    project: str
    build: str
    commit: str = ""
    old: str = ""
    environment: str = ""
    release: int = 0
    to: int = 0
    step: str = ""


class Landings:
    """The only activities that write to a user's repository."""

    def __init__(self, *, engine: Engine, landing: Landing, mirrors: Mirrors, sources: Sources, blobs: Blobs) -> None:
        self._engine = engine
        self._landing = landing
        self._mirrors = mirrors
        self._sources = sources
        self._blobs = blobs

    @activity.defn
    async def land_result(self, request: LandInput) -> Landed:
        """Create the result branch; already there is success. Raises BranchTaken, RepositoryRefused."""
        project = self._engine.project(request.project)
        diff = await self._sources.diff(request.project, request.base, request.commit)
        digest = await self._blobs.put(diff.encode())
        branch = await self._landing.land(project, build=request.build, commit=request.commit)
        return Landed(branch=branch, commit=request.commit, diff=digest)

    @activity.defn
    async def retract_result(self, request: CompensateInput) -> bool:
        """Compensation of ``land_result``: whether the branch is gone."""
        project = self._engine.project(request.project)
        return await self._landing.retract(project, build=request.build, commit=request.commit)

    @activity.defn
    async def forget_build(self, request: CompensateInput) -> bool:
        """Compensation of ``fetch_base`` and of all commits: the build's refs leave the mirror."""
        await self._mirrors.forget(self._engine.project(request.project).name, build=request.build)
        return True

    @activity.defn
    async def forward_target(self, request: ForwardInput) -> None:
        """Never a force-push. Raises Overtaken when the branch has moved, RepositoryRefused when it is checked out."""
        await self._landing.forward(self._engine.project(request.project), old=request.old, new=request.new)

    @activity.defn
    async def rewind_target(self, request: CompensateInput) -> bool:
        """Compensation of ``forward_target``: whether the branch is where it was."""
        project = self._engine.project(request.project)
        return await self._landing.rewind(project, old=request.old, new=request.commit)
