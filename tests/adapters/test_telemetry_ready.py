"""What /readyz asks of a worker: each subsystem is there, and each is said to be away when it is."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.cli.serving import seen
from adapters.cli.serving.seen import common_checks, git_check, sandbox_check, store_check, target_check
from adapters.settings import Settings, load_settings
from adapters.store import open_store
from adapters.telemetry.health import Check, examine

CONFIGURATION = """
[projects.notes]
repository = "."
test = "make check"

[projects.notes.delivery]
target = "local"
run = "python -m notes"
"""


@dataclass(kw_only=True)
class Server:
    """A connection to Temporal, and a worker on it, as the checks see them."""

    serves: bool = True
    is_running: bool = True
    is_shutdown: bool = False

    @property
    def service_client(self) -> Server:
        return self

    async def check_health(self, *, timeout: timedelta) -> bool:
        return self.serves


@dataclass(kw_only=True)
class Cells:
    """A sandbox that lacks what ``lacking`` says."""

    lacking: dict[str, str] = field(default_factory=dict)

    def missing(self) -> Mapping[str, str]:
        return self.lacking


@dataclass(kw_only=True)
class Machine:
    """All that a worker needs, in one folder; ``checks`` are those of every class together."""

    settings: Settings
    checks: dict[str, Check]
    server: Server
    cells: Cells
    programs: dict[str, str]
    state: Path

    async def wrong(self) -> dict[str, str]:
        """What is said of each subsystem that is not ready."""
        return {name: why for name, why in (await examine(self.checks, patience=30)).items() if why}


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Machine]:
    (tmp_path / "mendwork.toml").write_text(CONFIGURATION)
    settings = load_settings(start=tmp_path, environment={})
    settings.state.mkdir()
    server, cells, programs = Server(), Cells(), {"PATH": os.environ["PATH"]}
    async with await open_store(settings.store_url) as store:
        given: Any = server
        sandbox: Any = cells
        checks = {
            **common_checks(settings, given, given),
            **store_check(store),
            **git_check(programs),
            **sandbox_check(sandbox),
            **target_check(settings),
        }
        made = Machine(
            settings=settings, checks=checks, server=server, cells=cells, programs=programs, state=settings.state
        )
        yield made


NAMES = {"temporal", "worker", "state", "disk", "blobs", "store", "git", "sandbox", "target local"}


async def test_where_all_is_there_all_is_ready(at: Machine) -> None:
    assert set(at.checks) == NAMES
    assert await at.wrong() == {}


def server_hangs_up(at: Machine) -> None:
    at.server.serves = False


def worker_ended(at: Machine) -> None:
    at.server.is_running = False


def blobs_folder_is_a_file(at: Machine) -> None:
    (at.state / "blobs").write_text("")


def store_lost_its_tables(at: Machine) -> None:
    import sqlite3

    database = sqlite3.connect(at.state / "mendwork.db")
    database.execute("DROP TABLE builds")
    database.close()


def git_is_gone(at: Machine) -> None:
    at.programs["PATH"] = str(at.state)


def sandbox_is_gone(at: Machine) -> None:
    at.cells.lacking = {"engine": "bubblewrap is not installed"}


@pytest.mark.parametrize(
    ("breaks", "name", "why"),
    [
        (server_hangs_up, "temporal", "does not serve"),
        (worker_ended, "worker", "does not poll"),
        (blobs_folder_is_a_file, "blobs", "cannot be read"),
        (store_lost_its_tables, "store", ""),
        (git_is_gone, "git", "git is not installed"),
        (sandbox_is_gone, "sandbox", "bubblewrap is not installed"),
    ],
)
async def test_one_that_is_away_is_named_and_no_other(
    at: Machine, breaks: Callable[[Machine], None], name: str, why: str
) -> None:
    breaks(at)
    wrong = await at.wrong()
    assert set(wrong) == {name}
    assert why in wrong[name]


async def test_a_state_folder_that_is_gone_is_said(at: Machine) -> None:
    at.state.rename(at.state.with_name("elsewhere"))
    wrong = await at.wrong()
    assert wrong["state"] == "the state folder cannot be written"
    assert stat.S_ISDIR(at.state.with_name("elsewhere").stat().st_mode)


async def test_a_disk_that_is_nearly_full_is_said(at: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "ROOM_BYTES", 1 << 62)
    wrong = await at.wrong()
    assert set(wrong) == {"disk"}
    assert "MiB are free" in wrong["disk"]


async def test_a_target_without_its_proxy_is_said_with_the_cure(at: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which

    def which(name: str, **where: Any) -> str | None:
        return None if name == "haproxy" else real(name, **where)

    monkeypatch.setattr(shutil, "which", which)
    wrong = await at.wrong()
    assert set(wrong) == {"target local"}
    assert "apt-get install -y haproxy" in wrong["target local"]
    monkeypatch.undo()
    assert await at.wrong() == {}, "it is looked for anew each time"


async def test_a_worker_without_targets_asks_for_none(tmp_path: Path) -> None:
    (tmp_path / "mendwork.toml").write_text("")
    assert target_check(load_settings(start=tmp_path, environment={})) == {}
