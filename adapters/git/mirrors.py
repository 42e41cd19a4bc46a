"""Mirrors: the base that a build starts from, and the head that its tasks move."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.git.failures import refusal
from adapters.git.mirror import SNAPSHOTS, Mirror, build_ref, check_sha, snapshot_ref
from adapters.git.objects.transfer import fetch
from adapters.git.origin import Origin, open_origin
from domain.build.project import Project
from domain.errors import Overtaken, RepositoryRefused

ARRIVING = "arriving"
"""Below it is what each try of a fetch brings, until the base is pinned: a killed one leaves its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitMirrors:
    """The port ``Mirrors`` on bare repositories in ``folder``."""

    folder: Path

    async def fetch_base(self, project: Project, *, build: str) -> str:
        """Fetch the project's branch and pin it for ``build``; a build that is pinned keeps its base."""
        mirror = Mirror(folder=self.folder, project=project.name)
        base = build_ref(build, "base")
        if await mirror.ref(base) is None:
            with contextlib.suppress(Overtaken):  # another try of the same pinned the base: that one holds
                await self._pin(project, mirror, build)
        pinned = await mirror.ref(base)
        if pinned is None:
            raise Overtaken(f"build {build} was forgotten while its base was fetched")
        await mirror.drop_below(build_ref(build, ARRIVING))
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
        head = build_ref(build, "head")
        if not mirror.path.exists():
            await mirror.require(new)
        result = await mirror.update_ref(head, f"{check_sha(new)}^{{commit}}", old)
        if result.code == 0:
            return
        await mirror.require(new)
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

    async def pin_snapshot(self, project: str, *, build: str, number: int, commits: Sequence[str]) -> None:
        """Keep ``commits`` for as long as the snapshot is kept."""
        mirror, prefix = Mirror(folder=self.folder, project=project), snapshot_ref(build, number)
        for commit in commits:
            await mirror.require(commit)
        await mirror.pin_below(prefix, commits)

    async def snapshots(self, project: str) -> tuple[tuple[str, int], ...]:
        """Build and number of each that is pinned."""
        mirror = Mirror(folder=self.folder, project=project)
        if not mirror.path.exists():
            return ()
        listed = await mirror.git.run("for-each-ref", "--format=%(refname)", SNAPSHOTS,
                                      doing=f"read the snapshots of project {project}")  # fmt: skip
        parts = [line.removeprefix(f"{SNAPSHOTS}/").split("/") for line in listed.decode().splitlines()]
        return tuple(sorted({(build, int(number)) for build, number, _ in parts}))

    async def unpin(self, project: str, *, build: str, number: int) -> None:
        """Remove the pins of one snapshot."""
        mirror, prefix = Mirror(folder=self.folder, project=project), snapshot_ref(build, number)
        if mirror.path.exists():
            await mirror.drop_below(prefix)

    async def restore(self, project: Project, *, build: str, base: str, head: str) -> None:
        """Make commits of a snapshot the base and the head of ``build``."""
        mirror = Mirror(folder=self.folder, project=project.name)
        try:
            for commit in (base, head):
                await mirror.require(commit)
        except RepositoryRefused as error:
            raise RepositoryRefused(f"{error}: what the snapshot needs is not kept any more") from error
        if await mirror.ref(build_ref(build, "base")) is None:
            await self._require_landable(await open_origin(project, mirror.git.home), build)
            await self._create(mirror, build_ref(build, "base"), base)
        pinned = await mirror.ref(build_ref(build, "base"))
        if pinned != base:
            found = (pinned or "nothing")[:12]
            raise RepositoryRefused(f"build {build} started from {found} already, not from {base[:12]}")
        await self._create(mirror, build_ref(build, "head"), head)

    async def _pin(self, project: Project, mirror: Mirror, build: str) -> None:
        origin = await open_origin(project, mirror.git.home)
        branch = await origin.require_branch()
        await self._require_landable(origin, build)
        arrived = build_ref(build, ARRIVING, secrets.token_hex(4))
        commit = await fetch(origin, mirror, branch, to=arrived)
        base, head = build_ref(build, "base"), build_ref(build, "head")
        if await mirror.create_refs(commit, base, head, gone=arrived):
            return
        await self._create(mirror, base, commit)
        await mirror.update_ref(arrived, "", "")

    async def _require_landable(self, origin: Origin, build: str) -> None:
        """Raise what would otherwise only be found out at the end."""
        taken = await origin.result(build)
        if taken:
            raise origin.taken(build, taken)
        origin.require_writable()

    async def _create(self, mirror: Mirror, name: str, commit: str) -> None:
        """Create a ref; one that is there already stays as it is."""
        result = await mirror.update_ref(name, commit, "")
        if result.code and await mirror.ref(name) is None:
            raise refusal(result.stderr, doing=f"pin {name}")
