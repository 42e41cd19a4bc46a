"""What the store's tests run in processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import alembic.command  # noqa: F401 - imported once for all processes, a second each otherwise
from sqlalchemy import insert, make_url
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.compliance.calls import CALL, PAYER, REFUSED
from adapters.compliance.store import event, whole_build
from adapters.store import open_store
from adapters.store.database import Database
from adapters.store.sql import DRIVERS
from adapters.store.sqlite_file import prepare
from adapters.store.tables import events
from domain.ports.language_model import CallKey
from domain.ports.store import Store, UndoRecord


def _run(url: str, work: Callable[[Store], Awaitable[None]]) -> None:
    async def main() -> None:
        async with await open_store(url) as store:
            await work(store)

    asyncio.run(main())


def open_and_close(url: str, barrier: Any) -> None:
    """The first start of a process, at the same moment as others."""
    barrier.wait()

    async def nothing(store: Store) -> None:
        assert await store.builds.list() == []

    _run(url, nothing)


def append_rows(url: str, build: str, count: int) -> None:
    """``count`` single appends, each a transaction."""

    async def work(store: Store) -> None:
        for number in range(1, count + 1):
            await store.events.append([event(number, build=build, task="one")])

    _run(url, work)


def work_as_a_saga(url: str, name: str, count: int) -> None:
    """Model calls and undo records: transactions that read before they write."""

    async def work(store: Store) -> None:
        for number in range(1, count + 1):
            key = CallKey(saga=f"build-{name}-1", step="change", attempt=number)
            payer = replace(PAYER, build=f"build-{name}-1")
            call = await store.calls.begin(key, replace(CALL, payer=payer))
            await store.calls.end(key, call, outcome=REFUSED)
            undo = UndoRecord(key=str(key), build=f"build-{name}-1", action="forget", data={})
            await store.undo.register(undo)
            await store.undo.close(undo.key, outcome="final")

    _run(url, work)


def prepare_files(folder: Path, count: int, barrier: Any) -> None:
    """First starts on new files, each at the same moment as other processes, and a first write."""
    for number in range(count):
        barrier.wait()
        path = folder / f"{number}.db"
        prepare(path, name="the test's store")
        with closing(sqlite3.connect(path, timeout=20)) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS first (number INTEGER)")


def append_whole(url: str, build: str) -> None:
    """One build in two batches, twice: what a worker does whose acknowledgement was lost."""

    async def work(store: Store) -> None:
        for batch in (whole_build(build)[:3], whole_build(build)[3:]) * 2:
            await store.events.append(batch)

    _run(url, work)


def reserve(url: str, count: int, sender: Any) -> None:
    """Take ``count`` numbers and send them."""

    async def work(store: Store) -> None:
        sender.send([await store.builds.reserve_number("a") for _ in range(count)])

    _run(url, work)


def append_and_tell(url: str, build: str, sender: Any) -> None:
    """Append for ever in batches of three, and send each batch's last sequence when it was acknowledged."""

    async def work(store: Store) -> None:
        first = 1
        while True:
            await store.events.append([event(n, build=build, task="one", n=n) for n in range(first, first + 3)])
            first += 3
            sender.send(first - 1)

    _run(url, work)


def answer_each(url: str, build: str, other: str, count: int) -> None:
    """Wait for each of ``other``'s first ``count`` events, and append one to ``build``'s log for it."""

    async def work(store: Store) -> None:
        after = 0
        for number in range(1, count + 1):
            assert await store.arrivals.wait(other, after=after, seconds=600)
            after = (await store.events.read(other))[-1][0]
            await store.events.append([event(number, build=build, task="one")])

    _run(url, work)


def die_inside_a_transaction(url: str, build: str) -> None:
    """Insert half a batch, then be killed before the commit."""

    async def main() -> None:
        parsed = make_url(url)
        database = Database(parsed.set(drivername=DRIVERS[parsed.get_backend_name()]))

        async def work(connection: AsyncConnection) -> None:
            row = {"build": build, "task": "", "attempt": 0, "kind": "x", "at": 1, "data": "{}", "digest": "d"}
            rows = [row | {"first_run": "r", "run": "r", "sequence": n} for n in range(1, 200)]
            await connection.execute(insert(events), rows)
            os.kill(os.getpid(), signal.SIGKILL)

        await database.write("events", work)

    asyncio.run(main())
