"""``mendwork status``: builds as the store knows them."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from adapters.cli.lines import plain
from adapters.cli.session import put
from adapters.settings import Settings
from domain.build.details import fold_details
from domain.delivery.requests import delivery_saga_id
from domain.errors import EventUnreadable, UnknownName
from domain.money.usage import dollars
from domain.trace.asks import AskDetails, commands
from domain.trace.parts import BuildDetails

if TYPE_CHECKING:
    from domain.ports.store import BuildRow, CallTry, Store


async def many(settings: Settings, *, project: str, limit: int, json: bool) -> int:
    """The newest builds, a line each."""
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        rows = await store.builds.list(project=project or None, limit=limit)
        waiting = {row.build: await _waiting(store, row) for row in rows if not row.ended}
    if json:
        put(jsonlib.dumps([{**asdict(row), "asks": [ask.id for ask in waiting.get(row.build, ())]} for row in rows]))
        return 0
    for row in rows:
        put(_line(row, waiting.get(row.build, [])))
    return 0


async def one(settings: Settings, build: str, *, json: bool) -> int:
    """One build with its tasks, attempts and cost."""
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        details = await details_of(store, build)
        tries = await store.calls.tries(build)
    if json:
        put(jsonlib.dumps(_as_json(details, tries)))
        return 0
    paused = "  paused" if details.paused and details.status == "running" else ""
    put(f"{details.build}  {details.status}  {details.phase}{paused}  {plain(details.title)}")
    if details.parent:
        put(f"  goes on from {plain(details.parent)}, by which {dollars(details.carried.cost_micros)} was spent")
    for task in details.tasks.values():
        put(f"  {task.task}  {task.status}  {len(task.attempts)} attempts  {plain(task.title)}")
        if task.sentence and task.status not in ("merged", "succeeded"):
            put(f"    {plain(task.sentence)}")
    put(f"  {_money(tries)}")
    for text in details.warnings:
        put(f"  {plain(text)}")
    if details.sentence:
        put(f"  {plain(details.sentence)}")
    for line in _delivery(details):
        put(f"  {plain(line)}")
    for each in details.missing:
        put(f"  missing: {plain(each.get('task', ''))}: {plain(each.get('why', ''))}")
    for ask in details.open_asks():
        _put_ask(details.build, ask)
    return 0


async def case_of(store: Store, name: str) -> str:
    """The name under which the log has it: a delivery of a build writes into its build's."""
    build = name.removesuffix(delivery_saga_id(""))
    if build == name or await store.builds.get(name) is not None or await store.builds.get(build) is None:
        return name
    return build


async def details_of(store: Store, build: str) -> BuildDetails:
    """Raises UnknownName with the newest builds' names."""
    build = await case_of(store, build)
    events = [event for _, event in await store.events.read(build)]
    if not events:
        known = await store.builds.list(limit=10)
        raise UnknownName.among("build", build, [row.build for row in known])
    return fold_details(build, events)


async def _waiting(store: Store, row: BuildRow) -> list[AskDetails]:
    try:
        return (await details_of(store, row.build)).open_asks()
    except EventUnreadable:
        return []  # its row says so


def _put_ask(build: str, ask: AskDetails) -> None:
    until = f", until {_time(ask.deadline)}" if ask.deadline else ""
    put(f"  waits for a person: {plain(ask.sentence)} ({ask.id}, digest {ask.digest[:12]}{until})")
    for command in commands(build, ask):
        put(f"    {command}")


def _delivery(details: BuildDetails) -> Iterator[str]:
    """Where its delivery is, and what is left of one that could not be undone."""
    told = details.delivery
    if not told.status:
        return
    where = f" ({told.phase})" if told.status == "running" else ""
    url = f"  {told.url}" if told.url else ""
    yield f"release {told.release}: {told.status}{where}{url}"
    if told.waits and told.status == "running":
        yield f"  waits: {told.waits}"
    if told.sentence and told.sentence != details.sentence:
        yield f"  {told.sentence}"
    for each in told.residues:
        yield f"  left: {each}"


def _time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _line(row: BuildRow, asks: list[AskDetails]) -> str:
    line = f"{row.build}  {row.status}  {row.phase}  {_time(row.started)}  {plain(row.title)}"
    if asks:
        line += f"  (waits for a person: {', '.join(ask.id for ask in asks)})"
    return f"{line}  (its log is damaged at {row.damaged})" if row.damaged else line


def _money(tries: Any) -> str:
    unknown = sum(t.state == "unknown" or (t.usage is not None and t.usage.cost_micros is None) for t in tries)
    text = f"{len(tries)} calls, {dollars(_cost(tries))}"
    return f"{text}, and {unknown} of unknown cost" if unknown else text


def _cost(tries: Any) -> int:
    return sum(t.usage.cost_micros or 0 for t in tries if t.usage is not None)


def _as_json(details: BuildDetails, tries: Any) -> dict[str, Any]:
    calls: list[CallTry] = list(tries)
    running = sum(call.state == "running" for call in calls)
    going_on = details.status == "running"  # a call that its build did not wait for has a cost that nobody knows
    return {
        "build": details.build,
        "project": details.project,
        "title": details.title,
        "parent": details.parent,
        "phase": details.phase,
        "status": details.status,
        "sentence": details.sentence,
        "fault": details.fault,
        "branch": details.branch,
        "commit": details.commit,
        "diff": details.diff,
        "target": details.target,
        "paused": details.paused,
        "missing": [dict(each) for each in details.missing],
        "warnings": details.warnings,
        "delivery": asdict(details.delivery) if details.delivery.status else None,
        "asks": [asdict(ask) | {"how": commands(details.build, ask)} for ask in details.open_asks()],
        "tasks": [
            {
                "task": task.task,
                "title": task.title,
                "status": task.status,
                "attempts": len(task.attempts),
                "phase": task.attempts[-1].phase if task.attempts else "",
                "sentence": task.sentence,
                "sent_back": task.sent_back,
            }
            for task in details.tasks.values()
        ],
        "cost_micros": _cost(calls),
        "carried_micros": details.carried.cost_micros,
        "calls": len(calls),
        "calls_running": running if going_on else 0,
        "calls_unknown": sum(call.state == "unknown" for call in calls) + (0 if going_on else running),
    }
