"""Releases of several projects that come to one target in the same moment share nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from adapters.compliance.delivery.target import order_of
from domain.ports.target import PRODUCTION, STAGING, Site
from tests.adapters.target_scenes import COMMANDS, local_target

PROJECTS = 3


async def test_each_has_a_port_and_a_user_of_its_own(tmp_path: Path) -> None:
    sites = [Site(project=f"p{n}", environment=each) for n in range(PROJECTS) for each in (STAGING, PRODUCTION)]
    orders = [order_of(1, COMMANDS["serves"], site=site) for site in sites]
    async with local_target(tmp_path) as target:
        await asyncio.gather(*(target.units.trigger(order) for order in orders))
        placed = [target.folders.order(order.unit) or {} for order in orders]
    assert len({each["port"] for each in placed}) == len(sites)
    assert os.geteuid() != 0 or len({each["uid"] for each in placed}) == len(sites)
