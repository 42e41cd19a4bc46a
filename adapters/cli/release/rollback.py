"""``mendwork rollback``: take a release out of production, by its own saga while that runs, else by a new one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.cli.decide.saying import Said, tell
from adapters.cli.decide.terminal import is_terminal, read_line
from adapters.cli.exits import REFUSED
from adapters.cli.release.deliver import delivered_project, launch
from adapters.cli.release.releases import known_release
from adapters.cli.session import login, say
from adapters.settings import Settings
from domain.delivery.requests import ROLLBACK, DeliveryRequest
from domain.errors import InvalidInput
from domain.ports.releases import ROLLED_BACK, UNDELIVERED, Release
from domain.ports.sagas import RUNNING

if TYPE_CHECKING:
    from domain.ports.store import Store

GONE = {UNDELIVERED: "production never had it", ROLLED_BACK: "it is rolled back already"}
"""Releases that production does not have; an unclear one may be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """What a person asked for; ``to`` 0 means the release that production had before."""

    release: int
    project: str
    to: int = 0
    reason: str = ""
    by: str = ""
    yes: bool = False
    detach: bool = False
    json: bool = False


async def rollback(settings: Settings, back: Back) -> int:
    """Roll back; on a terminal a person confirms it first. Raises InvalidInput, UnknownName, Transient."""
    from adapters.store import open_store

    project = delivered_project(settings, back.project).name
    async with await open_store(settings.store_url) as store:
        release = await _checked(store, project, back)
    if not await _confirmed(release, back):
        say("nothing was sent")
        return REFUSED
    by = back.by or login()
    if await _runs(settings, release.saga):
        words = {"by": by, "reason": back.reason, "to": back.to}
        return await tell(settings, Said(build=release.saga, what="roll_back", words=words), json=back.json)
    request = DeliveryRequest(
        project=project, kind=ROLLBACK, release=release.number, to=back.to, by=by, reason=back.reason
    )
    return await launch(settings, request, detach=back.detach, json=back.json)


async def _checked(store: Store, project: str, back: Back) -> Release:
    release = await known_release(store, project, back.release)
    if release.status in GONE:
        raise InvalidInput(f"release {release.number} of {project} cannot be rolled back: {GONE[release.status]}")
    if back.to:
        to = await known_release(store, project, back.to)
        if to.number >= release.number:
            raise InvalidInput(f"--to {to.number}: a release before {release.number}")
    return release


async def _confirmed(release: Release, back: Back) -> bool:
    if back.yes or not is_terminal():  # a script named the release
        return True
    before = back.to or release.previous
    where = f"to release {before}" if before else "to what it had before"
    typed = await read_line(f"roll production of {release.project} back from release {release.number} {where}? [y/N] ")
    return (typed or "").lower() in ("y", "yes")


async def _runs(settings: Settings, saga: str) -> bool:
    from adapters.temporal.connect import connect
    from adapters.temporal.sagas import TemporalSagas

    client = await connect(settings, os.environ)
    return (await TemporalSagas(client).standings([saga]))[saga].state == RUNNING
