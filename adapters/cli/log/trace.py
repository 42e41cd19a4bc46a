"""``mendwork trace BUILD [--phase P] [--task T] [--json | --jsonl]``: the log as a tree, or as JSON lines."""

from __future__ import annotations

import json as jsonlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from adapters.cli.lines import plain
from adapters.cli.session import put
from adapters.cli.status import case_of
from adapters.settings import Settings
from domain.errors import InvalidInput, UnknownName
from domain.trace.lines import VERSION, as_line
from domain.trace.node import Node
from domain.trace.steps import costs
from domain.trace.tree import fold_trace, phases_of

if TYPE_CHECKING:
    from domain.ports.store import Event, Store

BAR = 20
"""Characters of the picture that shows what ran beside what."""
LONGEST = 160
BRANCHES = ("build", "phase", "task", "attempt", "delivery", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceWanted:
    """What a person asked to see. ``json`` is the tree as one object, ``jsonl`` its events, a line each."""

    build: str
    phase: str = ""
    task: str = ""
    json: bool = False
    jsonl: bool = False


async def trace(settings: Settings, wanted: TraceWanted) -> int:
    """Print it on stdout. Raises UnknownName, InvalidInput."""
    from adapters.store import open_store

    if wanted.json and wanted.jsonl:
        raise InvalidInput("--json is one tree, --jsonl a line an event: ask for one of them")
    async with await open_store(settings.store_url) as store:
        events = await _events(store, wanted)
    if wanted.jsonl:
        for event in _kept(events, wanted):
            put(jsonlib.dumps(as_line(event)))
        return 0
    node = fold_trace(wanted.build, events, phase=wanted.phase, task=wanted.task)
    if wanted.json:
        put(jsonlib.dumps({"v": VERSION, **asdict(node)}))
    else:
        now = max(round(time.time() * 1000), *(event.at for event in events))
        put("\n".join(tree_lines(node, now=now)))
    return 0


async def _events(store: Store, wanted: TraceWanted) -> list[Event]:
    """All of the build's, checked for what is asked of them."""
    events = [event for _, event in await store.events.read(await case_of(store, wanted.build))]
    if not events:
        known = await store.builds.list(limit=10)
        raise UnknownName.among("build", wanted.build, [row.build for row in known])
    tasks = {event.task for event in events if event.task}
    if wanted.task and wanted.task not in tasks:
        raise UnknownName.among("task", wanted.task, tasks)
    phases = {phase for phase, _ in phases_of(events)}
    if wanted.phase and wanted.phase not in phases:
        raise UnknownName.among("phase", wanted.phase, phases)
    return events


def _kept(events: Sequence[Event], wanted: TraceWanted) -> Iterator[Event]:
    """The events of the phase and the task, in time order."""
    for phase, event in phases_of(events):
        if wanted.phase in ("", phase) and wanted.task in ("", event.task):
            yield event


def tree_lines(node: Node, *, now: int) -> Iterator[str]:
    """One printable line a node; ``now`` (ms since 1970) stands for the end of what goes on."""
    whole = (node.start, max(node.end or now, node.start + 1))
    yield from _lines(node, whole, lead="", below="")


def _lines(node: Node, whole: tuple[int, int], *, lead: str, below: str) -> Iterator[str]:
    yield f"{_bar(node, whole)}  {_label(node, whole, lead)}".rstrip()
    for number, child in enumerate(node.children):
        last = number == len(node.children) - 1
        yield from _lines(
            child, whole, lead=below + ("└─ " if last else "├─ "), below=below + ("   " if last else "│  ")
        )


def _label(node: Node, whole: tuple[int, int], lead: str) -> str:
    name = node.name if node.kind in BRANCHES else f"{node.kind} {node.name}"
    lasted = "" if node.kind == "note" else f"{seconds((node.end or whole[1]) - node.start)}{'' if node.end else '…'}"
    parts = [name, node.status, f"+{seconds(node.start - whole[0])}", lasted, costs(node), node.text]
    text = "  ".join(short for part in parts if (short := _short(plain(part))))
    return lead + text


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _bar(node: Node, whole: tuple[int, int]) -> str:
    """Where in the build's time this lies."""
    if node.kind not in (*BRANCHES, "ask", "window"):
        return " " * BAR
    start, end = whole
    first = round((node.start - start) / (end - start) * BAR)
    last = round(((node.end or end) - start) / (end - start) * BAR)
    first = max(0, min(first, BAR - 1))
    return (" " * first + "━" * max(1, last - first)).ljust(BAR)[:BAR]


def seconds(millis: int) -> str:
    """``0.8 s``, ``75.0 s``, ``5.2 min``, ``1.5 h``."""
    spent = max(0, millis) / 1000
    if spent < 120:
        return f"{spent:.1f} s"
    return f"{spent / 60:.1f} min" if spent < 7200 else f"{spent / 3600:.1f} h"
