"""Local targets of a test's own, and services for them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from adapters.compliance.delivery.target import SITE, order_of, state_of
from adapters.target.local.adapter import LocalTarget
from adapters.target.local.overview import stop_all
from domain.ports.target import HEALTHY

SERVES = ("python3", "service.py")
COMMANDS = {
    "serves": SERVES,
    "dies": (*SERVES, "dies"),
    "silent": (*SERVES, "silent"),
    "true": ("true",),
    "false": ("false",),
}


@contextlib.asynccontextmanager
async def local_target(folder: Path, **options: object) -> AsyncIterator[LocalTarget]:
    """A target in ``folder``; everything that it started is gone afterwards."""
    target = LocalTarget(folder / "target", **{"start_seconds": 5.0, **options})  # type: ignore[arg-type]
    try:
        yield target
    finally:
        born = set(descendants(target.supervisor.pid()))
        await asyncio.to_thread(stop_all, target)
        await until(lambda: not [pid for pid in born if alive(pid)])


async def up(target: LocalTarget, *releases: int, live: int = 0) -> None:
    """Healthy releases, and traffic to one of them."""
    for release in releases:
        await target.units.trigger(order_of(release, SERVES, told=f"told {release}"))
    for release in releases:
        await state_of(target, order_of(release, ()).unit, HEALTHY)
    if live:
        await target.traffic.switch(SITE, live, expected=0)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def descendants(pid: int) -> Iterator[int]:
    """A process and all below it; nothing for 0."""
    if not pid:
        return
    yield pid
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                yield from descendants(int(child))


async def until(condition: Callable[[], object], *, seconds: float = 60.0) -> None:
    """Wait for a condition of other processes. Raises AssertionError when it does not come."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "the condition did not come"
        await asyncio.sleep(0.02)
