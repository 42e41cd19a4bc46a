"""What every deploy target must do. Subclass with the fixtures ``target`` and ``commands``."""

from __future__ import annotations

import asyncio
import hashlib
import io
import tarfile
import time
from collections.abc import Mapping
from dataclasses import replace

import pytest

from domain.errors import DigestMismatch, InvalidInput, KeyConflict, Overtaken, ReleaseDied, ReleaseMissing
from domain.errors import ReleaseSilent as Silent
from domain.kpi.probe import Probe
from domain.ports.target import ABSENT, DEAD, HEALTHY, STARTING, UNHEALTHY, Order, Site, Target, Unit, UnitStatus

SITE = Site(project="notes", environment="production")
# Answers every path with its version; "/told" tells a variable.
SERVICE = """
import http.server, os, socketserver, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path == "/slow":
            time.sleep(1.0)
        text = os.environ.get("TOLD", "") if self.path == "/told" else "version of " + os.environ["PORT"]
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-Mendwork-Release", "999")
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *arguments):
        pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, request_queue_size = True, 128
if "dies" in sys.argv:
    sys.exit("it cannot start")
if "silent" in sys.argv:
    time.sleep(600)
Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""


def tar_of(files: Mapping[str, str]) -> bytes:
    """An artefact."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def order_of(release: int, run: tuple[str, ...], *, told: str = "", site: Site = SITE) -> Order:
    """Release ``release`` of the service above, with a configuration of its own."""
    content = tar_of({"service.py": SERVICE, "release.txt": str(release)})
    return Order(
        unit=Unit(project=site.project, environment=site.environment, release=release),
        artifact=hashlib.sha256(content).hexdigest(),
        config=hashlib.sha256(told.encode()).hexdigest(),
        run=run,
        health=Probe(path="/health", contains="version"),
        content=content,
        environment={"TOLD": told},
    )


async def state_of(target: Target, unit: Unit, *states: str, seconds: float = 30.0) -> UnitStatus:
    """Wait until a unit is in one of ``states``. Raises AssertionError when it does not come."""
    give_up = time.monotonic() + seconds
    while (status := await target.units.poll(unit)).state not in states:
        assert time.monotonic() < give_up, status
        await asyncio.sleep(0.05)
    return status


