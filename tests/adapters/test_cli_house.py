"""``mendwork gc`` and ``mendwork disk`` on a real store, real blobs, a real mirror and a real server."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from activities.beating import BeatingInterceptor
from adapters.blobs import open_blobs
from adapters.cli.house.disk import disk
from adapters.cli.house.home import at_home, beside_the_store, end_leftovers
from adapters.cli.house.sizes import readable
from adapters.cli.house.sweep import GcWanted, collect
from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import open_git
from adapters.settings import Settings
from adapters.store import open_store
from domain.errors import Transient, UnknownName
from domain.keeping.holders import DAY_MS
from domain.ports.store import Event
from tests.conftest import TemporalServer
from workflows.housekeeper import Housekeeper

NOW = int(time.time() * 1000)


class House:
    """A state folder with a past build, ``old``, and one of yesterday, ``young``, which share their spec."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = settings.state
        self.blobs = open_blobs(settings.state)

    async def fill(self) -> None:
        user = UserRepository(self.settings.root / "repository")
        git = open_git(self.state)
        async with await open_store(self.settings.store_url) as store:
            for build, age in (("build-shop-1", 200), ("build-shop-2", 3)):
                await git.mirrors.fetch_base(user.project(), build=build)
                log, spec = await self.put(f"the log of {build}"), await self.put("the spec")
                kinds: list[tuple[str, dict[str, Any]]] = [
                    ("build.started", {"project": "shop", "title": "t"}),
                    ("build.admitted", {"project": "shop", "spec": spec}),
                    ("gates.ran", {"log": log}),
                    ("build.ended", {"status": "succeeded", "sentence": ""}),
                ]
                events = [
                    Event(first_run=build, run=build, sequence=n, build=build, kind=kind, at=NOW - age * DAY_MS, data=d)
                    for n, (kind, d) in enumerate(kinds, 1)
                ]
                await store.events.append(events)

    async def put(self, content: str) -> str:
        digest = await self.blobs.put(content.encode())
        at = time.time() - 5 * 86_400
        os.utime(self.state / "blobs" / digest[:2] / digest[2:], (at, at))
        return digest

    async def contents(self) -> set[str]:
        return {(await self.blobs.get(blob.digest)).decode() for blob in await self.blobs.list()}


@pytest.fixture
async def house(
    make_settings: Callable[..., Settings], temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> House:
    for name, value in temporal.environment.items():
        monkeypatch.setenv(name, value)
    project = {"repository": tmp_path / "repository", "test": ("true",)}
    settings = make_settings(temporal={"task_queue": f"q-{uuid.uuid4().hex}"}, projects={"shop": project})
    made = House(settings)
    await made.fill()
    return made


@asynccontextmanager
async def workers(house: House, client: Client) -> AsyncIterator[None]:
    """The three that keep house, put together as in their processes."""
    settings, queue, beats = house.settings, house.settings.temporal.task_queue, [BeatingInterceptor()]
    async with await open_store(settings.store_url) as store:
        stored = beside_the_store(settings, store)
        with at_home(settings, "workspace") as mirrors, at_home(settings, "sandbox") as environments:
            async with (
                Worker(client, task_queue=queue, workflows=[Housekeeper], activities=stored, interceptors=beats),
                Worker(client, task_queue=f"{queue}-workspace", activities=mirrors, interceptors=beats),
                Worker(client, task_queue=f"{queue}-sandbox", activities=environments, interceptors=beats),
            ):
                yield


async def test_gc_says_what_would_go_and_then_takes_just_that(
    house: House, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    async with workers(house, client):
        assert await collect(house.settings, GcWanted(dry_run=True, json=True)) == 0
        would = json.loads(capsys.readouterr().out)
        assert len(await house.contents()) == 3, "a dry run takes nothing"
        assert await collect(house.settings, GcWanted()) == 0
        told = capsys.readouterr().out.splitlines()
        assert await collect(house.settings, GcWanted(json=True)) == 0
        again = json.loads(capsys.readouterr().out)
    counts = {kind["kind"]: kind["count"] for kind in would["kinds"]}
    assert counts == {"blobs": 1, "mirrors": 1, "environments": 0, "folders": 0}
    assert told[0] == "blobs: 1 gone, 23 B; 2 stay"
    assert told[1].startswith("mirrors: 1 gone")
    assert sum(kind["count"] for kind in again["kinds"]) == 0, "a second one finds nothing"
    assert await house.contents() == {"the spec", "the log of build-shop-2"}
    assert (await open_git(house.state).mirrors.head("shop", build="build-shop-2")) != ""


async def test_gc_with_a_damaged_log_fails_with_the_reason_and_takes_nothing(
    house: House, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    import sqlite3

    with sqlite3.connect(house.state / "mendwork.db") as database:
        database.execute("UPDATE events SET data = '{}' WHERE build = 'build-shop-2' AND kind = 'gates.ran'")
    database.close()
    async with workers(house, client):
        assert await collect(house.settings, GcWanted()) == 1
    shown = capsys.readouterr()
    assert "blobs: event build-shop-2/build-shop-2/3 of build build-shop-2 is damaged" in shown.err
    assert "blobs" not in shown.out
    assert len(await house.contents()) == 3


async def test_gc_of_an_unknown_project_lists_the_known_ones(house: House) -> None:
    with pytest.raises(UnknownName, match="'shoe'; known: shop"):
        await collect(house.settings, GcWanted(project="shoe"))


async def test_gc_without_a_worker_says_so(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.cli.build.WORKER_PATIENCE_SECONDS", 0.5)
    with pytest.raises(Transient, match="no worker answers"):
        await collect(house.settings, GcWanted())


async def test_disk_shows_what_is_a_builds_own_and_what_it_shares(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    await house.put("nobody's")
    assert await disk(house.settings, json=True) == 0
    shown = json.loads(capsys.readouterr().out)
    builds = {each["build"]: each for each in shown["builds"]}
    assert builds["build-shop-1"] == {
        "build": "build-shop-1",
        "project": "shop",
        "own": len("the log of build-shop-1"),
        "shared": len("the spec"),
        "logs": len("the log of build-shop-1"),
        "commits": 0,
    }
    assert shown["unnamed"] == len("nobody's")
    assert shown["mirrors"]["shop"] > 0
    assert shown["kinds"]["blobs"] > 0
    assert await disk(house.settings, json=False) == 0
    told = capsys.readouterr().out
    assert "build-shop-2: 23 B of its own (23 B logs), 8 B shared, commits 0 B" in told
    assert "blobs that nothing names: 8 B" in told


def test_the_next_start_says_what_it_ended(house: House) -> None:
    (house.state / "work" / "left-over").mkdir(parents=True)
    said: list[str] = []
    end_leftovers(house.settings, say=said.append)
    assert said == ["ended what killed workers had left: 1 folder"]
    end_leftovers(house.settings, say=said.append)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (1_234, "1.23 kB"), (999_999, "1 MB"), (45_600_000, "45.6 MB"),
     (7 * 10**15, "7000 TB")],
)  # fmt: skip
def test_sizes_are_readable(size: int, text: str) -> None:
    assert readable(size) == text
