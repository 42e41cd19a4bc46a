"""From an answered change to a commit that waits for its gates, and to the build's head."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from activities.documents import canonical, read_change, read_plan
from activities.intake import Engine
from domain.build.change import needed
from domain.build.message import Authorship, commit_message
from domain.build.prompt import Prompt
from domain.errors import StaleChange
from domain.ports.blobs import Blobs
from domain.ports.workspace import CommitRequest, Mirrors, Sources, Workspaces


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyChangeInput:
    """``change``, ``plan`` and ``prompt`` are digests; ``at`` is the commit's time, seconds since 1970: a repeat, the
    same SHA. The prompt has to have shown ``base``; with "" that is not checked (histories from before it was)."""

    project: str
    build: str
    task: str
    plan: str
    base: str
    change: str
    model: str
    attempt: int
    at: int
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChange:
    """``written`` is the digest of a JSON object from path to SHA-256, ``diff`` of the unified diff; ``touched`` are
    the paths. A change that asks for more of the repository has ``needs`` (paths) and nothing else."""

    commit: str
    written: str
    diff: str
    files: int
    touched: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceHeadInput:
    """Move the build's head from ``old`` to ``new``."""

    project: str
    build: str
    old: str
    new: str


class Changes:
    """Runs where the mirrors are."""

    def __init__(
        self, *, engine: Engine, workspaces: Workspaces, mirrors: Mirrors, sources: Sources, blobs: Blobs
    ) -> None:
        self._engine = engine
        self._workspaces = workspaces
        self._mirrors = mirrors
        self._sources = sources
        self._blobs = blobs

    @activity.defn
    async def apply_change(self, request: ApplyChangeInput) -> AppliedChange:
        """Commit the change on its base, or say what it needs to see. Raises InvalidChange with a reason for the model,
        StaleChange."""
        limits = self._engine.project(request.project).limits
        await self._check_prompt(request)
        change = await read_change(self._blobs, request.change)
        if change.needs and not change.operations:
            tree = await self._sources.files(request.project, request.base)
            needs = needed(change, (file.path for file in tree if file.kind in ("file", "executable")))
            return AppliedChange(commit="", written="", diff="", files=0, needs=needs)
        task = (await read_plan(self._blobs, request.plan)).task(request.task)
        made = Authorship(build=request.build, task=request.task, model=request.model, attempt=request.attempt)
        candidate = await self._workspaces.commit(
            CommitRequest(
                project=request.project,
                build=request.build,
                base=request.base,
                change=change,
                message=commit_message(change.summary, task.title, made),
                at=request.at,
                file_bytes=limits.file_bytes,
                files=limits.files_per_change,
            )
        )
        diff = await self._sources.diff(request.project, request.base, candidate.commit)
        return AppliedChange(
            commit=candidate.commit,
            written=await self._blobs.put(canonical(dict(candidate.written))),
            diff=await self._blobs.put(diff.encode()),
            files=len(candidate.written),
            touched=tuple(sorted(candidate.written)),
        )

    async def _check_prompt(self, request: ApplyChangeInput) -> None:
        """Edits that fit another tree by accident would be worse than none."""
        if not request.prompt:
            return
        shown = Prompt.from_bytes(await self._blobs.get(request.prompt)).base
        if shown != request.base:
            raise StaleChange(
                f"the change of task {request.task} was written against {shown[:12] or 'no known commit'} and not "
                f"against {request.base[:12]}: ask for it again with the files as they are now"
            )

    @activity.defn
    async def advance_head(self, request: AdvanceHeadInput) -> None:
        """Compare-and-set; a repeat is success. Raises Overtaken when another writer was first."""
        await self._mirrors.advance(request.project, build=request.build, old=request.old, new=request.new)
