"""What a digest is, and whether bytes have it."""

from __future__ import annotations

import hashlib
import re

from domain.errors import DigestMismatch, InvalidInput

_DIGEST = re.compile(r"[0-9a-f]{64}")


def digest_of(content: bytes) -> str:
    """The SHA-256 as 64 lower-case hex digits."""
    return hashlib.sha256(content).hexdigest()


def is_digest(text: str) -> bool:
    """Whether ``text`` is spelled like one."""
    return _DIGEST.fullmatch(text) is not None


def checked_digest(digest: str) -> str:
    """Return ``digest``, which becomes a path. Raises InvalidInput for anything but 64 lower-case hex digits."""
    if not is_digest(digest):
        raise InvalidInput(f"{digest[:80]!r} is no blob's digest: 64 lower-case hex digits")
    return digest


def checked_content(digest: str, content: bytes) -> bytes:
    """Return ``content``. Raises DigestMismatch."""
    found = digest_of(content)
    if found != digest:
        raise DigestMismatch(f"blob {digest} is damaged: {len(content)} bytes with the digest {found}")
    return content
