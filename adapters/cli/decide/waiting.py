"""What waits for a person, from the store; and which of it an answer is meant for."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from adapters.cli.lines import plain
from adapters.cli.session import put, say
from adapters.cli.status import details_of
from adapters.settings import Settings
from domain.errors import EventUnreadable, InvalidInput
from domain.trace.asks import AskDetails, commands

if TYPE_CHECKING:
    from domain.ports.store import Store

MOST_BUILDS = 1000
SHOWN_DIGITS = 12


async def pending(settings: Settings, build: str, *, json: bool) -> int:
    """Print every open ask, or those of one build, with the commands that answer it. Raises UnknownName."""
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        names = [build] if build else [r.build for r in await store.builds.list(limit=MOST_BUILDS) if not r.ended]
        asks = [(name, ask) for name in names for ask in await _open(store, name, strict=bool(build))]
    if json:
        put(jsonlib.dumps([{"build": name, **asdict(ask), "commands": commands(name, ask)} for name, ask in asks]))
        return 0
    for name, ask in asks:
        _put(name, ask)
    if not asks:
        say("nothing waits for a person")
    return 0


async def open_ask(store: Store, build: str, *, kind: str, named: str = "") -> AskDetails:
    """The ask of ``kind`` that ``named`` names, or the only one. Raises InvalidInput, UnknownName."""
    asks = [ask for ask in (await details_of(store, build)).open_asks() if ask.kind == kind]
    meant = [ask for ask in asks if named in ("", ask.id)]
    if len(meant) == 1:
        return meant[0]
    if not asks:
        raise InvalidInput(f"{build} asks for no {'approval' if kind == 'approval' else 'answer'} now")
    if named:
        raise InvalidInput(f"{build} asks nothing under the name {named[:80]!r}; open: {_names(asks)}")
    raise InvalidInput(f"{build} asks several things: name one of {_names(asks)}")


async def _open(store: Store, build: str, *, strict: bool) -> list[AskDetails]:
    try:
        return (await details_of(store, build)).open_asks()
    except EventUnreadable as error:
        if strict:
            raise
        say(f"mendwork: {build} cannot be read: {error}")
        return []


def _names(asks: Sequence[AskDetails]) -> str:
    return ", ".join(plain(ask.id) for ask in asks)


def _put(build: str, ask: AskDetails) -> None:
    what = f"approval of the {ask.about}" if ask.kind == "approval" else f"a question about {ask.task or ask.about}"
    put(f"{build}  {plain(ask.id)}  {plain(what)}  digest {ask.digest[:SHOWN_DIGITS]}  {until(ask)}")
    put(f"  {plain(ask.sentence)}")
    for command in commands(build, ask):
        put(f"  {plain(command)}")


def until(ask: AskDetails) -> str:
    """When the silence of people counts."""
    return f"until {datetime.fromtimestamp(ask.deadline / 1000, UTC).strftime('%Y-%m-%d %H:%M UTC')}"
