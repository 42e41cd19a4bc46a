"""Content-addressed storage: prompts, answers, plans, logs."""

from __future__ import annotations

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
