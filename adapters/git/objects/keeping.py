"""Keeping mirrors small: refs that nothing needs any more, and the objects that no ref holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from adapters.git.mirror import Mirror
from adapters.git.run import Call
from domain.build.names import check_project_name
from domain.errors import InvalidName
from domain.ports.kept.keeping import Pins

BUILDS, SNAPSHOTS = "refs/mendwork/builds/", "refs/mendwork/snapshots/"
_SECONDS = 900.0
# One thread and little memory: builds go on beside it.
_MODEST = ("-c", "pack.threads=1", "-c", "pack.windowMemory=64m", "-c", "core.bigFileThreshold=16m")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitKeeping:
    """``domain.ports.kept.keeping.MirrorKeeping`` on the mirrors in ``folder``."""

    folder: Path

    async def projects(self) -> Sequence[str]:
        """Those that have a mirror here."""
        return sorted(name for path in self.folder.glob("*.git") if _is_project(name := path.name.removesuffix(".git")))

    async def pins(self, project: str) -> Pins:
        """Oldest first: a longer number is a later one."""
        mirror = self._mirror(project)
        names = await self._refs(mirror, BUILDS.rstrip("/"), SNAPSHOTS.rstrip("/"))
        builds = {name.removeprefix(BUILDS).split("/")[0] for name in names if name.startswith(BUILDS)}
        below = (name.removeprefix(SNAPSHOTS).split("/") for name in names if name.startswith(SNAPSHOTS))
        tokens = {f"{parts[0]}@{parts[1]}" for parts in below if len(parts) > 1}
        return Pins(
            project=project,
            builds=tuple(_by_age(builds)),
            snapshots=tuple(_by_age(tokens)),
            bytes=sum((await self._counted(mirror)).values()),
        )

    async def commits(self, project: str, *, build: str) -> int:
        """The bytes on disk of the objects that only this build's own commits have."""
        mirror = self._mirror(project)
        if not mirror.path.exists() or await mirror.ref(f"{BUILDS}{build}/base") is None:
            return 0
        names = await self._refs(mirror, f"{BUILDS}{build}")
        lines = "".join(f"{name}\n" for name in names if not name.endswith("/base"))
        wanted = Call(stdin=f"{lines}^{BUILDS}{build}/base\n".encode())
        said = await mirror.git.run("rev-list", "--objects", "--disk-usage", "--stdin",
                                    doing=f"measure the commits of {build}", call=wanted)  # fmt: skip
        return int(said.decode().strip() or 0)

    async def drop(self, project: str, *, builds: Sequence[str], snapshots: Sequence[str]) -> int:
        """Remove their refs; gone already is success."""
        mirror = self._mirror(project)
        prefixes = [f"{BUILDS}{name}" for name in builds]
        prefixes += [f"{SNAPSHOTS}{token.replace('@', '/')}" for token in snapshots]
        dropped = 0
        for prefix in prefixes:
            if count := len(await self._refs(mirror, prefix)):
                await mirror.drop_below(prefix)
                dropped += count
        return dropped

    async def tidy(self, project: str, *, before: int) -> int:
        """Pack what is loose, and prune what no ref holds and is older than ``before``; the bytes that this freed."""
        mirror = self._mirror(project)
        if not mirror.path.exists():
            return 0
        size = sum((await self._counted(mirror)).values())
        await self._pack_refs(mirror)
        await self._pack_objects(mirror, datetime.fromtimestamp(max(0, before) / 1000, UTC))
        return max(0, size - sum((await self._counted(mirror)).values()))

    async def _pack_refs(self, mirror: Mirror) -> None:
        """Under the lock of those who move refs: they take a lock of git's that they find for a dead one's."""
        async with mirror.lock("refs") as held:
            mirror.drop_stale("packed-refs")
            await mirror.git.run("pack-refs", "--all", "--prune", doing="pack the mirror's refs",
                                 call=Call(seconds=_SECONDS, keep=(held,)))  # fmt: skip

    async def _pack_objects(self, mirror: Mirror, before: datetime) -> None:
        """Under the lock of those who fetch, so that no pack comes or goes under a fetch. Commits go on being made
        beside it: what they write is young."""
        when = before.strftime("%Y-%m-%dT%H:%M:%SZ")
        async with mirror.lock("fetch") as held:
            call = Call(seconds=_SECONDS, keep=(held,))
            await mirror.git.run(*_MODEST, "repack", "-q", "-d", "-l", "-A", f"--unpack-unreachable={when}",
                                 doing="pack the mirror's objects", call=call)  # fmt: skip
            await mirror.git.run("prune", f"--expire={when}", doing="prune the mirror", call=call)

    async def _counted(self, mirror: Mirror) -> dict[str, int]:
        """Bytes of loose objects, packs and leftovers."""
        said = await mirror.git.run("count-objects", "-v", doing="measure the mirror")
        counts = dict(line.split(": ", 1) for line in said.decode().splitlines() if ": " in line)
        return {name: int(counts.get(name, 0)) * 1024 for name in ("size", "size-pack", "size-garbage")}

    async def _refs(self, mirror: Mirror, *prefixes: str) -> list[str]:
        if not mirror.path.exists():
            return []
        said = await mirror.git.run("for-each-ref", "--format=%(refname)", *prefixes, doing="read the mirror's refs")
        return said.decode().splitlines()

    def _mirror(self, project: str) -> Mirror:
        return Mirror(folder=self.folder, project=project)


def _by_age(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (len(name), name))


def _is_project(name: str) -> bool:
    try:
        check_project_name(name)
    except InvalidName:
        return False
    return True
