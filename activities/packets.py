"""What a person decides about, as one document: an answer that names its digest is bound to what it showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity

from activities.documents import canonical
from domain.errors import TooLarge
from domain.ports.blobs import Blobs
from domain.ports.workspace import Sources

MAX_DOCUMENT_BYTES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PackInput:
    """``document`` holds references, numbers and short texts. With ``commit``, the diff from ``base`` is part of it."""

    project: str
    document: Mapping[str, Any] = field(default_factory=dict)
    base: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """``digest`` names the packet, ``diff`` the diff's text ("" without one)."""

    digest: str
    diff: str = ""


class Packets:
    """Reads mirrors, writes blobs."""

    def __init__(self, *, sources: Sources, blobs: Blobs) -> None:
        self._sources = sources
        self._blobs = blobs

    @activity.defn
    async def pack(self, request: PackInput) -> Packed:
        """Store the packet; the same content has the same digest. Raises TooLarge, RepositoryRefused."""
        document, diff = dict(request.document), ""
        size = len(canonical(document))
        if size > MAX_DOCUMENT_BYTES:
            raise TooLarge(
                f"the packet has {size} bytes, at most {MAX_DOCUMENT_BYTES} are allowed: name long texts by digest"
            )
        if request.commit:
            text = await self._sources.diff(request.project, request.base, request.commit)
            diff = await self._blobs.put(text.encode())
            document |= {"base": request.base, "commit": request.commit, "diff": diff}
        return Packed(digest=await self._blobs.put(canonical(document)), diff=diff)
