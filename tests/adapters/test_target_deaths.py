"""kill -9 of whoever called, of the supervisor, of a release: the same end, nothing twice (adapters.target.local)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.compliance.delivery.target import SITE, order_of, state_of
from adapters.target.local.adapter import LocalTarget
from adapters.target.local.folders import program_of
from domain.kpi.probe import Probe
from domain.ports.target import DEAD, HEALTHY, Live
from tests.adapters.processes import pipe, run_together, start
from tests.adapters.target_caller import call
from tests.adapters.target_scenes import SERVES, alive, descendants, local_target, until, up

ROOT = Path(__file__).parents[2]
POINTS = 5


async def effects(folder: Path, what: str, release: int) -> int:
    """Do it undisturbed; how many effects it has."""
    receiver, sender = pipe()
    await asyncio.to_thread(run_together, [(call, (sender, str(folder), what, release, 0))])
    count: int = receiver.recv()
    return count


async def killed(folder: Path, what: str, release: int, number: int) -> bool:
    """Do it, and be killed before effect ``number``; whether there was one of that number."""
    receiver, sender = pipe()
    process = start(call, sender, str(folder), what, release, number)
    await asyncio.to_thread(process.join, 60)
    assert process.exitcode == (0 if receiver.poll() else -signal.SIGKILL)
    return process.exitcode != 0


def points(count: int) -> list[int]:
    """The first and the last effect, and some between."""
    return sorted({1 + round(n * (count - 1) / (POINTS - 1)) for n in range(POINTS)})


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[LocalTarget]:
    async with local_target(tmp_path, start_seconds=20.0) as target:
        yield target


def leftovers(target: LocalTarget) -> list[str]:
    return [path.name for path in target.folders.root.glob("*/*/.*.half")]


def launchers(target: LocalTarget, release: int) -> list[int]:
    """The processes that run a release of this target."""
    word = f"launch\0unit\0notes/production/{release}\0".encode()
    found = []
    for pid in descendants(target.supervisor.pid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        found += [pid] if word in command else []
    return found


def listening(target: LocalTarget) -> dict[int, str]:
    """Ports that processes of this target listen on, and the addresses, as /proc/net/tcp and tcp6 give them."""
    inodes = set()
    for pid in descendants(target.supervisor.pid()):
        for name in os.listdir(f"/proc/{pid}/fd") if alive(pid) else ():
            try:
                inodes.add(os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                continue
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    ours = [line[1].split(":") for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in inodes]
    return {int(port, 16): address for address, port in ours}


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def ports(target: LocalTarget) -> set[int]:
    orders = [target.folders.order(unit) for unit in target.folders.units()]
    return {order["port"] for order in orders if order}


async def test_a_killed_trigger_is_finished_by_the_next_one_or_taken_back(target: LocalTarget, tmp_path: Path) -> None:
    assert await killed(tmp_path, "trigger", 1, 6)  # as the very first, which starts the supervisor
    count = await effects(tmp_path, "trigger", 1)
    assert count > 10
    for release, number in enumerate(points(await effects(tmp_path, "trigger", 2)), start=3):
        assert await killed(tmp_path, "trigger", release, number)
        unit = order_of(release, ()).unit
        if release % 2:
            await target.units.trigger(order_of(release, SERVES, told=f"told {release}"))
            await state_of(target, unit, HEALTHY)
            assert len(launchers(target, release)) == 1
        else:
            assert await target.units.remove(unit)
            assert launchers(target, release) == []
        assert leftovers(target) == []
    assert set(listening(target)) == ports(target), "no port is left from a killed call"


async def test_a_killed_switch_is_finished_by_the_next_one_or_rolled_back(target: LocalTarget, tmp_path: Path) -> None:
    await up(target, 1, 2, live=1)
    for number in points(await effects(tmp_path, "switch", 2)):
        for end in (2, 1):
            await target.traffic.roll_back(SITE, 1)
            assert await killed(tmp_path, "switch", 2, number)
            live = await target.traffic.current(SITE)
            assert live
            assert (await target.traffic.health(SITE, Probe())).release in (1, 2), "it serves all the time"
            if end == 2:
                await target.traffic.switch(SITE, 2, expected=1)
            else:
                await target.traffic.roll_back(SITE, 1)
            assert (await target.traffic.health(SITE, Probe())).release == end
    assert set(listening(target)) == ports(target) | {proxy_port(await target.traffic.current(SITE))}


async def test_a_killed_roll_back_is_finished_by_the_next_one(target: LocalTarget, tmp_path: Path) -> None:
    await up(target, 1, 2, live=1)

    async def away() -> None:
        """Traffic goes to 2, and 1 does not run: the roll-back has to start it."""
        await target.traffic.switch(SITE, 2, expected=1)
        await asyncio.to_thread(target.supervisor.drop, program_of(order_of(1, ()).unit))

    await away()
    deaths = 0
    for number in points(await effects(tmp_path, "roll back", 1)):
        await away()
        deaths += await killed(tmp_path, "roll back", 1, number)
        assert (await target.traffic.health(SITE, Probe())).ok
        live = await target.traffic.roll_back(SITE, 1)
        assert live
        assert live.release == 1
        assert (await target.traffic.health(SITE, Probe(path="/told", contains="told 1"))).release == 1
        assert len(launchers(target, 1)) == len(launchers(target, 2)) == 1
    assert deaths >= POINTS - 2, "how often it looks whether the release is up differs, and so does the last effect"


def proxy_port(live: Live | None) -> int:
    assert live
    return int(live.url.rpartition(":")[2])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_everything_outlives_the_process_group_that_started_it(
    target: LocalTarget, tmp_path: Path, number: signal.Signals
) -> None:
    starter = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.adapters.target_caller", str(tmp_path)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert starter.stdout
        assert await starter.stdout.readline()
    finally:
        os.killpg(starter.pid, number)
        await starter.communicate()
    supervisor = target.supervisor.pid()
    assert supervisor
    assert os.getsid(supervisor) not in (starter.pid, os.getsid(0))
    for _ in range(5):
        assert (await target.traffic.health(SITE, Probe())).release == 1


async def test_nothing_listens_beyond_loopback(target: LocalTarget) -> None:
    await up(target, 1, 2, live=1)
    heard = listening(target)
    assert set(heard) == ports(target) | {proxy_port(await target.traffic.current(SITE))}
    assert set(heard.values()) == {"0100007F"}


async def test_a_killed_supervisor_leaves_production_serving_and_the_next_one_takes_over(target: LocalTarget) -> None:
    await up(target, 1, live=1)
    before = target.supervisor.pid()
    old = list(descendants(before))
    os.kill(before, signal.SIGKILL)
    await until(lambda: not alive(before))
    assert (await target.traffic.health(SITE, Probe())).release == 1
    await up(target, 2)
    await state_of(target, order_of(1, ()).unit, HEALTHY)
    await until(lambda: not [pid for pid in old if alive(pid)])
    await target.traffic.switch(SITE, 2, expected=1)
    assert (await target.traffic.health(SITE, Probe())).release == 2
    assert len(launchers(target, 1)) == 1


@pytest.mark.parametrize("who", ["launcher", "relay", "service"])
async def test_a_release_that_crashes_is_started_again(target: LocalTarget, who: str) -> None:
    await up(target, 1, live=1)
    launcher = launchers(target, 1)[0]
    below = list(descendants(launcher))
    names = {pid: name_of(pid) for pid in below}
    kinds = {
        "launcher": launcher,
        "relay": next(pid for pid in below if names[pid] == "haproxy"),
        "service": below[-1],
    }
    os.kill(kinds[who], signal.SIGKILL)
    await until(lambda: not [pid for pid in below if alive(pid)])
    await until(lambda: launchers(target, 1))
    await state_of(target, order_of(1, ()).unit, HEALTHY)
    assert (await target.traffic.health(SITE, Probe())).release == 1


async def test_a_release_that_crashes_again_and_again_is_dead_and_says_why(target: LocalTarget) -> None:
    order = order_of(1, (*SERVES, "dies"))
    await target.units.trigger(order)
    status = await state_of(target, order.unit, DEAD)
    assert (status.kind, status.sentence) == ("ReleaseDied", "its process ended with exit code 1")
    assert "it cannot start" in status.log
    assert len(status.log) <= 4000


async def test_a_killed_proxy_comes_back_and_leads_to_the_same_release(target: LocalTarget) -> None:
    await up(target, 1, 2, live=1)
    await target.traffic.switch(SITE, 2, expected=1)
    proxy = target.supervisor.look("notes.production.proxy")
    assert proxy
    os.kill(proxy.pid, signal.SIGKILL)

    def again() -> bool:
        now = target.supervisor.look("notes.production.proxy")
        return now is not None and now.state == "RUNNING" and now.pid != proxy.pid

    await until(again)
    assert (await target.traffic.health(SITE, Probe())).release == 2


async def test_a_command_outlives_its_caller_and_is_not_run_twice(target: LocalTarget) -> None:
    await up(target, 1)
    unit = order_of(1, ()).unit
    argv = ("sh", "-c", "echo ran >> /scratch/times; sleep 1; wc -l < /scratch/times")
    first = asyncio.create_task(target.units.command(unit, argv, key="migrate", seconds=20))
    scratch = target.folders.unit(unit) / "scratch" / "times"
    await until(scratch.exists)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    for _ in range(2):
        ended = await target.units.command(unit, argv, key="migrate", seconds=20)
        assert (ended.state, ended.log) == (HEALTHY, "1\n")


async def test_a_command_that_does_not_end_is_killed_at_its_time(target: LocalTarget) -> None:
    await up(target, 1)
    argv = ("sh", "-c", "trap '' TERM; sleep 60")
    ended = await target.units.command(order_of(1, ()).unit, argv, key="endless", seconds=0.5)
    assert (ended.state, ended.kind, ended.sentence) == (DEAD, "ReleaseSilent", "it did not end within 0.5 seconds")
    assert [each for each in target.supervisor.all() if "step" in each] == []
