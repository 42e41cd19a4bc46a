"""Bringing tasks together: rebases inside the mirror, commits that people made by hand, the target as it is now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from temporalio import activity

from activities.intake import Engine
from domain.ports.blobs import Blobs
from domain.ports.workspace import Merges, RebaseRequest, Sources

_CONFLICTS = 100
_PATHS = 500
_PATH_BYTES = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RebaseInput:
    """The commits from ``base`` to ``head``, written again on top of ``onto``."""

    project: str
    build: str
    onto: str
    base: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RebasedCommit:
    """``commit`` is "" when there are ``conflicts`` (the first 100 paths): then ``report`` is the digest of what shows
    them. ``diff`` is the digest of the difference to ``onto``, ``touched`` its paths; of very many, the folders."""

    commit: str
    conflicts: tuple[str, ...] = ()
    report: str = ""
    diff: str = ""
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeCommitInput:
    """``name`` is a branch or a SHA that a person gave, ``onto`` the build's head."""

    project: str
    build: str
    onto: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenCommit:
    """``base`` is where the commit left the build's history; ``diff`` the digest of what lies between."""

    commit: str
    base: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTargetInput:
    """Whose target branch to fetch, and the build to pin it for."""

    project: str
    build: str


class Merging:
    """Runs where the mirrors are."""

    def __init__(self, *, engine: Engine, merges: Merges, sources: Sources, blobs: Blobs) -> None:
        self._engine = engine
        self._merges = merges
        self._sources = sources
        self._blobs = blobs

    @activity.defn
    async def rebase_commits(self, request: RebaseInput) -> RebasedCommit:
        """Conflicts are a result. Raises RepositoryRefused."""
        rebased = await self._merges.rebase(
            RebaseRequest(
                project=request.project,
                build=request.build,
                onto=request.onto,
                base=request.base,
                head=request.head,
            )
        )
        if rebased.conflicts:
            report = await self._blobs.put(rebased.report.encode(errors="replace"))
            return RebasedCommit(commit="", conflicts=rebased.conflicts[:_CONFLICTS], report=report)
        diff = await self._diff(request.project, request.onto, rebased.commit)
        return RebasedCommit(commit=rebased.commit, diff=diff, touched=covering(rebased.touched))

    @activity.defn
    async def take_commit(self, request: TakeCommitInput) -> TakenCommit:
        """A person's commit from the user's repository. Raises InvalidInput."""
        project = self._engine.project(request.project)
        taken = await self._merges.take(project, build=request.build, onto=request.onto, name=request.name)
        diff = await self._diff(request.project, taken.base, taken.commit)
        return TakenCommit(commit=taken.commit, base=taken.base, diff=diff)

    @activity.defn
    async def fetch_target(self, request: FetchTargetInput) -> str:
        """The target branch's commit as it is now. Raises RepositoryRefused."""
        return await self._merges.target(self._engine.project(request.project), build=request.build)

    async def _diff(self, project: str, old: str, new: str) -> str:
        return await self._blobs.put((await self._sources.diff(project, old, new)).encode())


def covering(paths: Iterable[str]) -> tuple[str, ...]:
    """``paths``, or few enough folders that hold them all, deepest first to go: a history has no room for thousands.

    Past 500 files at the top of a repository the rest is left out; what a lock misses, the merge finds.
    """
    found = set(paths)
    while depth := max((path.count("/") for path in found), default=0):
        if len(found) <= _PATHS and sum(len(path.encode()) for path in found) <= _PATH_BYTES:
            break
        found = {path.rpartition("/")[0] if path.count("/") == depth else path for path in found}
    return tuple(sorted(found)[:_PATHS])
