"""Admitting a delivery: its project and target from the allowlist, its commit pinned, what it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from temporalio import activity

from activities.intake import Engine
from domain.build.project import Consent
from domain.delivery.project import Delivery
from domain.errors import OlderRelease, TargetMissing
from domain.ports.workspace import Merges, Mirrors, Sources
from domain.review.diff import diff_parts
from domain.risk.evidence import Touched

MOST_PATHS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitDeliveryInput:
    """Which project is to be delivered."""

    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedDelivery:
    """What the saga needs of the configuration, so that replay never reads it again. ``delivery`` comes without its
    environment: that belongs to the deploy worker. ``heartbeat`` in seconds."""

    project: str
    delivery: Delivery
    consent: Consent
    heartbeat: float
    test_seconds: float
    setup_seconds: float = 0.0
    sets_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PinCommitInput:
    """``saga`` is whom the commit is pinned for, ``commit`` a branch or a SHA of the user's repository."""

    saga: str
    project: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessInput:
    """``old`` is production's commit ("" : there is none), ``new`` the one to deliver."""

    project: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """What ``new`` changes of ``base``, which is "" where it could not be compared: everything is new then."""

    touched: Touched
    base: str = ""


class Admission:
    """Runs where the mirrors are; touches nothing of the target."""

    def __init__(self, *, engine: Engine, mirrors: Mirrors, sources: Sources, merges: Merges) -> None:
        self._engine = engine
        self._mirrors = mirrors
        self._sources = sources
        self._merges = merges

    @activity.defn
    async def admit_delivery(self, request: AdmitDeliveryInput) -> AdmittedDelivery:
        """Raises UnknownName, TargetMissing when the project has no target."""
        project = self._engine.project(request.project)
        if project.delivery is None:
            raise TargetMissing(f"project {project.name!r} has no target: add [projects.{project.name}.delivery]")
        return AdmittedDelivery(
            project=project.name,
            delivery=replace(project.delivery, environment={}),
            consent=project.consent,
            heartbeat=self._engine.heartbeat,
            test_seconds=project.limits.test_seconds,
            setup_seconds=project.limits.setup_seconds,
            sets_up=project.setup is not None,
        )

    @activity.defn
    async def pin_commit(self, request: PinCommitInput) -> str:
        """Fetch and pin the commit that a person named. Raises InvalidInput, RepositoryRefused."""
        project = self._engine.project(request.project)
        base = await self._mirrors.fetch_base(project, build=request.saga)
        taken = await self._merges.take(project, build=request.saga, onto=base, name=request.commit)
        return taken.commit

    @activity.defn
    async def assess_change(self, request: AssessInput) -> Assessed:
        """What ``new`` changes of ``old``. Raises OlderRelease when production has ``new`` and more already."""
        known = bool(request.old) and await self._sources.contains(request.project, request.old, ancestor=request.old)
        if not known:
            # Nothing is live, or nothing is known of it: everything is new then.
            files = await self._sources.files(request.project, request.new)
            paths = tuple(file.path for file in files[:MOST_PATHS])
            return Assessed(touched=Touched(files=len(files), lines=0, novel=len(files), paths=paths))
        newer = await self._sources.contains(request.project, request.old, ancestor=request.new)
        if newer and request.old != request.new:
            raise OlderRelease(
                f"production runs {request.old[:12]}, which has {request.new[:12]} and more: to go back, roll back"
            )
        diff = await self._sources.diff(request.project, request.old, request.new)
        return Assessed(touched=touched(diff), base=request.old)


def touched(diff: str) -> Touched:
    """Counted in a unified diff: changed lines, and files that are new."""
    parts = diff_parts(diff)
    lines = sum(line.startswith(("+", "-")) for part in parts for line in part.text.partition("\n@@")[2].splitlines())
    novel = sum("\nnew file mode " in part.text for part in parts)
    return Touched(files=len(parts), lines=lines, novel=novel, paths=tuple(p.path for p in parts[:MOST_PATHS]))
