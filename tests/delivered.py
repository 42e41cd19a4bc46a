"""Everything that can be seen of a workshop's deliveries from outside, read in one go."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection
from temporalio.client import Client, WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from adapters.settings import Settings, load_settings
from adapters.store import open_store, tables
from adapters.store.sql import SqlStore
from adapters.target.launch.earlier import born_at
from adapters.target.local.adapter import open_local
from adapters.target.local.overview import Overview, overview
from adapters.temporal.connect import connect
from domain.delivery.lane import lane_id
from domain.errors import EventUnreadable
from domain.ports.releases import Release
from domain.ports.store import Event, Store
from domain.ports.target import PRODUCTION
from tests.e2e.workshop import Workshop

LANE_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """An undo record; ``saga`` is whose it is, ``outcome`` "" while it is open."""

    saga: str
    key: str
    action: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """``born`` tells two of one pid apart; ``words`` is its command line, ``environment`` as /proc has it."""

    pid: int
    parent: int
    born: str
    user: int
    folder: str
    words: bytes
    environment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """``cases`` are the logs of all cases in which something was delivered; ``histories`` by workflow and run;
    ``running`` the sagas that run, ``lanes`` what each project's lane says of itself (a lane that never began is not
    there). ``orders`` and ``programs`` are the files of the target's units and programs, by their path and name."""

    at: Workshop
    settings: Settings
    cases: Mapping[str, Sequence[Event]]
    histories: Mapping[tuple[str, str], WorkflowHistory]
    releases: Sequence[Release]
    undo: Sequence[Undone]
    running: Sequence[str]
    lanes: Mapping[str, Mapping[str, Any]]
    overview: Overview
    orders: Mapping[Path, Mapping[str, Any]]
    programs: Mapping[str, str]


async def look_at_deliveries(at: Workshop) -> Observed:
    """Temporal and the workers have to answer."""
    settings = load_settings(start=at.root, environment=at.environment)
    client = await connect(settings, at.environment, patience=30)
    target = open_local(at.state)
    projects = [name for name, project in settings.allowlist().items() if project.delivery is not None]
    async with await open_store(settings.store_url) as store:
        lanes = {name: state for name in projects if (state := await _lane(client, name))}
        releases = [each for name in projects for each in await store.releases.list(name, limit=1_000)]
        histories = {key: history async for key, history in _histories(client)}
        return Observed(
            at=at,
            settings=settings,
            cases=await _cases(store),
            histories=histories,
            releases=releases,
            undo=await _undo(store, {release.saga for release in releases}),
            running=await _running(client),
            lanes=lanes,
            overview=await asyncio.to_thread(overview, target),
            orders={path: json.loads(path.read_text()) for path in target.folders.root.glob("*/*/*/order.json")},
            programs={path.name: path.read_text() for path in (target.folders.own / "programs").glob("*.ini")},
        )


async def _cases(store: Store) -> dict[str, Sequence[Event]]:
    found: dict[str, Sequence[Event]] = {}
    for row in await store.builds.list(limit=1_000):
        with suppress(EventUnreadable):
            events = [event for _, event in await store.events.read(row.build)]
            if any(event.kind == "delivery.began" for event in events):
                found[row.build] = events
    return found


async def _undo(store: Store, sagas: set[str]) -> list[Undone]:
    assert isinstance(store, SqlStore)
    columns = (tables.undo.c.build, tables.undo.c.key, tables.undo.c.action, tables.undo.c.outcome)

    async def read(connection: AsyncConnection) -> list[Undone]:
        rows = await connection.execute(select(*columns).where(tables.undo.c.build.in_(sagas)))
        return [Undone(saga=saga, key=key, action=action, outcome=outcome) for saga, key, action, outcome in rows]

    return await store._database.read(read)


async def _running(client: Client) -> list[str]:
    """A list may be behind by a moment: each is asked for itself."""
    listed = [each.id async for each in client.list_workflows()]
    handles = [client.get_workflow_handle(name) for name in dict.fromkeys(listed)]
    return [handle.id for handle in handles if (await handle.describe()).close_time is None]


async def _histories(client: Client) -> Any:
    async for each in client.list_workflows():
        with suppress(RPCError):  # its time was over just now
            handle = client.get_workflow_handle(each.id, run_id=each.run_id)
            yield (each.id, each.run_id), await handle.fetch_history()


async def _lane(client: Client, project: str) -> Mapping[str, Any]:
    """As soon as nobody holds it who has ended: a saga that leaves is heard a moment later."""
    handle, until = client.get_workflow_handle(lane_id(project, PRODUCTION)), time.monotonic() + LANE_SECONDS
    while True:
        try:
            state: Mapping[str, Any] = await handle.query("state")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return {}
        holder = (state["holder"] or {}).get("place", {}).get("saga", "")
        ended = holder and (await client.get_workflow_handle(holder).describe()).close_time is not None
        if not ended or time.monotonic() > until:
            return state
        await asyncio.sleep(0.1)


def processes() -> Iterator[Process]:
    """All that may be looked at, as they are now."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, IndexError, ValueError):  # it ended while we look, or is not ours
            yield Process(
                pid=int(entry.name),
                parent=int((entry / "stat").read_text().rpartition(")")[2].split()[1]),
                born=born_at(entry.name),
                user=entry.stat().st_uid,
                folder=os.readlink(entry / "cwd"),
                words=(entry / "cmdline").read_bytes(),
                environment=(entry / "environ").read_bytes(),
            )


def below(roots: set[int], known: Mapping[int, Process]) -> set[int]:
    """The pids of ``roots`` and of all their descendants."""
    found, grown = set(roots), True
    while grown:
        more = {process.pid for process in known.values() if process.parent in found} - found
        found, grown = found | more, bool(more)
    return found


def serving(at: Workshop) -> list[Process]:
    """What runs of the workshop's target, however it came to run."""
    root = open_local(at.state).folders.root
    users = {json.loads(path.read_text())["uid"] for path in root.glob("*/*/*/order.json")} - {os.geteuid()}
    return [each for each in processes() if each.user in users or Path(each.folder).is_relative_to(root)]
