"""Releases in one process's memory."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.store.delivery.content import check_owner, is_newer, read, written
from domain.ports.releases import Release


class MemoryReleases:
    """``domain.ports.releases.Releases``."""

    def __init__(self) -> None:
        self._sagas: dict[tuple[str, int], str] = {}
        self._contents: dict[tuple[str, int], str] = {}

    async def reserve(self, project: str, *, saga: str) -> int:
        number = self._number(project, saga)
        if not number:
            number = 1 + max((n for p, n in self._sagas if p == project), default=0)
            self._sagas[project, number] = saga
        return number

    async def record(self, release: Release) -> None:
        content, key = written(release), (release.project, release.number)
        owned = self._number(release.project, release.saga)
        check_owner(release, owner=self._sagas.get(key, ""), owned=owned)
        if is_newer(release, content, there=self._contents.get(key, "")):
            self._sagas[key] = release.saga
            self._contents[key] = content

    async def get(self, project: str, number: int) -> Release | None:
        return read(self._contents.get((project, number), ""))

    async def list(self, project: str, *, limit: int = 50) -> Sequence[Release]:
        numbers = sorted((n for p, n in self._contents if p == project), reverse=True)
        found = (await self.get(project, number) for number in numbers[:limit])
        return [release async for release in found if release is not None]

    def every(self) -> Sequence[Release]:
        """Of all projects, by number."""
        found = (read(self._contents[key]) for key in sorted(self._contents))
        return [release for release in found if release is not None]

    def _number(self, project: str, saga: str) -> int:
        return next((n for (p, n), owner in self._sagas.items() if (p, owner) == (project, saga)), 0)
