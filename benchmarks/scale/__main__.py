"""How far it goes: ``python -m benchmarks.scale [builds|tasks|hosts|lost|turns]``, all of them by default.

* ``builds``: 200 builds of three tasks at once on one worker host.
* ``tasks``: one build of 1,000 tasks; no history above 10,000 events or 5 MB.
* ``hosts``: model calls that take a second, 10 turns a host: two hosts do at least 1.8 times what one does, counted
  while the middle half of the calls begins. Turns have to be what is short, not processors: so a build's one task asks
  26 models, of which the last one answers, and the server's and the store's files are in memory where there is such a
  file system. What is left of a call (its ledger, its row in the log, its step in Temporal) is the product's own.
* ``lost``: two hosts, one of which is killed in the middle; every build ends well.
* ``turns``: 500 calls of one project hang; another's first call begins at most two seconds later than without them.
  That of a build which starts in the same moment, while the server takes in all 500, is told beside it.

The server, the sagas and the store are real, the calls go through the real activity with its ledger and its schemas;
repositories and sandboxes answer at once (``benchmarks.scale.world``). A host is one process. ``--quick`` plays a tenth
of each, without limits; ``--store URL`` takes another store than a file of SQLite's. How far it is goes to stderr; what
has not ended after twenty minutes is named, and the next scenario begins.
"""

from __future__ import annotations

import asyncio
import logging
import os
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from adapters.blobs.memory import MemoryBlobs
from adapters.store import open_store
from adapters.temporal.connect import Target, connect_to
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from benchmarks.ground.printing import options, say, tell
from benchmarks.ground.waiting import Unfinished
from benchmarks.scale import crowd
from benchmarks.scale.site import Site, Took, opened
from benchmarks.scale.world import Host, Model, Shape

