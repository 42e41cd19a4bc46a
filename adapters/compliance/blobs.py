"""What every blob store must do. Subclass with a fixture ``blobs`` that gives an empty one."""

from __future__ import annotations

import asyncio
import hashlib
import time

import pytest

from domain.errors import BlobMissing, InvalidInput
from domain.ports.blobs import Blobs, KeptBlobs


class BlobsCompliance:
    async def test_a_blob_comes_back_under_its_sha256(self, blobs: Blobs) -> None:
        digest = await blobs.put(b"a prompt")
        assert digest == hashlib.sha256(b"a prompt").hexdigest()
        assert await blobs.get(digest) == b"a prompt"

    @pytest.mark.parametrize("content", [b"", b"\0", b"\r\n\xff", bytes(range(256))])
    async def test_any_bytes_come_back_unchanged(self, blobs: Blobs, content: bytes) -> None:
        assert await blobs.get(await blobs.put(content)) == content

    @pytest.mark.parametrize("megabytes", [5, 10])
    async def test_large_blobs_come_back_unchanged(self, blobs: Blobs, megabytes: int) -> None:
        content = b"0123456789abcdef" * (megabytes * 65536)
        assert await blobs.get(await blobs.put(content)) == content

    async def test_putting_again_gives_the_same_digest(self, blobs: Blobs) -> None:
        assert await blobs.put(b"twice") == await blobs.put(b"twice")

    async def test_racing_writers_of_one_content_all_succeed(self, blobs: Blobs) -> None:
        content = b"raced" * 100_000
        digests = await asyncio.gather(*(blobs.put(content) for _ in range(8)))
        assert len(set(digests)) == 1
        assert await blobs.get(digests[0]) == content

    async def test_a_missing_blob_is_said(self, blobs: Blobs) -> None:
        with pytest.raises(BlobMissing, match="0" * 64):
            await blobs.get("0" * 64)

    @pytest.mark.parametrize(
        "digest",
        ["", "abc", "A" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n", "../" * 21 + "x", "/etc/passwd", "0" * 62 + "/x"],
    )
    async def test_what_is_no_digest_is_refused(self, blobs: Blobs, digest: str) -> None:
        with pytest.raises(InvalidInput, match="no blob's digest"):
            await blobs.get(digest)


class KeptBlobsCompliance:
    """What the housekeeper needs of them: with the same fixture."""

    async def test_all_are_listed_by_digest_with_their_sizes_and_times(self, blobs: KeptBlobs) -> None:
        digests = sorted([await blobs.put(b"one"), await blobs.put(b"three")])
        listed = await blobs.list()
        assert [blob.digest for blob in listed] == digests
        assert sorted(blob.size for blob in listed) == [3, 5]
        assert all(abs(blob.written - _now()) < 60_000 for blob in listed)

    async def test_a_store_without_blobs_lists_none(self, blobs: KeptBlobs) -> None:
        assert list(await blobs.list()) == []

    async def test_one_that_is_old_enough_goes_and_frees_its_bytes(self, blobs: KeptBlobs) -> None:
        digest = await blobs.put(b"old")
        assert await blobs.remove(digest, before=_now() + 60_000) == 3
        assert list(await blobs.list()) == []
        with pytest.raises(BlobMissing):
            await blobs.get(digest)

    async def test_one_that_is_younger_stays(self, blobs: KeptBlobs) -> None:
        digest = await blobs.put(b"young")
        assert await blobs.remove(digest, before=_now() - 60_000) == 0
        assert await blobs.get(digest) == b"young"

    async def test_one_that_is_gone_already_is_no_error(self, blobs: KeptBlobs) -> None:
        digest = await blobs.put(b"once")
        freed = await asyncio.gather(*(blobs.remove(digest, before=_now() + 60_000) for _ in range(4)))
        assert sum(freed) == 4, "one of them frees it"

    async def test_what_is_no_digest_is_not_removed(self, blobs: KeptBlobs) -> None:
        with pytest.raises(InvalidInput, match="no blob's digest"):
            await blobs.remove("../../etc/passwd", before=_now())


def _now() -> int:
    return int(time.time() * 1000)
