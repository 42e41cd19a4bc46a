"""Mirrors: the base that a build starts from, and the head that its tasks move."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from adapters.git.failures import refusal
from adapters.git.mirror import Mirror, build_ref, check_sha
from adapters.git.objects.transfer import fetch
from adapters.git.origin import open_origin
from domain.build.project import Project
from domain.errors import Overtaken, RepositoryRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class GitMirrors:
    """The port ``Mirrors`` on bare repositories in ``folder``."""

    folder: Path

    async def fetch_base(self, project: Project, *, build: str) -> str:
        """Fetch the project's branch and pin it for ``build``; a build that is pinned keeps its base."""
        mirror = Mirror(folder=self.folder, project=project.name)
        base = build_ref(build, "base")
        if await mirror.ref(base) is None:
            await self._pin(project, mirror, build)
        pinned = await mirror.ref(base)
        if pinned is None:
            raise Overtaken(f"build {build} was forgotten while its base was fetched")
        head = build_ref(build, "head")
        if await mirror.ref(head) is None:
            await self._create(mirror, head, pinned)
        return pinned

    async def head(self, project: str, *, build: str) -> str:
        """The commit that the build's next task starts from."""
        commit = await Mirror(folder=self.folder, project=project).ref(build_ref(build, "head"))
        if commit is None:
            raise RepositoryRefused(
                f"build {build} has no head in the mirror of project {project}: fetch its base first"
            )
        return commit

    async def advance(self, project: str, *, build: str, old: str, new: str) -> None:
        """Move the build's head from ``old`` to ``new``; a writer that comes too late gets Overtaken."""
        mirror = Mirror(folder=self.folder, project=project)
        check_sha(old)
        await mirror.require(new)
        head = build_ref(build, "head")
        result = await mirror.update_ref(head, new, old)
        if result.code == 0:
            return
        now = await mirror.ref(head)
        if now == old:
            raise refusal(result.stderr, doing=f"move the head of build {build}")
        if now != new:
            raise Overtaken(f"the head of build {build} is at {(now or 'nothing')[:12]}, not at {old[:12]}")

    async def forget(self, project: str, *, build: str) -> None:
        """Remove every ref of the build from the mirror."""
        mirror = Mirror(folder=self.folder, project=project)
        prefix = build_ref(build)
        if not mirror.path.exists():
            return
        await mirror.drop_below(prefix)
        if await mirror.git.run("for-each-ref", "--count=1", prefix, doing=f"read the refs of {build}"):
            raise Overtaken(f"refs of build {build} are still there: another process writes them")

    async def _pin(self, project: Project, mirror: Mirror, build: str) -> None:
        origin = await open_origin(project, mirror.git.home)
        branch = await origin.require_branch()
        taken = await origin.result(build)
        if taken:
            raise origin.taken(build, taken)
        origin.require_writable()
        arrived = build_ref(build, f"fetched-{secrets.token_hex(4)}")
        commit = await fetch(origin, mirror, branch, to=arrived)
        await self._create(mirror, build_ref(build, "base"), commit)
        await mirror.update_ref(arrived, "", "")

    async def _create(self, mirror: Mirror, name: str, commit: str) -> None:
        """Create a ref; one that is there already stays as it is."""
        result = await mirror.update_ref(name, commit, "")
        if result.code and await mirror.ref(name) is None:
            raise refusal(result.stderr, doing=f"pin {name}")
