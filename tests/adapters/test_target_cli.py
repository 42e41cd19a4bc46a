"""``mendwork target``: status, stop and start of adapters.target.local."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.cli.release.target import show, start_serving, stop_serving
from adapters.compliance.delivery.target import SITE, order_of, state_of
from adapters.settings import Settings
from adapters.target.local.adapter import LocalTarget
from adapters.target.local.loopback import look
from domain.kpi.probe import Probe
from domain.ports.target import HEALTHY
from tests.adapters.target_scenes import alive, descendants, local_target, until, up


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(root=tmp_path)


@pytest.fixture
async def target(settings: Settings) -> AsyncIterator[LocalTarget]:
    async with local_target(settings.state) as target:
        yield target


async def test_where_nothing_was_released_status_and_stop_say_so_and_make_nothing(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await show(settings, json=False) == 0
    assert await stop_serving(settings) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("supervisor  does not run\n", "nothing was running\n")
    assert not settings.state.exists()


async def test_status_tells_sites_and_units(
    settings: Settings, target: LocalTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    await up(target, 1, 2, live=1)
    await show(settings, json=True)
    seen = json.loads(capsys.readouterr().out)
    (site,) = seen["sites"]
    assert (site["project"], site["environment"], site["live"]) == ("notes", "production", 1)
    assert alive(seen["supervisor"])
    assert alive(site["pid"])
    assert [(unit["release"], unit["live"]) for unit in site["units"]] == [(1, True), (2, False)]
    assert all(alive(unit["pid"]) and unit["port"] for unit in site["units"])
    await show(settings, json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("notes  production  release 1  http://127.0.0.1:")
    assert lines[2].endswith("  live")
    assert len(lines) == 4


async def test_stop_ends_everything_and_start_brings_back_what_was_live(
    settings: Settings, target: LocalTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    await up(target, 1, 2, live=1)
    await target.traffic.switch(SITE, 2, expected=1)
    before = list(descendants(target.supervisor.pid()))
    await stop_serving(settings)
    await until(lambda: not [pid for pid in before if alive(pid)])
    assert "4 programs ended" in capsys.readouterr().err
    assert not (await target.traffic.health(SITE, Probe())).ok
    await show(settings, json=True)
    stopped = json.loads(capsys.readouterr().out)
    assert (stopped["supervisor"], stopped["sites"][0]["live"]) == (0, 2)
    await start_serving(settings)
    for release in (1, 2):
        await state_of(target, order_of(release, ()).unit, HEALTHY)
    port = stopped["sites"][0]["url"].rpartition(":")[2]
    await until(lambda: look(int(port), Probe()).release == 2)


async def test_stop_also_ends_what_a_killed_supervisor_left(
    settings: Settings, target: LocalTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    await up(target, 1, live=1)
    before = list(descendants(target.supervisor.pid()))
    os.kill(before[0], signal.SIGKILL)
    await until(lambda: not alive(before[0]))
    assert (await target.traffic.health(SITE, Probe())).ok
    await stop_serving(settings)
    await until(lambda: not [pid for pid in before if alive(pid)])
    assert "2 programs ended" in capsys.readouterr().err
