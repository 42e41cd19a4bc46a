"""Blobs in an S3 store: what lies there, who may remove what, and what it costs to hold them."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from adapters.blobs import open_blobs
from adapters.blobs.bucket import Bucket
from adapters.blobs.connection import THREADS, Connection
from adapters.blobs.s3 import MARKS, STALE_SECONDS, S3Blobs
from adapters.compliance.blobs import BlobsCompliance, KeptBlobsCompliance
from domain.errors import BlobMissing, DigestMismatch, InvalidInput, StoreUnavailable
from domain.ports.blobs import KeptBlobs
from tests.adapters.s3_faults import proxied
from tests.architecture.test_interpreter import imported_by
from tests.s3 import ACCESS, S3, SECRET

T = TypeVar("T")
Opening = Callable[..., S3Blobs]
_PREFIXES = itertools.count(1)
LONG_AGO = 1_000_000_000
"""Seconds since 1970, in 2001."""


@pytest.fixture
def prefix() -> str:
    """A part of the bucket of the test's own."""
    return f"tests/{next(_PREFIXES)}"


@pytest.fixture(scope="module")
def connections(s3: S3) -> Iterator[Sequence[Connection]]:
    """Two, as two processes have; what is below a prefix is one test's own."""
    two = [Connection(s3.bucket()) for _ in range(2)]
    yield two
    for connection in two:
        connection.close()


@pytest.fixture
def opened(s3: S3, prefix: str, connections: Sequence[Connection]) -> Opening:
    """``opened(page=…, within=…)``: blobs over the one connection or the other, in turn."""
    turns = itertools.cycle(connections)

    def opened(*, page: int = 1_000, within: str = "") -> S3Blobs:
        return S3Blobs(s3.bucket(within or prefix), next(turns), page=page)

    return opened


@pytest.fixture
def blobs(opened: Opening) -> S3Blobs:
    return opened()


class TestS3(BlobsCompliance, KeptBlobsCompliance):
    @pytest.fixture
    def blobs(self, opened: Opening) -> KeptBlobs:
        return opened()


class TestWhatLiesThere:
    async def test_an_object_is_the_blob_and_nothing_else(self, s3: S3, prefix: str, blobs: S3Blobs) -> None:
        digest = await blobs.put(b"plain")
        assert s3.listing(prefix) == {f"{digest[:2]}/{digest[2:]}": b"plain"}

    async def test_it_is_what_another_process_opens_by_the_registry(self, s3: S3, prefix: str, blobs: S3Blobs) -> None:
        digest = await blobs.put(b"shared")
        assert await open_blobs(s3.bucket(prefix)).get(digest) == b"shared"

    async def test_parts_of_one_bucket_do_not_see_each_other(self, opened: Opening, prefix: str) -> None:
        inner, outer = opened(within=f"{prefix}/inner"), opened(within=prefix)
        digest = await inner.put(b"mine")
        await outer.put(b"theirs")
        with pytest.raises(BlobMissing):
            await outer.get(digest)
        assert (len(await inner.list()), len(await outer.list())) == (1, 1)

    async def test_a_whole_bucket_may_be_ours(self, s3: S3, opened: Opening) -> None:
        (s3.folder / "whole").mkdir()
        bucket = Bucket(name="whole", endpoint=s3.endpoint, access_key=ACCESS, secret_key=SECRET)
        connection = Connection(bucket)
        digest = await S3Blobs(bucket, connection).put(b"root")
        connection.close()
        assert (s3.folder / "whole" / digest[:2] / digest[2:]).read_bytes() == b"root"

    async def test_lists_longer_than_a_page_are_whole_and_foreign_objects_are_not_in_them(
        self, s3: S3, prefix: str, opened: Opening
    ) -> None:
        blobs = opened(page=2)
        digests = sorted([await blobs.put(b"%d" % number) for number in range(7)])
        for name in ("note.txt", "ab/short", f"{MARKS}/{digests[0]}"):
            path = s3.folder / "blobs" / prefix / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("not ours")
        assert [blob.digest for blob in await blobs.list()] == digests

    @pytest.mark.parametrize("damage", [b"", b"whole, almos", b"other bytes!"])
    async def test_damaged_bytes_are_never_returned_and_a_new_put_mends_them(
        self, s3: S3, prefix: str, blobs: S3Blobs, damage: bytes
    ) -> None:
        digest = await blobs.put(b"whole, all..")
        s3.path(prefix, digest).write_bytes(damage)
        with pytest.raises(DigestMismatch, match=digest):
            await blobs.get(digest)
        await blobs.put(b"whole, all..")
        assert await blobs.get(digest) == b"whole, all.."


