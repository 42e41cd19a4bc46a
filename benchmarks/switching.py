"""What a switch of releases costs those who use the site, beside the same programs without a switch.

``python -m benchmarks.switching`` runs real releases behind the local target's proxy, in a folder of its own, for about
three minutes, and prints two tables: requests lost and the time to the first new answer at 50 and 500 requests/s, and
what the proxy and the release's relay add to a request. Half of the requests go over connections that stay.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from adapters.target.local.adapter import LocalTarget, open_local
from adapters.target.local.loopback import free_port
from adapters.target.local.overview import stop_all
from benchmarks.ground.printing import say
from domain.kpi.probe import Probe
from domain.ports.target import HEALTHY, PRODUCTION, Order, Site, Unit

SERVICE = """
import asyncio, os

async def serve(reader, writer):
    try:
        while (await reader.readuntil(b"\\r\\n\\r\\n")):
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def run():
    async with await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]), backlog=512) as server:
        await server.serve_forever()

asyncio.run(run())
"""
SITE = Site(project="bench", environment=PRODUCTION)
HEALTH = Probe(path="/", contains="ok")
SECONDS = 10.0
ROUNDS = 3
STAYING = 10
"""Connections that stay; they share half of the requests."""
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class Seen:
    """``answers`` are (when it was sent, when it was answered, by which release), ``failed`` counts the rest."""

    answers: list[tuple[float, float, int]] = field(default_factory=list)
    failed: int = 0

    def percentile(self, share: float) -> float:
        """Milliseconds."""
        took = sorted(1000 * (end - began) for began, end, _ in self.answers)
        return took[min(len(took) - 1, int(share * len(took)))] if took else float("nan")


class Load:
    """So many requests a second at one address, whatever becomes of each."""

    def __init__(self, url: str, rate: float) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._rate = rate
        self._staying: asyncio.Queue[Connection | None] = asyncio.Queue()
        self.seen = Seen()

    async def run(self, seconds: float) -> Seen:
        """Send them all, and wait for the last answer."""
        for _ in range(STAYING):
            self._staying.put_nowait(None)
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(max(1, int(self._rate * seconds))):
                await asyncio.sleep(max(0.0, began + number / self._rate - time.perf_counter()))
                group.create_task(self._stay() if number % 2 else self._fresh())
        while not self._staying.empty():
            _close(self._staying.get_nowait())
        return self.seen

    async def _stay(self) -> None:
        connection = await self._staying.get()
        try:
            connection = await self._ask(connection)
        finally:
            self._staying.put_nowait(connection)

    async def _fresh(self) -> None:
        _close(await self._ask(None))

    async def _ask(self, connection: Connection | None) -> Connection | None:
        """The connection that was used, None when it is not to be used again."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout(10):
                reader, writer = connection = connection or await asyncio.open_connection(*self._address)
                writer.write(b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n")
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(2)
        except (OSError, EOFError, TimeoutError):
            self.seen.failed += 1
            _close(connection)
            return None
        release = head.partition(b"x-mendwork-release: ")[2].split(b"\r\n")[0]
        if b" 200 " in head.split(b"\r\n")[0]:
            self.seen.answers.append((began, time.perf_counter(), int(release or 0)))
        else:
            self.seen.failed += 1
        if b"connection: close" in head:
            _close(connection)
            return None
        return connection


def _close(connection: Connection | None) -> None:
    if connection is not None:
        connection[1].close()


def order(release: int) -> Order:
    """The same service, as another release."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("serve.py")
        entry.size = len(SERVICE)
        tar.addfile(entry, io.BytesIO(SERVICE.encode()))
    content = packed.getvalue()
    return Order(
        unit=Unit(project="bench", environment=PRODUCTION, release=release),
        artifact=hashlib.sha256(content).hexdigest(),
        config="bench",
        run=("python3", "serve.py"),
        health=HEALTH,
        content=content,
        environment={},
    )


async def up(target: LocalTarget, release: int) -> str:
    """Start a release; its own address once it is healthy."""
    await target.units.trigger(order(release))
    while True:
        status = await target.units.poll(order(release).unit)
        if status.state == HEALTHY:
            return status.url
        await asyncio.sleep(0.1)


async def switched(target: LocalTarget, url: str, rate: float, *, to: int, before: int) -> tuple[Seen, float, float]:
    """Load with a switch in the middle; also when the switch had come back, and the first new answer was there."""
    load = asyncio.create_task(Load(url, rate).run(SECONDS))
    await asyncio.sleep(SECONDS / 2)
    began = time.perf_counter()
    await target.traffic.switch(SITE, to, expected=before)
    took = time.perf_counter() - began
    seen = await load
    return seen, took, min(end for _, end, release in seen.answers if release == to) - began


@asynccontextmanager
async def plain(folder: Path) -> AsyncIterator[str]:
    """The service by itself: no relay, no proxy, no isolation."""
    port = free_port(folder, without=set())
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVICE, env=environment)
    try:
        while not (await Load(f"http://127.0.0.1:{port}", 10).run(0.1)).answers:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


async def compare(target: LocalTarget, url: str) -> None:
    """With and without a switch, in turn, on the same proxy."""
    say("requests/s  what      asked  failed  p50 ms  p95 ms  switch s  first new answer s")
    live = 1
    for rate in (50.0, 500.0):
        for _ in range(ROUNDS):
            say(_row(rate, "baseline", await Load(url, rate).run(SECONDS)))
            seen, took, first = await switched(target, url, rate, to=3 - live, before=live)
            live = 3 - live
            say(_row(rate, "switch", seen) + f"  {took:8.3f}  {first:18.3f}")


async def layers(urls: dict[str, str]) -> None:
    """What each layer adds, at 50 requests/s, the layers in turn."""
    found: dict[str, list[Seen]] = {name: [] for name in urls}
    for _ in range(ROUNDS):
        for name, url in urls.items():
            found[name].append(await Load(url, 50).run(SECONDS / 2))
    say("\nat 50 requests/s             p50 ms  p95 ms  failed")
    for name, each in found.items():
        middle = [statistics.median(seen.percentile(share) for seen in each) for share in (0.5, 0.95)]
        say(f"{name:<27}  {middle[0]:6.2f}  {middle[1]:6.2f}  {sum(seen.failed for seen in each):6}")


def _row(rate: float, what: str, seen: Seen) -> str:
    asked = len(seen.answers) + seen.failed
    took = f"{seen.percentile(0.5):6.2f}  {seen.percentile(0.95):6.2f}"
    return f"{rate:10.0f}  {what:<8}  {asked:5}  {seen.failed:6}  {took}"


async def main(root: Path) -> None:
    """Everything that it started has ended when it comes back."""
    target = open_local(root)
    try:
        unit, _ = await up(target, 1), await up(target, 2)
        live = await target.traffic.switch(SITE, 1, expected=0)
        await compare(target, live.url)
        async with plain(root) as alone:
            await layers({"the service alone": alone, "and its relay": unit, "and the proxy": live.url})
    finally:
        await asyncio.to_thread(stop_all, target)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="mendwork-bench-") as name:
        Path(name).chmod(0o755)  # releases run as users of their own
        asyncio.run(main(Path(name)))
