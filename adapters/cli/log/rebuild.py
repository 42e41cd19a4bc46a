"""``mendwork events rebuild [BUILD] [--from EXPORTED.json …] [--dry-run]``: the log, once more from the histories."""

from __future__ import annotations

import json as jsonlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.cli.session import put, say
from adapters.settings import Settings
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from domain.ports.store import Event, Store
    from domain.trace.rebuilding import Key, Rebuilt

MOST_SHOWN = 20
MEANINGS = {
    "added": "was not in the log",
    "mended": "was damaged, or told something else",
    "kept": "is in the log and in no history that was read: it stays",
    "dropped": "was damaged, and no history that was read tells what it was",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildWanted:
    """``build`` "" takes every build that the exported ``files`` tell of. Without files the server is asked."""

    build: str = ""
    files: tuple[Path, ...] = ()
    dry_run: bool = False
    json: bool = False


async def rebuild(settings: Settings, wanted: RebuildWanted) -> int:
    """Make the log what the histories say, and print what differed. Raises InvalidInput, EventConflict."""
    from adapters.store import open_store

    if not wanted.build and not wanted.files:
        raise InvalidInput("name a BUILD, or exported histories by --from")
    rows = await (_from_files(settings, wanted) if wanted.files else _from_server(settings, wanted.build))
    if not rows:
        raise InvalidInput(f"no history that can be read tells of {wanted.build or 'any build'}")
    async with await open_store(settings.store_url) as store:
        for build, events in sorted(rows.items()):
            await _rebuild(store, build, events, wanted)
    return 0


async def _rebuild(store: Store, build: str, events: list[Event], wanted: RebuildWanted) -> None:
    done = await store.events.rebuild(build, events, dry_run=wanted.dry_run)
    if wanted.json:
        put(jsonlib.dumps({"build": build, "dry_run": wanted.dry_run, **asdict(done)}))
        return
    _explain(done)
    put(f"{build}: {_summary(done, dry_run=wanted.dry_run)}")


def _summary(done: Rebuilt, *, dry_run: bool) -> str:
    counts = {name: len(getattr(done, name)) for name in MEANINGS}
    differing = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    text = f"{done.same} rows are as the histories have them" + (f"; {differing}" if differing else "")
    return f"{text} (nothing was changed)" if dry_run and done.changes else text


def _explain(done: Rebuilt) -> None:
    for name, meaning in MEANINGS.items():
        keys: tuple[Key, ...] = getattr(done, name)
        for key in keys[:MOST_SHOWN]:
            say(f"  {'/'.join(map(str, key))} {meaning}")
        if len(keys) > MOST_SHOWN:
            say(f"  and {len(keys) - MOST_SHOWN} more {name}")


async def _from_server(settings: Settings, build: str) -> Mapping[str, list[Event]]:
    from adapters.temporal.connect import connect
    from adapters.temporal.histories.harvest import harvest

    found = await harvest(await connect(settings, os.environ), build)
    for workflow, run in found.gone:
        say(f"  the history of {workflow}, run {run}, is gone: export histories before they expire")
    return {build: found.events} if found.events else {}


async def _from_files(settings: Settings, wanted: RebuildWanted) -> Mapping[str, list[Event]]:
    from adapters.temporal.connect import converter_for, namespace_of
    from adapters.temporal.histories.exports import exported

    converter = converter_for(settings, namespace_of(settings, os.environ))
    rows: dict[str, list[Event]] = {}
    for file in wanted.files:
        for event in await exported(_text(file), converter, name=str(file)):
            if wanted.build in ("", event.build):
                rows.setdefault(event.build, []).append(event)
    return rows


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason: Any = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(f"the history {file} cannot be read: {reason}") from error