class TestAge:
    """The housekeeper takes what nobody put for long; what is put at that moment must not be lost."""

    @pytest.fixture
    async def old(self, s3: S3, prefix: str, blobs: S3Blobs) -> str:
        """The digest of ``b"old"``, put long ago."""
        digest = await blobs.put(b"old")
        os.utime(s3.path(prefix, digest), (LONG_AGO, LONG_AGO))
        return digest

    async def test_a_put_of_what_is_there_makes_it_young(self, blobs: S3Blobs, old: str) -> None:
        assert [blob.written for blob in await blobs.list()] == [LONG_AGO * 1000]
        await blobs.put(b"old")
        [blob] = await blobs.list()
        assert blob.written > (time.time() - 60) * 1000
        assert await blobs.remove(old, before=(LONG_AGO + 1) * 1000) == 0

    async def test_what_is_put_again_while_it_is_removed_is_never_lost(
        self, s3: S3, prefix: str, opened: Opening
    ) -> None:
        """A writer that was told that it lies there is right, whoever came second; else it is told to try again."""
        writer, remover = opened(), opened()
        lost, put_again = 0, 0
        for _ in range(25):
            digest = await writer.put(b"contended")
            os.utime(s3.path(prefix, digest), (LONG_AGO, LONG_AGO))
            removal = asyncio.create_task(remover.remove(digest, before=(LONG_AGO + 1) * 1000))
            try:
                await writer.put(b"contended")
            except StoreUnavailable:
                await removal
                put_again += 1
                continue
            await removal
            lost += not s3.path(prefix, digest).is_file()
        assert lost == 0, f"and {put_again} were told to try again"

    async def test_a_put_beside_a_removal_is_told_to_try_again(
        self, s3: S3, prefix: str, blobs: S3Blobs, old: str
    ) -> None:
        mark = self._marked(s3, prefix, old, age=1)
        with pytest.raises(StoreUnavailable, match="just being removed") as told:
            await blobs.put(b"old")
        assert told.value.retry_after == 1.0
        assert await blobs.remove(old, before=(LONG_AGO + 1) * 1000) == 0, "one removes at a time"
        mark.unlink()
        assert await blobs.put(b"old") == old

    async def test_the_mark_of_a_housekeeper_that_died_says_nothing_after_a_while(
        self, s3: S3, prefix: str, blobs: S3Blobs, old: str
    ) -> None:
        self._marked(s3, prefix, old, age=STALE_SECONDS + 60)
        assert await blobs.put(b"old") == old
        os.utime(s3.path(prefix, old), (LONG_AGO, LONG_AGO))
        assert await blobs.remove(old, before=(LONG_AGO + 1) * 1000) == 3
        assert s3.listing(prefix) == {}, "the mark goes with the blob"

    async def test_a_removal_that_looked_before_the_put_and_ended_after_it_takes_nothing_away(
        self, s3: S3, prefix: str, old: str, opened: Opening
    ) -> None:
        blob = s3.path(prefix, old)
        between = _Between(s3.bucket(prefix), after="put_object", do=blob.unlink)
        try:
            await S3Blobs(s3.bucket(prefix), between).put(b"old")
        finally:
            between.close()
        assert blob.read_bytes() == b"old"

    async def test_a_put_after_the_first_look_of_a_removal_keeps_the_blob(
        self, s3: S3, prefix: str, old: str, opened: Opening
    ) -> None:
        blob = s3.path(prefix, old)
        between = _Between(s3.bucket(prefix), after="put_object", do=lambda: os.utime(blob))
        try:
            freed = await S3Blobs(s3.bucket(prefix), between).remove(old, before=(LONG_AGO + 1) * 1000)
        finally:
            between.close()
        assert (freed, blob.read_bytes()) == (0, b"old")

    def _marked(self, s3: S3, prefix: str, digest: str, *, age: float) -> Path:
        """What a housekeeper leaves that began to remove the blob ``age`` seconds ago."""
        mark = s3.folder / "blobs" / prefix / MARKS / digest
        mark.parent.mkdir(exist_ok=True)
        mark.touch()
        os.utime(mark, (time.time() - age, time.time() - age))
        return mark