MOST_EVENTS, MOST_BYTES = 10_000, 5_000_000
LEAST_GAIN = 1.8
LONGEST_WAIT = 2.0
PROJECTS = 10
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What scenarios run on; with ``scale`` below 1 they are as much smaller, and nothing is limited."""

    client: Client
    server: DevServer
    folder: Path
    store: str
    scale: float = 1.0

    def of(self, number: int) -> int:
        """As many of ``number`` as are played."""
        return max(2, round(number * self.scale))

    def site(self, shape: Shape) -> Site:
        return Site(
            client=self.client,
            address=self.server.address,
            server=self.server.pid or 0,
            store=self.store,
            folder=self.folder,
            shape=shape,
        )


async def builds(ground: Ground) -> Iterator[str]:
    """The whole way of many small builds."""
    async with opened(ground.site(Shape(tasks=3)), hosts=1) as site:
        took = await site.build([f"p{number % PROJECTS}" for number in range(ground.of(200))])
    _show(f"{took.builds} builds of 3 tasks", took)
    return _too_long(took)


async def tasks(ground: Ground) -> Iterator[str]:
    """One large build."""
    number = ground.of(1_000)
    async with opened(ground.site(Shape(tasks=number, parallel=20)), hosts=1) as site:
        took = await site.build(["large"])
    _show(f"1 build of {number} tasks", took)
    return _too_long(took)


async def hosts(ground: Ground) -> Iterator[str]:
    """Turns are what is short: each task asks many models, all but one of which decline."""
    shape = Shape(tasks=1, refusing=25, seconds=1.0, slots=ground.of(10), places=100)
    rates, busy = [], []
    for number in (1, 2):
        async with opened(ground.site(shape), hosts=number) as site:
            took = await site.build([f"p{number % PROJECTS}" for number in range(ground.of(40))])
        _show(f"{number} host{'s' if number > 1 else ''} of {shape.slots} turns", took)
        rates.append(took.steady)
        busy.append(took.cpu / took.seconds)
    gain = rates[1] / rates[0]
    say(
        f"{'':28} {rates[0]:.1f} and {rates[1]:.1f} calls a second: {gain:.2f} times as much, "
        f"with {busy[0]:.1f} and {busy[1]:.1f} of {os.cpu_count()} processors"
    )
    return iter([f"two hosts do {gain:.2f} times what one does, not {LEAST_GAIN}"] if gain < LEAST_GAIN else [])


async def lost(ground: Ground) -> Iterator[str]:
    """What a killed host had begun is done again by the other one, and nothing else."""
    async with opened(ground.site(Shape(tasks=3, seconds=0.5)), hosts=2) as site:
        number = ground.of(40)

        async def kill() -> None:
            await site.billed(2 * number)
            await site.lose(site.hosts[0])

        took = await site.build([f"p{number % PROJECTS}" for number in range(number)], meanwhile=kill)
    _show(f"{number} builds, a host is lost", took)
    return _too_long(took)


async def turns(ground: Ground) -> Iterator[str]:
    """The bulkhead between projects."""
    shape, began = Shape(tasks=1, share=0.5), crowd.Began()
    async with await open_store("memory:") as store:
        host = Host(shape, store=store, blobs=MemoryBlobs(), model=Model(shape, begun=began))
        waited = await crowd.measure(ground.client, host, began, calls=ground.of(500), builds=5)
    alone = statistics.median(waited.alone)
    worst = max(waited.beside) - alone
    say(
        f"{ground.of(500)} calls hang, {waited.hanging} of them in turns: a first call begins after "
        f"{', '.join(f'{each:.2f}' for each in waited.beside)} s instead of {alone:.2f} s; "
        f"of a build that started with them after {waited.joining:.2f} s"
    )
    return iter([f"it began {worst:.2f} s later, not {LONGEST_WAIT} at most"] if worst > LONGEST_WAIT else [])


SCENARIOS: Mapping[str, Callable[[Ground], Awaitable[Iterator[str]]]] = {
    "builds": builds,
    "tasks": tasks,
    "hosts": hosts,
    "lost": lost,
    "turns": turns,
}


async def main(names: list[str], *, store: str = "", scale: float = 1.0) -> list[str]:
    """Play the scenarios, each on a server of its own; the limits that were broken, and what did not end."""
    broken: list[str] = []
    for name in names:
        tell(name)
        with tempfile.TemporaryDirectory(prefix="mendwork-scale-", dir=_place(name)) as folder:
            at = Path(folder)
            program = find_server(explicit=None, environment=os.environ)
            async with DevServer(ServerPlan(program=program, state=at / "temporal", patience=60)) as server:
                client = await connect_to(Target(address=server.address, namespace="default", origin="the benchmark"))
                url = store or f"sqlite+aiosqlite:///{at / 'mendwork.db'}"
                ground = Ground(client=client, server=server, folder=at, store=url, scale=scale)
                try:
                    found = await SCENARIOS[name](ground)
                except Unfinished as error:
                    broken.append(f"{name}: {error}")
                else:
                    broken += found if scale >= 1 else ()
    return broken


def _place(name: str) -> Path | None:
    """Where a scenario's files are; None is the usual place."""
    return MEMORY if name == "hosts" and os.access(MEMORY, os.W_OK) else None


def _too_long(took: Took) -> Iterator[str]:
    if took.longest.events > MOST_EVENTS:
        yield f"{took.longest.workflow} has a history of {took.longest.events} events, {MOST_EVENTS} are allowed"
    if took.heaviest.bytes > MOST_BYTES:
        yield f"{took.heaviest.workflow} has a history of {took.heaviest.bytes} bytes, {MOST_BYTES} are allowed"


def _show(what: str, took: Took) -> None:
    say(
        f"{what:28} {took.seconds:7.1f} s  {took.a_minute:7.1f} builds a minute  {took.cpu:6.1f} CPU s  "
        f"{took.longest.events:6} events  {took.heaviest.bytes / 1_000_000:5.2f} MB  "
        f"{took.calls:5} calls, {took.again} again"
    )


if __name__ == "__main__":
    logging.getLogger("temporalio").setLevel(logging.ERROR)
    errors = TelemetryFilter(core_level="ERROR", other_level="ERROR")  # a hung call may end late
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=errors))))
    parser = options(
        "Many builds, many tasks, more hosts, a lost host, hanging calls.", quick="a tenth of each, without limits"
    )
    parser.add_argument("scenario", nargs="*", choices=[*SCENARIOS, []], help="all of them by default")
    parser.add_argument("--store", default="", help="the URL of an empty store, instead of a file of SQLite's")
    given = parser.parse_args()
    found = asyncio.run(main(given.scenario or list(SCENARIOS), store=given.store, scale=0.1 if given.quick else 1.0))
    for sentence in found:
        sys.stderr.write(f"{sentence}\n")
    sys.exit(bool(found))
