"""What two builds made, as texts: from the mirror where it is on this machine, otherwise from the diffs they noted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.settings import Settings
from domain.errors import MendworkError
from domain.trace.comparing import between
from domain.trace.parts import BuildDetails

if TYPE_CHECKING:
    from domain.ports.blobs import Blobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Where a build stands: its commits, and the digests of the diffs that make up its change, as far as it noted
    them. One that goes on from a snapshot notes only its own until it has ended."""

    project: str
    base: str
    head: str
    diffs: tuple[str, ...]

    @classmethod
    def of(cls, details: BuildDetails) -> Result:
        """As the log tells it."""
        merged = [task for task in details.tasks.values() if task.status == "merged"]
        parts = [task.merge.diff or next((a.diff for a in reversed(task.attempts) if a.diff), "") for task in merged]
        diffs = (details.diff,) if details.diff else tuple(filter(None, parts))
        return cls(project=details.project, base=details.base, head=details.head, diffs=diffs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """``left`` and ``right`` are the two changes, ``diff`` is what differs between their results. ``source`` is
    "commits", or "patches" where only the changes' own diffs are at hand."""

    left: str
    right: str
    diff: str
    source: str


async def difference(settings: Settings, blobs: Blobs, left: Result, right: Result) -> Difference:
    """Raises BlobMissing, DigestMismatch when neither the commits nor the diffs are there any more."""
    found = await _of_commits(settings, left, right)
    if found is not None:
        return found
    one, other = [await _patches(blobs, result) for result in (left, right)]
    return Difference(left=one, right=other, diff=between(one, other), source="patches")


async def _of_commits(settings: Settings, left: Result, right: Result) -> Difference | None:
    """None where the mirror is not here, or has not all the commits (any more)."""
    mirror = settings.common / "mirrors" / f"{left.project}.git"
    commits = (left.base, left.head, right.base, right.head)
    if left.project != right.project or not left.project or not all(commits) or not mirror.is_dir():
        return None
    from adapters.git.adapter import open_git

    try:
        sources = open_git(settings.state, common=settings.common).sources
        return Difference(
            left=await sources.diff(left.project, left.base, left.head),
            right=await sources.diff(right.project, right.base, right.head),
            diff=await sources.diff(left.project, left.head, right.head),
            source="commits",
        )
    except MendworkError:  # a build that was undone, and collected since
        return None


async def _patches(blobs: Blobs, result: Result) -> str:
    return "".join([(await blobs.get(digest)).decode(errors="replace") for digest in result.diffs])
