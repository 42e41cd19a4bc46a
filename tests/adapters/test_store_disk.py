"""PostgreSQL on a disk that really fills up: what is written waits for room, and nothing is lost, half or twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.compliance.store import event, whole_build
from adapters.store import open_store
from domain.errors import ResourceShort
from tests.adapters.test_store_outages import Sagas, log_is_whole, money_adds_up
from tests.postgres import _reachable

HOLDER = """
import subprocess, sys, tempfile
from tests.postgres import running_cluster
tempfile.tempdir = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=90m,mode=1777", "none", sys.argv[1]], check=True)
with running_cluster() as cluster:
    print(cluster.create(), flush=True)
    sys.stdin.read()
"""
"""In a mount namespace of its own, so that the disk is gone with its last process, however that ends."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk for another user's server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """``place`` is the disk as this process sees it, ``url`` a database on it."""

    place: Path
    url: str

    @asynccontextmanager
    async def filled(self) -> AsyncIterator[None]:
        """Without a byte left as long as the context is open."""
        ballast = self.place / "ballast"
        await asyncio.to_thread(_fill, ballast)
        try:
            yield
        finally:
            ballast.unlink()


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


@pytest.fixture(scope="module")
def disk() -> Iterator[Disk]:
    """A cluster alone on a disk of 90 MB."""
    with tempfile.TemporaryDirectory(prefix="mwdisk-", dir=_reachable()) as folder:
        Path(folder).chmod(0o711)
        argv = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", HOLDER, folder]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            root = f"/proc/{holder.pid}/root{folder}"
            url = holder.stdout.readline().strip().replace(f"host={folder}", f"host={root}")
            assert root in url
            yield Disk(place=Path(root), url=url)
            holder.stdin.close()


@as_root
@pytest.mark.timeout(240)
async def test_what_is_written_while_the_disk_is_full_is_there_once_when_there_is_room(disk: Disk) -> None:
    async with await open_store(disk.url) as store, await open_store(disk.url) as other:
        here, there = Sagas(store), Sagas(other)
        work = asyncio.gather(here.append("build-a-1"), there.append("build-a-2"), here.call_models(), there.undo())
        for _ in range(2):
            async with disk.filled():
                here.faults.clear()
                there.faults.clear()
                await both_felt_it(here, there)
            await goes_on(there)
        here.over.set()
        there.over.set()
        first, second, calls, undone = await work
        await log_is_whole(store, {"build-a-1": first, "build-a-2": second})
        await money_adds_up(store, calls)
        assert list(await store.undo.open()) == []
        assert undone > 0


async def both_felt_it(*sagas: Sagas) -> None:
    def felt(each: Sagas) -> bool:
        return any(isinstance(fault, ResourceShort) for fault in each.faults)

    async with asyncio.timeout(60):
        while not all(map(felt, sagas)):  # noqa: ASYNC110 - they do not tell it
            await asyncio.sleep(0.02)


async def goes_on(sagas: Sagas) -> None:
    """By itself, once there is room."""

    async def written() -> int:
        return len(await sagas.again(lambda: sagas.store.events.read("build-a-2")))

    reached = await written()
    async with asyncio.timeout(60):
        while await written() <= reached:  # noqa: ASYNC110 - there may be no store to listen to
            await asyncio.sleep(0.02)


@as_root
async def test_a_full_disk_is_told_as_such_and_what_was_written_can_still_be_read(disk: Disk) -> None:
    large = [event(number, build="build-b-1", task="one", text="x" * 4000) for number in range(1, 1000)]
    async with await open_store(disk.url) as store:
        await store.events.append(whole_build("build-b-2"))
        async with disk.filled():
            with pytest.raises(ResourceShort, match=r"has no room: .*No space left on device.*\(53100\)"):
                await store.events.append(large)
            assert len(await store.events.read("build-b-2")) == 5
            assert len(await store.events.read("build-b-1")) == 0, "no half of it"
        assert await store.events.append(large) == 999
