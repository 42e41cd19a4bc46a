"""Keeping house: who names which blobs, what lies in mirrors and folders, and taking away what nothing needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.keeping.holders import Holder


class References(Protocol):
    """The reference table: which digests each holder names. It follows from the store's other rows and can always be
    made again from them. All methods are safe across processes and may be repeated.
    """

    async def holders(self) -> Sequence[Holder]:
        """Every build, snapshot and release that the store has a row of. Raises StoreUnavailable."""
        ...

    async def named(self, holder: Holder) -> Mapping[str, str]:
        """The digests in the holder's own rows, each with what it is ("log", "plan", …), read afresh.

        Raises EventUnreadable when one of the rows is damaged: nobody can tell then what it named.
        """
        ...

    async def recorded(self, holder: Holder) -> Mapping[str, str] | None:
        """What the table holds for this ``state`` of the holder; None when it has none yet, or of an earlier state.

        Raises DigestMismatch when the table does not add up: it is damaged, and ``forget`` is the cure.
        """
        ...

    async def record(self, holder: Holder, names: Mapping[str, str]) -> None:
        """Replace what the table holds for the holder. Raises StoreUnavailable, ResourceShort."""
        ...

    async def forget(self, holders: Sequence[str] = ()) -> None:
        """Empty the table, or only of these names: the next look makes it again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """What a project's mirror keeps objects for: ``builds`` by name, ``snapshots`` by token. ``bytes`` on disk."""

    project: str
    builds: tuple[str, ...]
    snapshots: tuple[str, ...]
    bytes: int


class MirrorKeeping(Protocol):
    """The refs of mirrors, and what no ref holds any more."""

    async def projects(self) -> Sequence[str]:
        """Those that have a mirror here, also when the configuration no longer knows them."""
        ...

    async def pins(self, project: str) -> Pins:
        """Raises RepositoryRefused, ResourceShort."""
        ...

    async def commits(self, project: str, *, build: str) -> int:
        """The bytes on disk of the objects that only this build's own commits have, its base's not among them."""
        ...

    async def drop(self, project: str, *, builds: Sequence[str], snapshots: Sequence[str]) -> int:
        """Remove their refs and return how many there were. Gone already is success."""
        ...

    async def tidy(self, project: str, *, before: int) -> int:
        """Pack what is loose, and prune what no ref holds and was written before ``before`` (ms since 1970); returns
        the bytes that this freed. Others may fetch and commit meanwhile. Raises ResourceShort when it takes too long.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """Things that were found, or taken away, with their bytes on disk."""

    count: int = 0
    bytes: int = 0


class Folders(Protocol):
    """The state folder's own folders: checkouts, logs, git indexes."""

    def abandoned(self, *, before: int, remove: bool) -> Remains:
        """Those that were made before ``before`` (ms since 1970), or by a worker that is dead, and what is cut from
        logs that grew long. Raises ResourceShort, StoreUnavailable."""
        ...

    def sizes(self) -> Mapping[str, int]:
        """Bytes on disk by kind: mirrors, environments, index, work, logs, blobs, store, rest."""
        ...
