"""``mendwork disk``: what lies on the disk, and whose it is."""

from __future__ import annotations

import asyncio
import json as jsonlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from adapters.cli.house.sizes import readable
from adapters.cli.session import put, say
from adapters.settings import Settings
from domain.errors import Defect

if TYPE_CHECKING:
    from domain.keeping.holders import Holder
    from domain.ports.kept.keeping import MirrorKeeping
    from domain.ports.store import Store

LOGS = frozenset({"log", "base_log"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildUse:
    """Bytes. ``own`` are blobs that only this build, its snapshots and its releases name, ``logs`` those of them that
    commands printed; ``shared`` others name too; ``commits`` are in the mirror and only this build's."""

    build: str
    project: str
    own: int
    shared: int
    logs: int
    commits: int


async def disk(settings: Settings, *, json: bool) -> int:
    """Print it; a build whose rows are damaged is said and left out."""
    from adapters.git.folders import remove_tree
    from adapters.git.objects.keeping import GitKeeping
    from adapters.house.folders import StateFolders
    from adapters.store import open_store

    folders = StateFolders(settings.state, remove=remove_tree)
    mirrors = GitKeeping(folder=settings.common.resolve() / "mirrors")
    async with await open_store(settings.store_url) as store:
        builds, unnamed, stored = await _builds(settings, store, mirrors)
    kinds = dict(await asyncio.to_thread(folders.sizes))
    if settings.blobs.url:
        kinds["blobs"] = stored
    projects = {name: (await mirrors.pins(name)).bytes for name in await mirrors.projects()}
    if json:
        listed = [asdict(each) for each in builds]
        put(jsonlib.dumps({"builds": listed, "mirrors": projects, "unnamed": unnamed, "kinds": kinds}))
        return 0
    for each in builds:
        put(_line(each))
    for name, size in projects.items():
        put(f"mirror of {name}: {readable(size)}")
    put("; ".join(f"{kind} {readable(size)}" for kind, size in kinds.items()))
    if unnamed:
        put(f"blobs that nothing names: {readable(unnamed)}")
    return 0


async def _builds(settings: Settings, store: Store, mirrors: MirrorKeeping) -> tuple[list[BuildUse], int, int]:
    """By build; the bytes of blobs that none names, and of all."""
    from activities.keeping.marking import Marking
    from adapters.cli.serving.stored import blobs_of

    blobs = blobs_of(settings)
    stored = await blobs.list()
    holders = await store.references.holders()
    marks = await _marks(Marking(store.references, blobs, stored), holders)
    sizes = {blob.digest: blob.size for blob in stored}
    owners: dict[str, dict[str, str]] = {}
    for holder in holders:
        owners.setdefault(holder.owner, {}).update(marks.get(holder.name, {}))
    named = Counter(digest for names in owners.values() for digest in names if digest in sizes)
    projects = {holder.owner: holder.project for holder in holders if holder.project}
    pinned = {name: project for project in await mirrors.projects() for name in (await mirrors.pins(project)).builds}
    found = []
    for owner, names in owners.items():
        own = {digest: what for digest, what in names.items() if named[digest] == 1}
        use = BuildUse(
            build=owner,
            project=projects.get(owner, ""),
            own=sum(sizes[digest] for digest in own),
            shared=sum(sizes[digest] for digest in names if named[digest] > 1),
            logs=sum(sizes[digest] for digest, what in own.items() if what in LOGS),
            commits=await mirrors.commits(pinned[owner], build=owner) if owner in pinned else 0,
        )
        found.append(use)
    unnamed = sum(size for digest, size in sizes.items() if not named[digest])
    return found, unnamed, sum(sizes.values())


async def _marks(marking: Any, holders: Sequence[Holder]) -> dict[str, Mapping[str, str]]:
    marks: dict[str, Mapping[str, str]] = {}
    for holder in holders:
        try:
            marks |= await marking.marks([holder])
        except Defect as error:
            say(f"  {holder.name}: {error}")
    return marks


def _line(use: BuildUse) -> str:
    parts = [f"{readable(use.own)} of its own", f"{readable(use.shared)} shared"]
    if use.logs:
        parts[0] += f" ({readable(use.logs)} logs)"
    return f"{use.build}: {', '.join(parts)}, commits {readable(use.commits)}"
