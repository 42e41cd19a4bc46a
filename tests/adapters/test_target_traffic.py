"""Under load: no request is lost by a switch or a roll-back (adapters.target.local)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from adapters.compliance.delivery.target import SITE, order_of
from adapters.target.local.adapter import LocalTarget
from domain.kpi.probe import Probe
from domain.ports.target import ABSENT, HEALTHY
from tests.adapters.target_scenes import local_target, until, up

LINES = 5  # each asks ten times a second: fifty together


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[LocalTarget]:
    async with local_target(tmp_path) as target:
        await up(target, 1, 2, live=1)
        yield target


@dataclass
class Load:
    """Requests to one port, half of them on connections that stay, and what became of them."""

    port: int
    answers: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    over: bool = False

    async def kept(self) -> None:
        """One connection for all requests: when it is closed on us, the next request fails."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while not self.over:
            await self.note(ask(reader, writer, "/"))
            await asyncio.sleep(0.1)
        await close(writer)

    async def fresh(self) -> None:
        while not self.over:
            await self.note(ask_once(self.port, "/"))
            await asyncio.sleep(0.1)

    async def sees(self, release: int, *, times: int) -> None:
        """Wait for so many more answers of a release."""
        wanted = self.answers[release] + times
        await until(lambda: self.answers[release] >= wanted)

    async def note(self, request: object) -> None:
        try:
            status, release = await request  # type: ignore[misc]
        except (OSError, EOFError, ValueError) as error:
            self.failures.append(repr(error))
            return
        if status == 200:
            self.answers[release] += 1
        else:
            self.failures.append(f"status {status}")


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> tuple[int, int]:
    """Status and release of one answer. Raises EOFError when the connection is closed instead."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: notes\r\n\r\n".encode())
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
    await reader.readexactly(int(headers["content-length"]))
    return int(head.split()[1]), int(headers.get("x-mendwork-release", "0"))


async def ask_once(port: int, path: str) -> tuple[int, int]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await ask(reader, writer, path)
    finally:
        await close(writer)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


async def port_of(target: LocalTarget) -> int:
    live = await target.traffic.current(SITE)
    assert live
    return int(urlsplit(live.url).port or 0)


async def test_fifty_requests_a_second_lose_none_through_switches_and_roll_backs(target: LocalTarget) -> None:
    load = Load(await port_of(target))
    async with asyncio.TaskGroup() as group:
        for _ in range(LINES):
            group.create_task(load.kept())
            group.create_task(load.fresh())
        try:
            for _ in range(5):
                await target.traffic.switch(SITE, 2, expected=1)
                await load.sees(2, times=30)
                await target.traffic.roll_back(SITE, 1)
                await load.sees(1, times=30)
        finally:
            load.over = True
    assert load.failures == []
    assert set(load.answers) == {1, 2}
    assert load.answers.total() > 300


async def test_a_request_under_way_ends_where_it_is_and_the_next_one_goes_on(target: LocalTarget) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", await port_of(target))
    under_way = asyncio.create_task(ask(reader, writer, "/slow"))
    await asyncio.sleep(0.2)
    await target.traffic.switch(SITE, 2, expected=1)
    assert await ask_once(await port_of(target), "/") == (200, 2)
    assert not under_way.done()
    assert await under_way == (200, 1)
    assert await ask(reader, writer, "/") == (200, 2), "on the same connection"
    await close(writer)


async def test_a_request_under_way_ends_before_its_release_is_removed(target: LocalTarget) -> None:
    under_way = asyncio.create_task(ask_once(await port_of(target), "/slow"))
    await asyncio.sleep(0.2)
    await target.traffic.switch(SITE, 2, expected=1)
    assert await target.units.remove(order_of(1, ()).unit, drain=30)
    assert await under_way == (200, 1)
    assert (await target.units.poll(order_of(1, ()).unit)).state == ABSENT


async def test_a_request_that_does_not_end_keeps_its_release_no_longer_than_it_may(target: LocalTarget) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", await port_of(target))
    under_way = asyncio.create_task(ask(reader, writer, "/slow"))
    await asyncio.sleep(0.2)
    await target.traffic.switch(SITE, 2, expected=1)
    assert await target.units.remove(order_of(1, ()).unit, drain=0.1)
    assert await under_way == (502, 0)
    await close(writer)


async def test_the_old_release_stays_reachable_on_its_own_address_and_with_its_environment(target: LocalTarget) -> None:
    told = Probe(path="/told", contains="told 1")
    await target.traffic.switch(SITE, 2, expected=1)
    assert not (await target.traffic.health(SITE, told)).ok
    baseline = await target.units.poll(order_of(1, ()).unit)
    assert baseline.state == HEALTHY
    assert await ask_once(int(urlsplit(baseline.url).port or 0), "/") == (200, 1)
    await target.traffic.roll_back(SITE, 1)
    assert (await target.traffic.health(SITE, told)).ok


async def test_a_release_cannot_say_that_it_is_another_one(target: LocalTarget) -> None:
    """The service sends the header too, with 999."""
    assert (await target.traffic.health(SITE, Probe())).release == 1


async def test_requests_under_way_end_before_a_site_is_closed(target: LocalTarget) -> None:
    port = await port_of(target)
    under_way = asyncio.create_task(ask_once(port, "/slow"))
    await asyncio.sleep(0.2)
    assert await target.traffic.roll_back(SITE, 0) is None
    assert await under_way == (200, 1)
    with pytest.raises(OSError, match="Connect call failed"):
        await ask_once(port, "/")
    again = await target.traffic.switch(SITE, 2, expected=0)
    assert urlsplit(again.url).port == port, "the port was chosen once, and is kept"
