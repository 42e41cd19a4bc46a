"""The reference table in one process's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from adapters.store.references.reading import (
    TAKEN,
    Seen,
    build_holder,
    damaged,
    names_of_build,
    names_of_release,
    release_holder,
    snapshot_holder,
)
from domain.keeping.holders import BUILD, RELEASE, Holder
from domain.keeping.references import checksum, named_in
from domain.ports.store import RecordedCall

if TYPE_CHECKING:
    from adapters.store.memory import MemoryStore


class MemoryReferences:
    """``domain.ports.kept.keeping.References``."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._table: dict[str, tuple[str, str, dict[str, str]]] = {}

    async def holders(self) -> Sequence[Holder]:
        events, calls, undo = self._store.events.everything(), self._store.calls.kept(), self._store.undo.every()
        names = sorted({e.build for e in events} | {k.shown.build for k in calls} | {r.build for r in undo})
        found = []
        for build in names:
            mine = [event for event in events if event.build == build]
            called = [kept for kept in calls if kept.shown.build == build]
            times = [*(event.at for event in mine), *(kept.shown.at for kept in called)] or [0]
            ended = sum(isinstance(kept.ended, RecordedCall) for kept in called)
            state = f"{len(mine)}/{len(called)}:{ended}/{sum(record.build == build for record in undo)}"
            row = await self._store.builds.get(build)
            found.append(build_holder(build, Seen(first=min(times), last=max(times), state=state), row))
        projects = {holder.name: holder.project for holder in found}
        taken = [event for event in events if event.kind == TAKEN]
        found += [snapshot_holder(each, project=projects[each.build], state=each.key) for each in taken]
        return [*found, *map(release_holder, self._store.releases.every())]

    async def named(self, holder: Holder) -> Mapping[str, str]:
        if holder.kind == RELEASE:
            release = await self._store.releases.get(holder.project, holder.number)
            return names_of_release(release) if release else {}
        events = [event for _, event in await self._store.events.read(holder.owner)]
        if holder.kind != BUILD:
            return named_in([dict(e.data) for e in events if e.kind == TAKEN and e.data.get("token") == holder.name])
        ended = [kept.ended for kept in self._store.calls.kept() if kept.shown.build == holder.name]
        answers = [(each.answer, each.value) for each in ended if isinstance(each, RecordedCall)]
        return names_of_build(events, answers, [r for r in self._store.undo.every() if r.build == holder.name])

    async def recorded(self, holder: Holder) -> Mapping[str, str] | None:
        if holder.name not in self._table:
            return None
        state, total, names = self._table[holder.name]
        if total != checksum(names):
            raise damaged(holder.name)
        return dict(names) if state == holder.state else None

    async def record(self, holder: Holder, names: Mapping[str, str]) -> None:
        self._table[holder.name] = (holder.state, checksum(names), dict(names))

    async def forget(self, holders: Sequence[str] = ()) -> None:
        for name in holders or list(self._table):
            self._table.pop(name, None)