class _Between(Connection):
    """One whose client lets ``do`` happen once, right after its first request of the kind ``after`` that succeeds."""

    def __init__(self, bucket: Bucket, *, after: str, do: Callable[[], object]) -> None:
        super().__init__(bucket)
        self._after, self._do, self._done = after, do, False

    async def run(self, work: Callable[[Any], T]) -> T:
        return await super().run(lambda client: work(self._watched(client)))

    def _watched(self, client: Any) -> Any:
        asked = getattr(client, self._after)

        def ask(**request: Any) -> Any:
            found = False
            try:
                answer = asked(**request)
                found = True
            finally:
                if found and not self._done:
                    self._done = True
                    self._do()
            return answer

        known = ("exceptions", "put_object", "head_object", "delete_object")
        return SimpleNamespace(**{name: getattr(client, name) for name in known} | {self._after: ask})


class TestCost:
    async def test_large_blobs_are_not_held_twice(self, blobs: S3Blobs) -> None:
        size = 16_000_000
        content = os.urandom(size)
        await blobs.put(b"the client is made")
        tracemalloc.start()
        try:
            digest = await blobs.put(content)
            _, most = tracemalloc.get_traced_memory()
            assert most < size / 2
            tracemalloc.reset_peak()
            assert len(await blobs.get(digest)) == size
            _, most = tracemalloc.get_traced_memory()
            assert most < size * 1.5
        finally:
            tracemalloc.stop()

    async def test_many_at_once_wait_for_their_turn(self, s3: S3) -> None:
        connection, lock, running = Connection(s3.bucket()), threading.Lock(), [0, 0]

        def work(client: object) -> None:
            with lock:
                running[0] += 1
                running[1] = max(running)
            time.sleep(0.02)
            with lock:
                running[0] -= 1

        try:
            await asyncio.gather(*(connection.run(work) for _ in range(THREADS * 4)))
        finally:
            connection.close()
        assert 1 < running[1] <= THREADS

    async def test_what_is_there_already_is_put_again_also_when_it_is_large(
        self, s3: S3, prefix: str, opened: Opening
    ) -> None:
        content = b"0123456789abcdef" * 500_000
        first, second = opened(), opened()
        digests = await asyncio.gather(*(blobs.put(content) for blobs in (first, second, first, second)))
        async with proxied(s3.port) as proxy:
            bucket = s3.bucket(prefix, endpoint=proxy.endpoint)
            connection = Connection(bucket)
            await S3Blobs(bucket, connection).put(content)
            connection.close()
            assert proxy.sent < len(content) * 1.2, "it is not sent only to be refused"
        assert s3.blobs(prefix) == set(digests)

    def test_the_library_is_imported_by_nobody_before_a_bucket_is_used(self) -> None:
        imported = imported_by(
            "import worker, adapters.blobs.s3, adapters.cli.serving.stored, adapters.cli.doctor.bucket"
        )
        assert imported & {"boto3", "botocore", "s3transfer", "urllib3"} == set()


async def test_without_the_library_it_is_said_how_to_have_it(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("botocore.config", "botocore.session"):
        monkeypatch.setitem(sys.modules, name, None)
    connection = Connection(s3.bucket())
    with pytest.raises(InvalidInput, match="uv sync --extra s3"):
        await S3Blobs(s3.bucket(), connection).put(b"x")
    connection.close()
