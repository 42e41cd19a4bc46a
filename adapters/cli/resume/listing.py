"""``mendwork snapshots``: what a build can be gone on from."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict
from datetime import UTC, datetime

from adapters.cli.lines import plain
from adapters.cli.session import put, say
from adapters.cli.status import details_of
from adapters.settings import Settings
from domain.money.usage import dollars
from domain.replay.snapshots import Snapshot, taken_in


async def snapshots(settings: Settings, build: str, *, json: bool) -> int:
    """A line each, oldest first. Raises UnknownName."""
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        details = await details_of(store, build)
        found = taken_in(event for _, event in await store.events.read(details.build))
    if json:
        parent = {"build": details.build, "parent": details.parent}
        put(jsonlib.dumps({**parent, "snapshots": [asdict(each) for each in found]}))
        return 0
    if details.parent:
        say(f"{details.build} goes on from {plain(details.parent)}")
    if not found:
        say(f"mendwork: {details.build} has no snapshot yet: the first is taken after its intake")
    width = max((len(each.token) for each in found), default=0)
    for each in found:
        put(f"{each.token:<{width}}  {_line(each)}")
    return 0


def _line(each: Snapshot) -> str:
    at = datetime.fromtimestamp(each.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    where = f"after {plain(each.after):<12}  next: {plain(each.phase):<12}"
    return f"{where}  {plain(each.head)[:12]}  {each.calls:>4} calls  {dollars(each.spent)}  {at}"
