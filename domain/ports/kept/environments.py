"""Set-up dependencies, kept by key and never changed again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEnvironment:
    """``bytes`` on disk; ``used_at`` is when it was last used, seconds since 1970. ``key`` is 64 hex digits."""

    key: str
    project: str
    bytes: int
    used_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedEnvironment:
    """An environment that stays as long as it is used; ``folder`` holds what the set-up left: untrusted, not to be
    followed, only to be shown to a sandbox."""

    kept: KeptEnvironment
    folder: Path


class KeptEnvironments(Protocol):
    """Whole environments only: what a killed worker was still making is never seen, and taken by the next maker.

    Keys that are no 64 hex digits raise InvalidInput.
    """

    def using(self, key: str) -> AbstractAsyncContextManager[UsedEnvironment | None]:
        """The environment, which cannot be removed as long as the context is open; its last use is now. None when it
        is not here."""
        ...

    def making(self, key: str, *, project: str) -> AbstractAsyncContextManager[Path]:
        """A new empty folder, to be filled. It is the environment ``key`` once the context ends well; then, of two
        makers, the first one's counts and the other's is removed. Otherwise nothing is left of it.

        Raises ResourceShort when there is no room.
        """
        ...

    async def list(self) -> Sequence[KeptEnvironment]:
        """All of them, sorted by key."""
        ...

    async def remove(self, key: str) -> bool:
        """Whether it is gone: False while something uses it. One that is not here is gone."""
        ...
