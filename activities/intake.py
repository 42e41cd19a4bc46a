"""Admitting a build: the project from the allowlist, its base fetched and pinned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from temporalio import activity

from domain.build.project import Consent, Limits, Project
from domain.errors import InvalidInput, UnknownName
from domain.money.budget import Budget
from domain.ports.blobs import Blobs
from domain.ports.workspace import Mirrors


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitBuildInput:
    """``project`` may be empty where the allowlist holds just one."""

    build: str
    project: str
    spec: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedBuild:
    """What the saga needs of the configuration, so that replay never reads it again. ``heartbeat`` in seconds,
    ``repository`` the folder's name alone, ``weights`` the project's own of the risk formula (none: as published)."""

    project: str
    spec: str
    limits: Limits
    reasoning: tuple[str, ...]
    coding: tuple[str, ...]
    heartbeat: float
    validation: tuple[str, ...] = ()
    consent: Consent = field(default_factory=Consent)
    budget: Budget = field(default_factory=Budget)
    delivers: bool = False
    sets_up: bool = False
    untested: str = ""
    repository: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBaseInput:
    """Whose base to fetch, and the build to pin it for."""

    build: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The configuration's share in a build: the allowlist, the roles' chains of models, the heartbeat in seconds."""

    projects: Mapping[str, Project]
    reasoning: tuple[str, ...]
    coding: tuple[str, ...]
    heartbeat: float
    validation: tuple[str, ...] = ()

    def project(self, name: str) -> Project:
        """The project of that name, or the only one. Raises UnknownName, InvalidInput."""
        if not name and len(self.projects) == 1:
            return next(iter(self.projects.values()))
        if not name:
            known = ", ".join(sorted(self.projects)) or "none"
            raise InvalidInput(f"the configuration has {len(self.projects)} projects ({known}): name one")
        if name not in self.projects:
            raise UnknownName.among("project", name, self.projects)
        return self.projects[name]


class Intake:
    """Runs where the mirrors are."""

    def __init__(self, *, engine: Engine, mirrors: Mirrors, blobs: Blobs) -> None:
        self._engine = engine
        self._mirrors = mirrors
        self._blobs = blobs

    @activity.defn
    async def admit_build(self, request: AdmitBuildInput) -> AdmittedBuild:
        """Look the project up and store the spec; nothing outward yet. Raises InvalidInput, UnknownName."""
        project = self._engine.project(request.project)
        if not self._engine.reasoning or not self._engine.coding:
            raise InvalidInput("the configuration has no [models.…] to ask")
        return AdmittedBuild(
            project=project.name,
            spec=await self._blobs.put(request.spec.encode()),
            limits=project.limits,
            reasoning=self._engine.reasoning,
            coding=self._engine.coding,
            heartbeat=self._engine.heartbeat,
            validation=self._engine.validation,
            consent=project.consent,
            budget=project.budget,
            delivers=project.delivery is not None,
            sets_up=project.setup is not None,
            untested=project.untested,
            repository=PurePath(project.repository).name,
            weights=project.delivery.risk.weights if project.delivery else {},
        )

    @activity.defn
    async def fetch_base(self, request: FetchBaseInput) -> str:
        """Fetch the branch and pin its commit; a repeat finds it pinned. Raises RepositoryRefused, BranchTaken."""
        return await self._mirrors.fetch_base(self._engine.project(request.project), build=request.build)
