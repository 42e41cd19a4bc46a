"""One commit's files as a prompt shows them, inside a budget of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from domain.build.context import ContextFile, fit, numbered
from domain.ports.workspace import Sources, TreeFile

README_BYTES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The tracked files of one commit; see ``open_pages``."""

    sources: Sources
    project: str
    commit: str
    tree: tuple[TreeFile, ...]

    async def show(self, paths: Iterable[str], *, left: int, lines: bool = False) -> tuple[ContextFile, ...]:
        """Those of ``paths`` that are files here, in full or with the reason why not; with ``lines``, numbered."""
        sizes = {file.path: file.size for file in self.tree if file.kind in ("file", "executable")}
        shown: list[ContextFile] = []
        for path in dict.fromkeys(path for path in paths if path in sizes):
            shown.append(await self._page(path, sizes[path], left, lines))
            left -= len(shown[-1].text.encode())
        return tuple(shown)

    async def readme(self) -> str:
        """The text of the first file called README, "" where there is none or it is long."""
        found = next((f for f in self.tree if f.path.lower().startswith("readme") and f.size < README_BYTES), None)
        if found is None:
            return ""
        return fit(found.path, await self._read(found.path), left=README_BYTES).text

    async def _page(self, path: str, size: int, left: int, lines: bool) -> ContextFile:
        too_large = ContextFile(path=path, text="", left_out=f"{size} bytes do not fit")
        if size > left:
            return too_large
        page = fit(path, await self._read(path), left=left)
        page = numbered(page) if lines else page
        return page if len(page.text.encode()) <= left else too_large

    async def _read(self, path: str) -> bytes:
        return await self.sources.read(self.project, self.commit, path)


async def open_pages(sources: Sources, project: str, commit: str) -> Pages:
    """The commit's files, listed and not yet read."""
    return Pages(sources=sources, project=project, commit=commit, tree=await sources.files(project, commit))
