"""``mendwork build --dry-run``: plan for real, then tell what the rest would take."""

from __future__ import annotations

import json as jsonlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adapters.cli.follow import Following, follow_as
from adapters.cli.lines import line_of, plain
from adapters.cli.log.screens import JsonScreen
from adapters.cli.session import put, say
from adapters.settings import Settings
from domain.build.details import fold_details
from domain.build.requests import BuildRequest, title_of
from domain.money.usage import dollars

if TYPE_CHECKING:
    from domain.ports.store import Event
    from domain.trace.parts import BuildDetails

_COLUMNS = ("task", "model", "asked on", "tested in", "tested on", "calls", "tokens in", "out", "cost", "time", "title")
_RANGES = ("calls", "input_tokens", "output_tokens", "cost_micros", "seconds")
_NAMES = {"input_tokens": "tokens in", "output_tokens": "tokens out", "cost_micros": "cost", "seconds": "time"}


class Beside(JsonScreen):
    """Lines for people on stderr; the data comes when all is over."""

    def show(self, events: Sequence[Event], details: BuildDetails) -> None:
        """See Screen."""
        for event in events:
            line = line_of(event)
            if line and event.kind != "build.forecast":
                say(line)


async def rehearse(settings: Settings, request: BuildRequest, *, json: bool) -> int:
    """Start the dry run, follow it, and print its forecast. Raises Transient when no worker answers."""
    from adapters.cli.build import check_worker, start_build
    from adapters.store import open_store
    from adapters.temporal.connect import connect

    client = await connect(settings, os.environ)
    await check_worker(client, settings)
    async with await open_store(settings.store_url) as store:
        name = await start_build(client, settings, store, request)
        say(f"{name} started, as a dry run: {title_of(request)}")
        say("the base is tested and one model is asked for a plan, for real; nothing of the plan is done")
        code = await follow_as(store, name, client=client, how=Following(screen=Beside(), wait=True))
        events = [event for _, event in await store.events.read(name)]
    told = [event.data["forecast"] for event in events if event.kind == "build.forecast"]
    details = fold_details(name, events)
    if not told or details.status != "planned":
        return code
    if json:
        put(jsonlib.dumps(_as_json(details, told[-1])))
        return code
    for line in (*lines_of(told[-1]), _spent(details)):
        put(line)
    return code


def lines_of(forecast: Mapping[str, Any]) -> Iterator[str]:
    """The tasks as a table, what follows them, the totals, and what all that stands on."""
    yield from _table([_COLUMNS, *(_row(task) for task in forecast["tasks"])])
    if forecast["more"]:
        yield f"and {forecast['more']} more tasks"
    for step in forecast["after"]:
        yield f"then {plain(step)}"
    yield ""
    low, middle, high = (forecast["totals"][name] for name in ("low", "expected", "high"))
    for name in _RANGES:
        said = [_shown(name, each[name]) for each in (low, middle, high)]
        span = "" if said[0] == said[2] else f"  ({said[0]} to {said[2]})"
        yield f"{_NAMES.get(name, name):<10}  {said[1]}{span}"
    yield f"basis       {plain(forecast['basis'])}"
    for note in forecast["notes"]:
        yield f"note        {plain(note)}"


def line_for(forecast: Mapping[str, Any]) -> str:
    """One line, as ``watch`` shows it."""
    middle = forecast.get("totals", {}).get("expected")
    if middle is None:  # of another version
        return f"what it would take is told by --json ({plain(forecast.get('basis', ''))})"
    said = f"{middle['calls']} calls, {_shown('cost_micros', middle['cost_micros'])}"
    return f"it would take {said}, {_shown('seconds', middle['seconds'])} ({plain(forecast['basis'])})"


def _as_json(details: BuildDetails, forecast: Mapping[str, Any]) -> dict[str, Any]:
    spent = {"calls": details.spent.calls, "cost_micros": details.spent.cost_micros, "unpriced": details.spent.unpriced}
    return {"build": details.build, "status": details.status, "planning": spent, "forecast": dict(forecast)}


def _spent(details: BuildDetails) -> str:
    calls = f"{details.spent.calls} call{'' if details.spent.calls == 1 else 's'}"
    unknown = " and what nobody knows" if details.spent.unpriced else ""
    return f"planning    {calls}, {dollars(details.spent.cost_micros)}{unknown}, already spent on this dry run"


def _row(task: Mapping[str, Any]) -> tuple[str, ...]:
    took = task["expected"]
    where = (task["model"], task["asks"], task["engine"], task["tests"])
    numbers = (
        _shown(name, took[name]) for name in ("calls", "input_tokens", "output_tokens", "cost_micros", "seconds")
    )
    return (plain(task["id"]), *map(plain, where), *numbers, plain(task["title"]))


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    if name == "cost_micros":
        return dollars(int(value))
    if name != "seconds":
        return f"{value:,}"
    minutes, seconds = divmod(round(value), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