class TargetCompliance:
    """``commands`` is what a release is run with: for one that "serves", that "dies" at its start, and that is
    "silent"; and a command that comes out "true" or "false"."""

    @pytest.fixture
    def commands(self) -> Mapping[str, tuple[str, ...]]:
        raise NotImplementedError

    async def up(self, target: Target, commands: Mapping[str, tuple[str, ...]], *releases: int) -> None:
        """Trigger and wait for them."""
        for release in releases:
            await target.units.trigger(order_of(release, commands["serves"], told=f"told {release}"))
        for release in releases:
            await state_of(target, order_of(release, ()).unit, HEALTHY)

    async def test_nothing_is_missing_here(self, target: Target) -> None:
        assert target.missing() == {}

    async def test_before_the_first_release_there_is_nothing(self, target: Target) -> None:
        assert await target.traffic.current(SITE) is None
        assert (await target.units.poll(order_of(1, ()).unit)).state == ABSENT
        assert not (await target.traffic.health(SITE, Probe())).ok
        assert await target.units.remove(order_of(1, ()).unit)

    async def test_a_release_starts_gets_traffic_and_is_followed_by_the_next(
        self, target: Target, commands: Mapping[str, tuple[str, ...]]
    ) -> None:
        await self.up(target, commands, 1, 2)
        first = await target.traffic.switch(SITE, 1, expected=0)
        assert (first.release, first.artifact) == (1, order_of(1, ()).artifact)
        assert (await target.traffic.health(SITE, Probe())).release == 1
        second = await target.traffic.switch(SITE, 2, expected=1)
        assert (second.release, second.url) == (2, first.url)
        assert await target.traffic.current(SITE) == second
        assert (await target.traffic.health(SITE, Probe())).release == 2
        assert (await target.units.poll(order_of(1, ()).unit)).state == HEALTHY, "it stays as the baseline"

    async def test_everything_may_be_repeated(self, target: Target, commands: Mapping[str, tuple[str, ...]]) -> None:
        await self.up(target, commands, 1)
        before = await target.units.poll(order_of(1, ()).unit)
        await self.up(target, commands, 1)
        assert await target.units.poll(order_of(1, ()).unit) == before
        live = await target.traffic.switch(SITE, 1, expected=0)
        assert await target.traffic.switch(SITE, 1, expected=0) == live
        assert await target.traffic.roll_back(SITE, 1) == live
        assert await target.traffic.roll_back(SITE, 0) is None
        assert await target.traffic.roll_back(SITE, 0) is None
        assert await target.units.remove(order_of(1, ()).unit)
        assert await target.units.remove(order_of(1, ()).unit)

    async def test_the_same_release_with_another_content_is_refused(
        self, target: Target, commands: Mapping[str, tuple[str, ...]]
    ) -> None:
        order = order_of(1, commands["serves"])
        await target.units.trigger(order)
        with pytest.raises(KeyConflict):
            await target.units.trigger(replace(order, config="other"))
        with pytest.raises(DigestMismatch):
            await target.units.trigger(replace(order, content=b"other"))
        with pytest.raises(InvalidInput):
            await target.units.trigger(replace(order_of(2, ()), run=()))

    async def test_a_switch_from_where_traffic_does_not_go_is_refused(
        self, target: Target, commands: Mapping[str, tuple[str, ...]]
    ) -> None:
        await self.up(target, commands, 1, 2)
        live = await target.traffic.switch(SITE, 1, expected=0)
        with pytest.raises(Overtaken):
            await target.traffic.switch(SITE, 2, expected=0)
        assert await target.traffic.current(SITE) == live

    @pytest.mark.parametrize(("what", "state", "error"), [("dies", DEAD, ReleaseDied), ("silent", STARTING, Silent)])
    async def test_a_release_that_does_not_serve_gets_no_traffic(
        self, target: Target, commands: Mapping[str, tuple[str, ...]], what: str, state: str, error: type[Exception]
    ) -> None:
        await self.up(target, commands, 1)
        live = await target.traffic.switch(SITE, 1, expected=0)
        await target.units.trigger(order_of(2, commands[what]))
        status = await state_of(target, order_of(2, ()).unit, state, *([UNHEALTHY] if state == STARTING else []))
        assert status.state in (state, UNHEALTHY)
        with pytest.raises(error):
            await target.traffic.switch(SITE, 2, expected=1)
        with pytest.raises(error):
            await target.traffic.roll_back(SITE, 2)
        assert await target.traffic.current(SITE) == live
        assert (await target.traffic.health(SITE, Probe())).release == 1

    async def test_a_release_that_has_the_traffic_cannot_be_removed(
        self, target: Target, commands: Mapping[str, tuple[str, ...]]
    ) -> None:
        await self.up(target, commands, 1)
        await target.traffic.switch(SITE, 1, expected=0)
        with pytest.raises(KeyConflict):
            await target.units.remove(order_of(1, ()).unit)
        assert (await target.traffic.health(SITE, Probe())).ok

    async def test_traffic_goes_back_and_takes_its_configuration_along(
        self, target: Target, commands: Mapping[str, tuple[str, ...]]
    ) -> None:
        await self.up(target, commands, 1, 2)
        first = await target.traffic.switch(SITE, 1, expected=0)
        second = await target.traffic.switch(SITE, 2, expected=1)
        assert second.config != first.config
        assert await target.traffic.roll_back(SITE, 1) == first
        assert await target.units.remove(order_of(2, ()).unit)
        with pytest.raises(ReleaseMissing):
            await target.traffic.roll_back(SITE, 2)
        assert await target.traffic.roll_back(SITE, 0) is None
        assert await target.traffic.current(SITE) is None
        assert not (await target.traffic.health(SITE, Probe())).ok

    async def test_sites_do_not_meet(self, target: Target, commands: Mapping[str, tuple[str, ...]]) -> None:
        other = Site(project="notes", environment="staging")
        await target.units.trigger(order_of(1, commands["serves"], site=other))
        await self.up(target, commands, 1)
        await state_of(target, order_of(1, (), site=other).unit, HEALTHY)
        await target.traffic.switch(other, 1, expected=0)
        assert await target.traffic.current(SITE) is None
        await target.units.remove(order_of(1, ()).unit)
        assert (await target.traffic.health(other, Probe())).ok

    async def test_a_command_runs_once(self, target: Target, commands: Mapping[str, tuple[str, ...]]) -> None:
        await self.up(target, commands, 1)
        unit = order_of(1, ()).unit
        for _ in range(2):
            assert (await target.units.command(unit, commands["true"], key="a", seconds=20)).state == HEALTHY
            failed = await target.units.command(unit, commands["false"], key="b", seconds=20)
            assert (failed.state, failed.kind) == (DEAD, "ReleaseDied")
        with pytest.raises(ReleaseMissing):
            await target.units.command(order_of(2, ()).unit, commands["true"], key="a", seconds=20)
