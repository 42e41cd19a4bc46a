"""Looking at a target: what its traffic goes to, whether a unit is healthy, who answers from outside."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from domain.delivery.project import Delivery
from domain.errors import ReleaseDied, ReleaseSilent
from domain.ports.target import ABSENT, DEAD, HEALTHY, STAGING, Live, Site, Target, Unit, UnitStatus

LOOK_SECONDS = 0.2
PROOF_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a site's traffic goes to; ``release`` 0: it has none yet."""

    release: int = 0
    artifact: str = ""
    config: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was seen from outside: ``release`` answered with ``status``; ``ok`` when that is what was meant."""

    ok: bool
    release: int
    status: int
    sentence: str = ""


def site_of(project: str, delivery: Delivery, environment: str) -> Site:
    """A project's site, with the port that the configuration gives it."""
    port = delivery.staging_port if environment == STAGING else delivery.port
    return Site(project=project, environment=environment, port=port)


def snapshot(live: Live | None) -> Snapshot:
    if live is None:
        return Snapshot()
    return Snapshot(release=live.release, artifact=live.artifact, config=live.config, url=live.url)


async def until_healthy(target: Target, unit: Unit, *, patience: float) -> UnitStatus:
    name = f"release {unit.release} on {unit.environment}"
    until = time.monotonic() + patience
    while True:
        status = await target.units.poll(unit)
        if status.state == HEALTHY:
            return status
        if status.state in (DEAD, ABSENT):
            raise ReleaseDied(f"{name} ended by itself: {status.sentence or status.state}"[:300])
        if time.monotonic() > until:
            raise ReleaseSilent(
                f"{name} was not healthy within {patience:g} s: {status.sentence or status.state}"[:300]
            )
        await asyncio.sleep(LOOK_SECONDS)


async def prove(target: Target, site: Site, delivery: Delivery, *, release: int) -> Proof:
    """A release that was just switched to may need a moment; what serves the wrong one is no matter of time."""
    until = time.monotonic() + PROOF_SECONDS
    while True:
        seen = await target.traffic.health(site, delivery.health)
        ok = (seen.release == release and seen.ok) if release else seen.release == 0 and not seen.ok
        if ok or time.monotonic() > until:
            return Proof(ok=ok, release=seen.release, status=seen.status, sentence=seen.sentence[:300])
        await asyncio.sleep(LOOK_SECONDS)
