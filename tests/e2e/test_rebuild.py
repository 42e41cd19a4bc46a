"""``events rebuild`` ends with the same rows: from the server's histories, after a reset, and from exports alone."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.temporal.finding import find_server
from tests.e2e.workshop import Workshop, wait_for

SAGAS = ("", "-task-mul", "-task-square")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """One Mendwork whose logs these tests damage."""
    at = Workshop(tmp_path_factory.mktemp("rebuilding") / "w")
    with at.running():
        yield at


@pytest.fixture(scope="module")
def build(shop: Workshop) -> str:
    """A build that ended; each test leaves its log as it was."""
    ran = shop.mendwork("build", "spec.md", "--project", "calc", "--yes")
    assert ran.code == 0, ran.err
    return ran.out.strip()


def rows(at: Workshop, build: str) -> list[Any]:
    """The build's rows as the file holds them, without their positions, and its line in the list of builds."""
    with sqlite3.connect(at.state / "mendwork.db") as connection:
        columns = "first_run, run, sequence, build, task, attempt, kind, at, data, digest"
        log = connection.execute(f"SELECT {columns} FROM events WHERE build = ? ORDER BY 1, 2, 3", (build,)).fetchall()  # noqa: S608
        listed = connection.execute("SELECT * FROM builds WHERE build = ?", (build,)).fetchall()
    connection.close()
    return [*log, *listed]


def change(at: Workshop, statement: str, build: str) -> None:
    with sqlite3.connect(at.state / "mendwork.db") as connection:
        assert connection.execute(statement, (build,)).rowcount
    connection.close()


def temporal(at: Workshop, *arguments: str) -> str:
    """Temporal's own command line, on our server."""
    address = json.loads((at.state / "dev.json").read_text())["address"]
    argv = [find_server(explicit=None, environment=os.environ), *arguments, "--address", address]
    return subprocess.run(argv, env=at.environment, check=True, capture_output=True, text=True).stdout


def export(at: Workshop, build: str, *, suffix: str = "") -> Path:
    path = at.root / f"{build}{suffix}.json"
    path.write_text(temporal(at, "workflow", "show", "-w", f"{build}{suffix}", "-o", "json"))
    return path


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM events WHERE build = ?",
        "DELETE FROM events WHERE build = ? AND sequence % 2 = 0",
        "UPDATE events SET data = '{}' WHERE build = ? AND kind = 'build.ended'",
        "UPDATE events SET at = at + 1 WHERE build = ?",
        "UPDATE builds SET status = 'running', ended = 0 WHERE build = ?",
    ],
    ids=["all lost", "half lost", "the end damaged", "every row damaged", "its line wrong"],
)
def test_a_damaged_log_is_as_it_was(shop: Workshop, build: str, damage: str) -> None:
    before = rows(shop, build)
    change(shop, damage, build)
    assert rows(shop, build) != before
    ran = shop.mendwork("events", "rebuild", build)
    assert ran.code == 0, ran.err
    assert rows(shop, build) == before


def test_exports_alone_are_enough(shop: Workshop, build: str, tmp_path: Path) -> None:
    files = [str(export(shop, build, suffix=suffix)) for suffix in SAGAS]
    elsewhere = Workshop(tmp_path / "w")
    elsewhere.configure()
    ran = elsewhere.mendwork("events", "rebuild", *(word for file in files for word in ("--from", file)))
    assert ran.code == 0, ran.err
    assert rows(elsewhere, build) == rows(shop, build)
    assert elsewhere.mendwork("trace", build, "--jsonl").out == shop.mendwork("trace", build, "--jsonl").out


def test_a_dry_run_says_what_differs_and_changes_nothing(shop: Workshop, build: str) -> None:
    whole = rows(shop, build)
    change(shop, "DELETE FROM events WHERE build = ? AND kind = 'build.planned'", build)
    before = rows(shop, build)
    ran = shop.mendwork("events", "rebuild", build, "--dry-run")
    assert (ran.code, "1 added (nothing was changed)" in ran.out) == (0, True)
    assert rows(shop, build) == before
    assert shop.mendwork("events", "rebuild", build).code == 0
    assert rows(shop, build) == whole


def test_a_build_that_the_server_does_not_know_is_told(shop: Workshop) -> None:
    ran = shop.mendwork("events", "rebuild", "build-calc-999")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no history that can be read tells of build-calc-999" in ran.err


def test_a_build_that_was_reset_is_as_it_was(shop: Workshop, build: str) -> None:
    """Last of all: from here on its history has two runs."""
    first = len(rows(shop, build))
    point = landed(json.loads(export(shop, build).read_text())["events"])
    temporal(shop, "workflow", "reset", "-w", build, "--reason", "a test", "--event-id", point)
    wait_for(lambda: len(rows(shop, build)) > first, why="the rows of the new run")
    before = rows(shop, build)
    assert shop.status(build)["status"] == "succeeded"
    change(shop, "DELETE FROM events WHERE build = ? AND sequence > 3", build)
    assert shop.mendwork("events", "rebuild", build).code == 0
    assert rows(shop, build) == before


def landed(history: list[dict[str, Any]]) -> str:
    """The end of the workflow task that came after the landing: what follows is done again in a new run."""
    step = next(
        event["eventId"]
        for event in history
        if event.get("activityTaskScheduledEventAttributes", {}).get("activityType", {}).get("name") == "land_result"
    )
    done = next(
        int(event["eventId"])
        for event in history
        if event.get("activityTaskCompletedEventAttributes", {}).get("scheduledEventId") == step
    )
    return next(
        str(event["eventId"])
        for event in history
        if event["eventType"] == "EVENT_TYPE_WORKFLOW_TASK_COMPLETED" and int(event["eventId"]) > done
    )
