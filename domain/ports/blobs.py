"""Content-addressed storage: prompts, answers, plans, logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Blobs(Protocol):
    """Bytes by the SHA-256 of their content, as 64 lower-case hex digits.

    ``put`` is idempotent and durable when it returns: a killed writer leaves the whole blob or none.
    ``get`` checks the content against the digest on every read; putting a damaged blob again mends it.
    """

    async def put(self, content: bytes) -> str:
        """Store ``content`` and return its digest. Raises ResourceShort (disk full), StoreUnavailable."""
        ...

    async def get(self, digest: str) -> bytes:
        """Return the content.

        Raises BlobMissing, DigestMismatch when the stored bytes are damaged, InvalidInput for what is no digest,
        StoreUnavailable.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlob:
    """A blob as it lies there: ``size`` in bytes, ``written`` when it was last put, in ms since 1970."""

    digest: str
    size: int
    written: int


class KeptBlobs(Blobs, Protocol):
    """What the housekeeper sees of blobs. A put of what is there counts as writing it, so that its age says how long
    nobody wrote it; a put and a removal of the same blob come one after the other.
    """

    async def list(self) -> Sequence[StoredBlob]:
        """Every blob, by digest. Raises StoreUnavailable."""
        ...

    async def remove(self, digest: str, *, before: int) -> int:
        """Remove the blob if it was last written before ``before`` (ms since 1970), and return the bytes that this
        freed: 0 when it is gone already or younger. Raises InvalidInput for what is no digest, StoreUnavailable."""
        ...
