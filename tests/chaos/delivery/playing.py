"""One case of the deliveries' kill table: five releases of one shop, and what each left outside.

The first release goes to an empty target and is promoted. The second fails its watch and is rolled back. The third is
aborted while it is tested on staging. The fourth is a build's, and promoted. The fifth fails its watch too, and cannot
be rolled back: what production had before is gone.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import kill
from pathlib import Path
from typing import Any

from adapters.target.local.adapter import open_local
from domain.delivery.requests import delivery_name, delivery_saga_id
from domain.ports.target import PRODUCTION
from tests.chaos.delivery.cases import ABORTED, BREACHED, BUILT, FIRST, UNCLEAR, Case
from tests.chaos.delivery.stage import SHOP, ShopStage
from tests.chaos.delivery.telling import Chapter, Teller, telling
from tests.chaos.mortal_worker import MOMENTS, forget_deaths, forks, held, order_death, order_hold, parsed
from tests.grafting import grafted
from tests.invariants import check_invariants

BUILD = f"build-{SHOP}-1"
STRUCK = ("saga", "deploy", "saga", "deploy", "sandbox", "workspace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The chapters by their names, and the workers that were struck."""

    chapters: Mapping[str, Chapter]
    struck: Sequence[str]
    seconds: float


def play(case: Case, folder: Path) -> Played:
    """Run the case in a workshop of its own, check the invariants, and say what came of it."""
    began, at = time.monotonic(), ShopStage(folder)
    with at.serving(grafted("mortal")):
        chapters, struck = asyncio.run(_play(case, at))
        for name in (BUILD, *(delivery_name(SHOP, number) for number in (1, 2, 3, 5))):
            check_invariants(at, name)
    return Played(chapters=chapters, struck=struck, seconds=time.monotonic() - began)


async def _play(case: Case, at: ShopStage) -> tuple[dict[str, Chapter], list[str]]:
    chapters: dict[str, Chapter] = {}
    struck: list[str] = []
    async with telling(at) as teller:
        striking = asyncio.create_task(_strike(case, at, struck))
        for number, name in enumerate((FIRST, BREACHED, ABORTED, BUILT, UNCLEAR), 1):
            before = await asyncio.to_thread(at.outside)
            _order(at, case.orders.get(name, ()))
            await TELLING[name](teller, number)
            chapters[name] = await teller.told(number, before)
            forget_deaths(at.state)
            if name == BREACHED:
                await teller.acknowledge()
        striking.cancel()
        await striking
    return chapters, struck


def _order(at: ShopStage, orders: Sequence[str]) -> None:
    for each in orders:
        order, spared = parsed(each)
        order_death(at.state, order, spared=spared)


async def _strike(case: Case, at: ShopStage, struck: list[str]) -> None:
    """kill -9 of workers at moments that nobody chose."""
    chance = random.Random(case.seed)
    with suppress(asyncio.CancelledError):
        while len(struck) < case.strikes:
            await asyncio.sleep(chance.uniform(0.3, 3.0))
            name = chance.choice(STRUCK)
            with suppress(ProcessLookupError, KeyError):
                kill(forks(at.state)[name], signal.SIGKILL)
                struck.append(name)


async def _promoted(teller: Teller, number: int) -> None:
    await teller.ended(await teller.begin(number, "main"))


async def _breached(teller: Teller, number: int) -> None:
    await teller.ended(await teller.begin(number, "bad"))


async def _aborted(teller: Teller, number: int) -> None:
    """While the integration tests stand still, a person ends it."""
    hold = "run_integration.before"
    order_hold(teller.at.state, hold)
    saga = await teller.begin(number, "better")
    await teller.until(lambda: held(teller.at.state, hold), why="the integration tests")
    ruling = await teller.say(saga, "abort", {"by": "cyd", "reason": "not today"})
    assert ruling["outcome"] == "accepted", ruling
    await teller.ended(saga)
    (teller.at.state / "holds" / hold).unlink()


async def _built(teller: Teller, number: int) -> None:
    """A build, whose release a person approves; where its look at the delivery is to die, not before that."""
    started = await asyncio.to_thread(teller.at.mendwork, "build", "spec.md", "--detach")
    assert started.code == 0, started.err
    saga = delivery_saga_id(BUILD)
    teller.cases[number] = (saga, BUILD)

    async def asked() -> dict[str, Any] | None:
        opened = (e.data for e in await teller.events(BUILD) if e.kind == "ask.opened")
        return next((dict(data) for data in opened if data["about"] == "release"), None)

    ask = await teller.until(asked, why="the question about the release")
    looks = [teller.at.state / "kills" / f"look_at_holder.{moment}" for moment in MOMENTS]
    await teller.until(lambda: not any(order.exists() for order in looks), why="the death of the look")
    ruling = await teller.say(saga, "approve", {"digest": ask["digest"], "by": "ann"})
    assert ruling["outcome"] == "accepted", ruling
    await teller.ended(BUILD)


async def _unclear(teller: Teller, number: int) -> None:
    """When traffic is to be led back, what it would be led back to is gone."""
    hold, production = "restore_traffic.before", open_local(teller.at.state).folders.root / SHOP / PRODUCTION
    order_hold(teller.at.state, hold)
    saga = await teller.begin(number, "worse")
    await teller.until(lambda: held(teller.at.state, hold), why="the rollback")
    shutil.rmtree(production / str(number - 1))
    (teller.at.state / "holds" / hold).unlink()
    await teller.ended(saga)


TELLING = {FIRST: _promoted, BREACHED: _breached, ABORTED: _aborted, BUILT: _built, UNCLEAR: _unclear}
