"""The mark of mark and sweep: what each holder names, in its own rows and through the blobs that it names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from domain.errors import BlobMissing, ResourceShort
from domain.keeping.holders import Holder
from domain.keeping.references import digests_in
from domain.ports.blobs import KeptBlobs, StoredBlob
from domain.ports.kept.keeping import References

DOCUMENT_BYTES = 32_000_000
"""What is larger is an artefact: every document that names blobs is far smaller."""


class Marking:
    """One look at the blobs that are ``stored``. With ``record`` the table keeps what was found for the next one."""

    def __init__(
        self, references: References, blobs: KeptBlobs, stored: Sequence[StoredBlob], *, record: bool = True
    ) -> None:
        self._references = references
        self._blobs = blobs
        self._sizes = {blob.digest: blob.size for blob in stored}
        self._inside: dict[str, tuple[str, ...]] = {}
        self._record = record

    async def marks(self, holders: Iterable[Holder]) -> dict[str, Mapping[str, str]]:
        """For each holder's name the digests that it needs, each with what it is.

        Raises EventUnreadable for damaged rows, DigestMismatch for a damaged table or blob: then nobody can tell what
        is needed. Raises StoreUnavailable.
        """
        return {holder.name: await self._names(holder) for holder in holders}

    async def _names(self, holder: Holder) -> Mapping[str, str]:
        known = await self._references.recorded(holder)
        if known is None:
            known = await self._closed(await self._references.named(holder))
            if self._record:
                with suppress(ResourceShort):  # a full disk is what this is for: the next look reads it once more
                    await self._references.record(holder, known)
        return known

    async def _closed(self, names: Mapping[str, str]) -> Mapping[str, str]:
        """With everything that the blobs name in turn: a packet names diffs, a state names plans."""
        found, open_ends = dict(names), list(names)
        while open_ends:
            for digest in await self._named_by(open_ends.pop()):
                if digest not in found and digest in self._sizes:
                    found[digest] = ""
                    open_ends.append(digest)
        return found

    async def _named_by(self, digest: str) -> tuple[str, ...]:
        if self._sizes.get(digest, DOCUMENT_BYTES + 1) > DOCUMENT_BYTES:
            return ()
        if digest not in self._inside:
            self._inside[digest] = await self._read(digest)
        return self._inside[digest]

    async def _read(self, digest: str) -> tuple[str, ...]:
        try:
            content = await self._blobs.get(digest)
        except BlobMissing:  # another housekeeper took it, which nothing needs then
            return ()
        # In a thread: a log of many megabytes would hold up the heartbeats.
        return await asyncio.to_thread(lambda: tuple(dict.fromkeys(digests_in(content.decode("latin-1")))))
