"""Blobs in memory and as files, and what happens to files under damage, races and full disks."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adapters.blobs import open_blobs
from adapters.blobs.files import LEFTOVER_SECONDS
from adapters.compliance.blobs import BlobsCompliance, KeptBlobsCompliance
from domain.errors import DigestMismatch, ResourceShort, StoreUnavailable, UnknownName
from domain.ports.blobs import KeptBlobs
from tests.adapters.processes import run_together


class TestMemory(BlobsCompliance, KeptBlobsCompliance):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> KeptBlobs:
        return open_blobs(tmp_path, name="memory")


class TestFiles(BlobsCompliance, KeptBlobsCompliance):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> KeptBlobs:
        return open_blobs(tmp_path)


def path_of(root: Path, digest: str) -> Path:
    return root / "blobs" / digest[:2] / digest[2:]


def files_below(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


async def test_files_and_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    path = path_of(tmp_path, await open_blobs(tmp_path).put(b"private"))
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


async def test_only_the_blob_is_left_after_a_put(tmp_path: Path) -> None:
    digest = await open_blobs(tmp_path).put(b"alone")
    assert files_below(tmp_path) == [path_of(tmp_path, digest)]


async def test_a_blob_is_seen_by_another_instance(tmp_path: Path) -> None:
    digest = await open_blobs(tmp_path).put(b"shared")
    assert await open_blobs(tmp_path).get(digest) == b"shared"


@pytest.mark.parametrize("damage", [b"", b"whole, almos", b"other bytes!"])
async def test_damaged_bytes_are_never_returned_and_a_new_put_mends_them(tmp_path: Path, damage: bytes) -> None:
    blobs = open_blobs(tmp_path)
    digest = await blobs.put(b"whole, all..")
    path_of(tmp_path, digest).write_bytes(damage)
    with pytest.raises(DigestMismatch, match=digest):
        await blobs.get(digest)
    await blobs.put(b"whole, all..")
    assert await blobs.get(digest) == b"whole, all.."


async def test_a_put_of_what_is_there_keeps_the_file_and_makes_it_young(tmp_path: Path) -> None:
    blobs = open_blobs(tmp_path)
    path = path_of(tmp_path, await blobs.put(b"same"))
    os.utime(path, (1, 1))
    before = path.stat()
    await blobs.put(b"same")
    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime > time.time() - 60


async def test_what_is_put_again_while_it_is_removed_is_never_lost(tmp_path: Path) -> None:
    """Its writer was told that it lies there: whoever comes second, it does."""
    blobs = open_blobs(tmp_path)
    for _ in range(100):
        path = path_of(tmp_path, await blobs.put(b"contended"))
        os.utime(path, (1, 1))
        digest, _ = await asyncio.gather(
            blobs.put(b"contended"), blobs.remove(path.parent.name + path.name, before=1_000_000)
        )
        assert await blobs.get(digest) == b"contended"


async def test_files_that_are_no_blobs_are_neither_listed_nor_touched(tmp_path: Path) -> None:
    digest = await open_blobs(tmp_path).put(b"blob")
    for name in ("note.txt", ".abc.new"):
        (path_of(tmp_path, digest).parent / name).write_text("not ours")
    (tmp_path / "blobs" / "README").write_text("not ours")
    assert [blob.digest for blob in await open_blobs(tmp_path).list()] == [digest]


async def test_old_leftovers_of_killed_writers_are_removed_and_young_ones_stay(tmp_path: Path) -> None:
    folder = path_of(tmp_path, await open_blobs(tmp_path).put(b"first")).parent
    old, young = folder / ".old.new", folder / ".young.new"
    for left in (old, young):
        left.write_bytes(b"half")
    long_ago = time.time() - LEFTOVER_SECONDS - 60
    os.utime(old, (long_ago, long_ago))
    await open_blobs(tmp_path).put(b"second")
    assert (old.exists(), young.exists()) == (False, True)


async def test_an_unusable_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(StoreUnavailable, match=r"cannot be written: (Not a directory|File exists)"):
        await open_blobs(tmp_path).put(b"x")
    with pytest.raises(StoreUnavailable, match="cannot be read: Not a directory"):
        await open_blobs(tmp_path).get("0" * 64)


def test_an_unknown_blob_store_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="known: files, memory, s3"):
        open_blobs(tmp_path, name="tape")


async def test_a_disk_that_takes_no_more_is_a_short_resource_and_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # the file stops growing, as on a full disk
    try:
        with pytest.raises(ResourceShort, match="cannot be written"):
            await open_blobs(tmp_path).put(b"x" * 200_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files_below(tmp_path) == []
    digest = await open_blobs(tmp_path).put(b"x" * 200_000)
    assert len(await open_blobs(tmp_path).get(digest)) == 200_000


WRITER = """
import asyncio, sys
from pathlib import Path
from adapters.blobs import open_blobs

async def main():
    blobs, n = open_blobs(Path(sys.argv[1])), 0
    while True:
        await blobs.put(b"%d " % n * 200_000)
        n += 1
        print(n, flush=True)

asyncio.run(main())
"""


def test_a_killed_writer_leaves_whole_blobs_only(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer, writer.stdout:
        for _ in range(3):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
    blobs = open_blobs(tmp_path)
    found = [path for path in files_below(tmp_path / "blobs") if not path.name.startswith(".")]
    assert len(found) >= 3
    for path in found:
        assert asyncio.run(blobs.get(path.parent.name + path.name))


def _put_many(root: Path) -> None:
    blobs = open_blobs(root)

    async def put() -> None:
        for number in range(20):
            await blobs.put(b"%d" % number * 50_000)

    asyncio.run(put())


def test_racing_processes_write_the_same_blobs(tmp_path: Path) -> None:
    run_together([(_put_many, (tmp_path,))] * 4)
    found = files_below(tmp_path)
    assert len(found) == 20
    blobs = open_blobs(tmp_path)
    for path in found:
        assert asyncio.run(blobs.get(path.parent.name + path.name))
