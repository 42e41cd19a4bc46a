"""The record of releases, for sagas."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from domain.delivery.recalling import LOOKED_AT, past
from domain.ports.releases import Release, Releases
from domain.risk.evidence import Past


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenReleaseInput:
    """``saga`` is who will own the number."""

    project: str
    saga: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordReleaseInput:
    """A release as it is now; its ``revision`` is higher than that of every write before."""

    release: Release


@dataclass(frozen=True, slots=True, kw_only=True)
class FindReleaseInput:
    """Which release to look for."""

    project: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPastInput:
    """Whose releases to count."""

    project: str


class ReleaseBook:
    """Runs beside the store. Every method may be repeated."""

    def __init__(self, *, releases: Releases) -> None:
        self._releases = releases

    @activity.defn
    async def open_release(self, request: OpenReleaseInput) -> int:
        """The saga's release number. Raises StoreUnavailable."""
        return await self._releases.reserve(request.project, saga=request.saga)

    @activity.defn
    async def record_release(self, request: RecordReleaseInput) -> None:
        """Raises KeyConflict, StoreUnavailable."""
        await self._releases.record(request.release)

    @activity.defn
    async def find_release(self, request: FindReleaseInput) -> Release | None:
        """None when there is no such release. Raises StoreUnavailable."""
        return await self._releases.get(request.project, request.number)

    @activity.defn
    async def count_past(self, request: CountPastInput) -> Past:
        """How the project's last deliveries ended. Raises StoreUnavailable."""
        return past(await self._releases.list(request.project, limit=LOOKED_AT))
