"""The record of releases: what was delivered, by whom it was approved, how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

OPEN = "open"
PROMOTED, ROLLED_BACK, UNDELIVERED, UNCLEAR = "promoted", "rolled back", "undelivered", "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of a project; ``number`` counts from 1. ``status`` is "open", "promoted" (it serves, or served until
    the next one), "rolled back", "undelivered" (production never saw it) or "unclear" (what could not be undone is in
    ``record``). ``saga`` is the workflow that owns it, ``build`` the build that made it ("" for a commit of yours).

    ``kind`` is "deliver" or "rollback", ``previous`` the release that production had before (0: none), ``commit`` and
    ``artifact`` are digests. ``record`` holds the rest as JSON: approvals, verdicts, timings, residues, KPI series.
    ``revision`` counts the saga's writes; times are ms since 1970, 0 for not yet.
    """

    project: str
    number: int
    saga: str
    revision: int
    kind: str
    status: str
    commit: str
    build: str = ""
    artifact: str = ""
    config: str = ""
    previous: int = 0
    started: int = 0
    ended: int = 0
    sentence: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)


class Releases(Protocol):
    """All methods are safe across processes."""

    async def reserve(self, project: str, *, saga: str) -> int:
        """The project's next release number, from 1, never given twice; the same saga gets its own again."""
        ...

    async def record(self, release: Release) -> None:
        """Write a release as it is now; one with a higher ``revision`` that is there stays. Raises KeyConflict when the
        number belongs to another saga, or the same revision is there with another content; StoreUnavailable."""
        ...

    async def get(self, project: str, number: int) -> Release | None:
        """One release, or None."""
        ...

    async def list(self, project: str, *, limit: int = 50) -> Sequence[Release]:
        """Newest first."""
        ...
