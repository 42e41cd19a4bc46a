"""A commit's manifests and lock files: what decides what is installed, and whether anybody knows the names in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from domain.environment.detect import is_input
from domain.environment.names import includes, unknown, wanted
from domain.environment.project import Setup
from domain.ports.workspace import Sources

_ROUNDS = 5
"""How deep lists of requirements may include each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """``known`` are the names of well-known packages by kind ("pypi", "npm", "go")."""

    sources: Sources
    known: Mapping[str, Collection[str]]

    async def of(self, project: str, setup: Setup, commit: str) -> Mapping[str, bytes]:
        """Their contents by path; those of links are no manifests."""
        files = {file.path: file for file in await self.sources.files(project, commit) if file.kind != "submodule"}
        found: dict[str, bytes] = {}
        new = {path for path in files if is_input(path, setup)}
        for _ in range(_ROUNDS):
            # A link, or what is too large to read, is something that cannot be read, in just that state.
            found |= {path: f"object {files[path].oid}".encode() for path in new}
            found |= await self.sources.read_many(project, [files[path] for path in sorted(new)])
            new = {each for path in new & found.keys() for each in includes(path, found[path])}
            new &= files.keys() - found.keys()
            if not new:
                break
        return found

    def unknown(
        self, files: Mapping[str, bytes], *, before: Mapping[str, bytes], setup: Setup, allowed: Collection[str]
    ) -> tuple[str, ...]:
        """What ``files`` ask for and a person has to allow: it is in nothing of ``before``, in no configuration, not
        ``allowed`` and not well known."""
        return unknown(wanted(files), trusted=wanted(before), names=(*setup.packages, *allowed), known=self.known)
