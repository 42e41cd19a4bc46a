"""Keeping house: one activity for each kind of thing, in the process that has it; what fails stops only its own kind.

A schedule starts it once a day, and so does ``mendwork gc``. Any number may run at once.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.faults import last_fault
from workflows.policies import SANDBOX, WORKSPACE, Effects, granting

with workflow.unsafe.imports_passed_through():
    from activities.keeping.places import (
        ClearFoldersInput,
        DropPinsInput,
        EnvironmentHouse,
        ListPinsInput,
        MirrorHouse,
        SweepEnvironmentsInput,
    )
    from activities.keeping.stored import JudgedPins, JudgePinsInput, Keeping, SweepBlobsInput
    from domain.build.requests import decode
    from domain.errors import MendworkError
    from domain.keeping.holders import DAY_MS
    from domain.keeping.sweeping import Kind

SECONDS = 3_600.0
"""One kind of thing, in a large installation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseRequest:
    """``dry_run`` only counts, ``project`` "" is all of them, ``afresh`` makes the reference table again first.
    ``heartbeat`` and ``grace`` in seconds: what was written within ``grace`` is never taken."""

    heartbeat: float = 5.0
    dry_run: bool = False
    project: str = ""
    afresh: bool = False
    grace: float = DAY_MS / 1000


@workflow.defn(failure_exception_types=[MendworkError])
class Housekeeper:
    """One look at everything."""

    @workflow.run
    async def run(self, request: Any = None) -> tuple[Kind, ...]:
        """Takes a HouseRequest as plain JSON."""
        wanted = decode(HouseRequest, {} if request is None else request)
        self._effects = Effects(heartbeat=timedelta(seconds=wanted.heartbeat))
        self._wanted = wanted
        self._now = int(workflow.now().timestamp() * 1000)
        self._grace = int(wanted.grace * 1000)
        self._began: int | None = None
        kinds = [await self._kind("blobs", self._blobs()), await self._kind("mirrors", self._mirrors())]
        if self._began is None:
            kinds.append(replace(kinds[-1], kind="environments"))  # what is open is not known, for the same reason
        else:
            kinds.append(await self._kind("environments", self._environments(self._began)))
        if not wanted.project:
            kinds.append(await self._kind("folders", self._folders()))
        return tuple(kinds)

    async def _kind(self, name: str, work: Awaitable[Kind]) -> Kind:
        try:
            return await work
        except ActivityError as error:
            fault = last_fault(error)
            return Kind(kind=name, why=fault.sentence, fault=fault.kind)

    async def _blobs(self) -> Kind:
        asked = SweepBlobsInput(
            now=self._now,
            dry_run=self._wanted.dry_run,
            project=self._wanted.project,
            grace=self._grace,
            afresh=self._wanted.afresh,
        )
        policy = granting(replace(WORKSPACE, queue=""), SECONDS)
        return await self._effects.run(policy, Keeping.sweep_blobs, asked, summary="blobs that nothing names")

    async def _mirrors(self) -> Kind:
        """The store judges first: what is open is known then, too."""
        policy = granting(WORKSPACE, SECONDS)
        pins = await self._effects.run(policy, MirrorHouse.list_pins, ListPinsInput(project=self._wanted.project))
        judged: JudgedPins = await self._effects.run(
            granting(replace(WORKSPACE, queue=""), SECONDS),
            Keeping.judge_pins,
            JudgePinsInput(now=self._now, pins=pins, grace=self._grace),
        )
        self._began = judged.began
        asked = DropPinsInput(
            pins=judged.pins,
            projects=tuple(each.project for each in pins),
            before=judged.before,
            dry_run=self._wanted.dry_run,
        )
        done: Kind = await self._effects.run(policy, MirrorHouse.drop_pins, asked, summary="refs of builds, packing")
        return replace(done, stayed=judged.stayed)

    async def _environments(self, began: int) -> Kind:
        asked = SweepEnvironmentsInput(
            now=self._now, began=began, project=self._wanted.project, dry_run=self._wanted.dry_run
        )
        policy = granting(SANDBOX, SECONDS)
        return await self._effects.run(policy, EnvironmentHouse.sweep_environments, asked, summary="environments")

    async def _folders(self) -> Kind:
        """A day old, whatever else: no run takes so long."""
        asked = ClearFoldersInput(before=self._now - max(self._grace, DAY_MS), dry_run=self._wanted.dry_run)
        policy = granting(WORKSPACE, SECONDS)
        return await self._effects.run(policy, MirrorHouse.clear_folders, asked, summary="checkouts and logs")
