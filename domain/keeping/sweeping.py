"""Mark and sweep: what of the stored blobs nobody needs any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from domain.ports.blobs import StoredBlob


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What one part of keeping house found: ``count`` things of ``bytes`` went, or would go; ``stayed`` others stayed.

    ``why`` is a sentence when less was done than asked for, ``fault`` the class name of the error that stopped it.
    """

    kind: str
    count: int = 0
    bytes: int = 0
    stayed: int = 0
    why: str = ""
    fault: str = ""


def unneeded(stored: Iterable[StoredBlob], *, needed: Collection[str], before: int) -> tuple[StoredBlob, ...]:
    """Every blob that is not ``needed`` and was last written before ``before`` (ms since 1970)."""
    return tuple(blob for blob in stored if blob.digest not in needed and blob.written < before)
