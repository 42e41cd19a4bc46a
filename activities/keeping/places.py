"""Keeping house where the things lie: mirrors, folders, environments."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from temporalio import activity

from domain.keeping.holders import idle_before
from domain.keeping.retention import Retention
from domain.keeping.sweeping import Kind
from domain.ports.kept.environments import KeptEnvironments
from domain.ports.kept.keeping import Folders, MirrorKeeping, Pins

MOST_PINS = 4_000
"""So many names travel at once, the oldest first; the next look finds the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPinsInput:
    """``project`` "" is every project that has a mirror."""

    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPinsInput:
    """``projects`` are tidied, after ``pins`` were removed; what no ref holds goes if it was written before ``before``
    (ms since 1970)."""

    pins: tuple[Pins, ...]
    projects: tuple[str, ...]
    before: int
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearFoldersInput:
    """What was made before ``before`` (ms since 1970), or by a dead worker, goes."""

    before: int
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEnvironmentsInput:
    """``began`` (ms since 1970) is the start of the oldest open build, 0 without one: what was used since stays."""

    now: int
    began: int = 0
    project: str = ""
    dry_run: bool = False


class MirrorHouse:
    """Runs where the mirrors are."""

    def __init__(self, *, keeping: MirrorKeeping, folders: Folders) -> None:
        self._keeping = keeping
        self._folders = folders

    @activity.defn
    async def list_pins(self, request: ListPinsInput) -> tuple[Pins, ...]:
        """What each mirror keeps; of very many names the oldest. Raises RepositoryRefused, ResourceShort."""
        projects = [name for name in await self._keeping.projects() if request.project in ("", name)]
        return tuple(_first([await self._keeping.pins(name) for name in projects]))

    @activity.defn
    async def drop_pins(self, request: DropPinsInput) -> Kind:
        """Remove refs, then let git pack and prune. Raises Overtaken, ResourceShort, RepositoryRefused."""
        count = sum(len(pins.builds) + len(pins.snapshots) for pins in request.pins)
        if request.dry_run:
            return Kind(
                kind="mirrors", count=count, why="what git would free is known only afterwards" if count else ""
            )
        for pins in request.pins:
            await self._keeping.drop(pins.project, builds=pins.builds, snapshots=pins.snapshots)
        freed = [await self._keeping.tidy(project, before=request.before) for project in request.projects]
        return Kind(kind="mirrors", count=count, bytes=sum(freed))

    @activity.defn
    async def clear_folders(self, request: ClearFoldersInput) -> Kind:
        """Checkouts, logs of runs and git indexes that nobody uses. Raises ResourceShort, StoreUnavailable."""
        found = await asyncio.to_thread(self._folders.abandoned, before=request.before, remove=not request.dry_run)
        return Kind(kind="folders", count=found.count, bytes=found.bytes)


class EnvironmentHouse:
    """Runs where environments are."""

    def __init__(self, *, environments: KeptEnvironments, retention: Mapping[str, Retention]) -> None:
        self._environments = environments
        self._retention = retention

    @activity.defn
    async def sweep_environments(self, request: SweepEnvironmentsInput) -> Kind:
        """Remove those that no build used for their project's retention. Raises StoreUnavailable, ResourceShort."""
        count = size = 0
        found = await self._environments.list()
        for each in found:
            days = self._retention.get(each.project, Retention()).environments
            idle = each.used_at * 1000 < idle_before(days, now=request.now, began=request.began)
            if not idle or request.project not in ("", each.project):
                continue
            if request.dry_run or await self._environments.remove(each.key):
                count, size = count + 1, size + each.bytes
        return Kind(kind="environments", count=count, bytes=size, stayed=len(found) - count)


def _first(pins: Iterable[Pins]) -> Iterable[Pins]:
    left = MOST_PINS
    for each in pins:
        builds, snapshots = each.builds[:left], each.snapshots[: max(0, left - len(each.builds))]
        left -= len(builds) + len(snapshots)
        yield Pins(project=each.project, builds=builds, snapshots=snapshots, bytes=each.bytes)
