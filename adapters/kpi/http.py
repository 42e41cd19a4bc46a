"""Load over real sockets: open loop, so that a slow service gets no less of it, and both releases in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx2

from adapters.kpi.asking import ask, client
from adapters.kpi.orders import ANSWERED, DOWN_AFTER, TIMEOUT, UNMEASURED, arm_of, checked, requests_of
from domain.kpi.probe import Probe
from domain.kpi.window import Arm, Window
from domain.ports.load import LoadOrder

MOST_AT_ONCE = 256
"""Requests under way to one release. A request that waits for a place until its timeout has timed out: the service
holds them all. With both releases this stays below the usual limit of 1,024 open files."""
LATE = 1.0
"""A request that cannot be sent within so many seconds of its time is not sent: we are too slow, not the service."""
HEALTH_EVERY = 1.0
_TICK = 0.05


class Lag:
    """How long this process has been kept from its work: by others on the machine, or stopped."""

    def __init__(self) -> None:
        self.lost = 0.0

    async def watch(self) -> None:
        """Until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            before = clock()
            await asyncio.sleep(_TICK)
            self.lost += max(0.0, clock() - before - _TICK)


class Side:
    """One release under load: what came of each request, and of the health checks beside them."""

    def __init__(self, url: str, order: LoadOrder, *, client: httpx2.AsyncClient, lag: Lag) -> None:
        self._url, self._order, self._client, self._lag = url, order, client, lag
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._results: list[str] = []
        self._latencies: list[float] = []
        self.down = False

    @property
    def arm(self) -> Arm:
        """The counts so far."""
        return arm_of(self._results, self._latencies, healthy=not self.down)

    def miss(self) -> None:
        """A request could not be sent at its time."""
        self._results.append(UNMEASURED)

    async def send(self, number: int) -> None:
        """One request of the schedule, counted."""
        order = self._order
        result, ms = await self._answer(order.probes[number % len(order.probes)], within=order.timeout)
        self._results.append(result)
        if ms:
            self._latencies.append(ms)

    async def watch_health(self) -> None:
        """Until cancelled. What we could not ask is neither good nor bad."""
        order, misses = self._order, 0
        within = min(order.timeout, max(1.0, order.seconds / 6))
        while True:
            result, _ = await self._answer(order.health, within=within)
            if result != UNMEASURED:
                misses = misses + 1 if result else 0
            self.down = self.down or misses >= DOWN_AFTER
            await asyncio.sleep(min(HEALTH_EVERY, order.seconds / 10))

    async def _answer(self, probe: Probe, *, within: float) -> tuple[str, float]:
        """What came back, and after how many ms (0.0: nothing did). The time counts from when it was to be sent, with
        the wait for a place: what a user would have waited."""
        clock, lost = asyncio.get_running_loop().time, self._lag.lost
        began = clock()
        try:
            async with asyncio.timeout(within), self._places:
                result = await ask(self._client, self._url, probe)
        except TimeoutError:
            return (UNMEASURED if self._lag.lost - lost > within / 2 else TIMEOUT), 0.0
        return result, (clock() - began) * 1000 if result in ANSWERED else 0.0


class HttpLoad:
    """``domain.ports.load.Load`` on httpx2. A window ends early when the candidate's health check is down."""

    async def measure(self, order: LoadOrder) -> Window:
        checked(order)
        lag = Lag()
        async with client() as http, asyncio.TaskGroup() as beside:
            sides = [Side(url, order, client=http, lag=lag) for url in (order.candidate, order.baseline) if url]
            watching = [beside.create_task(each) for each in (lag.watch(), *(side.watch_health() for side in sides))]
            try:
                seconds = await _press(order, sides)
            finally:
                for task in watching:
                    task.cancel()
        arms = [side.arm for side in sides]
        return Window(
            number=order.number,
            seconds=round(seconds, 3),
            candidate=arms[0],
            baseline=arms[1] if len(arms) > 1 else None,
        )


async def _press(order: LoadOrder, sides: list[Side]) -> float:
    """Send every request at its time whatever becomes of the others; return how many seconds that was kept up."""
    clock = asyncio.get_running_loop().time
    began = clock()
    async with asyncio.TaskGroup() as group:
        for at, side, number in _schedule(order, sides):
            await asyncio.sleep(max(0.0, began + at - clock()))
            if sides[0].down:
                return clock() - began
            if clock() - began - at > LATE:
                side.miss()
            else:
                group.create_task(side.send(number))
    return order.seconds


def _schedule(order: LoadOrder, sides: list[Side]) -> Iterator[tuple[float, Side, int]]:
    """Seconds, who, and which request. Each is asked every 1/rate seconds, half of that after the other, and first
    every other time: neither gets the warmer machine."""
    apart = 1 / order.rate / len(sides)
    for number in range(requests_of(order)):
        turn = sides if number % 2 == 0 else sides[::-1]
        for place, side in enumerate(turn):
            yield number / order.rate + place * apart, side, number


def open_http() -> HttpLoad:
    """Connects when it measures."""
    return HttpLoad()
