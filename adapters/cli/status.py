"""``mendwork status``: builds as the store knows them."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from adapters.cli.lines import plain
from adapters.cli.session import put
from adapters.settings import Settings
from domain.build.details import BuildDetails, fold_details
from domain.errors import UnknownName
from domain.money.usage import dollars

if TYPE_CHECKING:
    from domain.ports.store import BuildRow, CallTry, Store


async def many(settings: Settings, *, project: str, limit: int, json: bool) -> int:
    """The newest builds, a line each."""
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        rows = await store.builds.list(project=project or None, limit=limit)
    if json:
        put(jsonlib.dumps([asdict(row) for row in rows]))
        return 0
    for row in rows:
        put(_line(row))
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
    put(f"{details.build}  {details.status}  {details.phase}  {plain(details.title)}")
    for task in details.tasks.values():
        put(f"  {task.task}  {task.status}  {len(task.attempts)} attempts  {plain(task.title)}")
    put(f"  {_money(tries)}")
    if details.sentence:
        put(f"  {plain(details.sentence)}")
    return 0


async def details_of(store: Store, build: str) -> BuildDetails:
    """Raises UnknownName with the newest builds' names."""
    events = [event for _, event in await store.events.read(build)]
    if not events:
        known = await store.builds.list(limit=10)
        raise UnknownName.among("build", build, [row.build for row in known])
    return fold_details(build, events)


def _line(row: BuildRow) -> str:
    started = datetime.fromtimestamp(row.started / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    line = f"{row.build}  {row.status}  {row.phase}  {started}  {plain(row.title)}"
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
        "phase": details.phase,
        "status": details.status,
        "sentence": details.sentence,
        "fault": details.fault,
        "branch": details.branch,
        "commit": details.commit,
        "tasks": [
            {
                "task": task.task,
                "title": task.title,
                "status": task.status,
                "attempts": len(task.attempts),
                "phase": task.attempts[-1].phase if task.attempts else "",
            }
            for task in details.tasks.values()
        ],
        "cost_micros": _cost(calls),
        "calls": len(calls),
        "calls_running": running if going_on else 0,
        "calls_unknown": sum(call.state == "unknown" for call in calls) + (0 if going_on else running),
    }
