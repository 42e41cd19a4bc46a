"""A build that is terminated in Temporal, past its own compensation: the sweeper undoes it, and nothing else."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_temporal_cli import temporal
from tests.e2e.workshop import MUL, PLAN, SQUARE, Workshop, git, planned, wait_for

pytestmark = pytest.mark.timeout(300)  # whole builds, several of them, also on a busy machine

HANGING: list[dict[str, Any]] = [
    {"role": "Plan", "answer": PLAN},
    {"role": "Change", "task": "mul", "answer": MUL, "faults": [{"kind": "hang"}]},
    {"role": "Change", "task": "square", "answer": SQUARE},
]
ONE_TASK: list[dict[str, Any]] = [
    {"role": "Plan", "answer": {"summary": "one", "tasks": [planned("mul")]}},
    {"role": "Change", "task": "mul", "answer": MUL},
]
ASKS = 'approve = ["change"]\nreview = false\n'


def refs(at: Workshop) -> str:
    return git(at.repository, "for-each-ref") + git(at.repository, "status", "--porcelain")


def mirrored(at: Workshop, build: str) -> str:
    return git(at.state / "mirrors" / "calc.git", "for-each-ref", f"refs/mendwork/builds/{build}")


def rows(at: Workshop, query: str, *values: str) -> list[Any]:
    """What the store holds, read by another hand."""
    with sqlite3.connect(f"file:{at.state / 'mendwork.db'}?mode=ro", uri=True) as database:
        return database.execute(query, values).fetchall()


def status_of(at: Workshop, build: str) -> str:
    """Asked more often than the command line could be."""
    found = rows(at, "SELECT status FROM builds WHERE build = ?", build)
    return found[0][0] if found else ""


def asked(at: Workshop, build: str) -> list[Any]:
    """Its open approval in the log."""
    return rows(at, "SELECT 1 FROM events WHERE build = ? AND kind = 'ask.opened'", build)


def waiting_for_the_change(at: Workshop, build: str) -> list[dict[str, Any]]:
    asks: list[dict[str, Any]] = json.loads(at.mendwork("pending", build, "--json").out)
    return asks


def start(at: Workshop) -> str:
    started = at.mendwork("build", "spec.md", "--detach")
    assert started.code == 0, started.err
    return started.out.strip()


@pytest.fixture
def swept(tmp_path: Path) -> Iterator[Workshop]:
    """Looks for orphans every second; the first call for the task ``mul`` hangs, once for each build."""
    at = Workshop(tmp_path / "w", answers=HANGING)
    at.environment["MENDWORK_TIMEOUTS__SWEEP"] = "1"
    with at.running(consent=ASKS):
        yield at


def test_a_build_terminated_while_a_model_hangs_leaves_nothing_behind(swept: Workshop) -> None:
    before = refs(swept)
    name = start(swept)
    hanging = "SELECT 1 FROM calls WHERE state = 'running' AND key LIKE '%-task-mul/%'"
    wait_for(lambda: rows(swept, hanging), seconds=60, why="a hanging call")
    assert mirrored(swept, name)
    assert rows(swept, "SELECT action FROM undo WHERE outcome = ''")

    assert temporal(swept, "workflow", "terminate", "--workflow-id", name).returncode == 0
    wait_for(lambda: status_of(swept, name) != "running", seconds=60, why="the sweep")

    status = swept.status(name)
    assert (status["status"], status["fault"]) == ("aborted", "Aborted")
    assert status["sentence"] == "it was terminated; what it had not made final is undone"
    assert {task["status"] for task in status["tasks"]} <= {"aborted", "waiting"}
    assert (refs(swept), mirrored(swept, name)) == (before, "")
    assert list((swept.state / "work").iterdir()) == []
    assert {outcome for (outcome,) in rows(swept, "SELECT outcome FROM undo")} == {"undone"}
    assert rows(swept, "SELECT * FROM places") == []
    assert rows(swept, "SELECT * FROM calls WHERE state = 'running'") == []

    late = swept.mendwork("abort", name)
    assert (late.code, late.out) == (3, f"refused: {name} has ended (aborted): this comes too late\n")
    assert swept.mendwork("watch", name).code == 3


def test_a_build_that_waits_for_a_person_is_never_swept_and_a_terminated_one_waits_no_more(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w", answers=ONE_TASK)
    at.environment["MENDWORK_TIMEOUTS__SWEEP"] = "1"
    with at.running(consent=ASKS):
        kept, stopped = start(at), start(at)
        for name in (kept, stopped):
            wait_for(partial(asked, at, name), seconds=60, why=f"{name} asking")
        assert temporal(at, "workflow", "terminate", "--workflow-id", stopped).returncode == 0
        wait_for(lambda: status_of(at, stopped) == "aborted", seconds=60, why="the sweep")
        assert waiting_for_the_change(at, stopped) == []
        assert mirrored(at, stopped) == ""

        [ask] = waiting_for_the_change(at, kept)
        assert mirrored(at, kept)
        assert at.mendwork("approve", kept, ask["digest"][:12]).code == 0
        assert at.mendwork("watch", kept).code == 0
        assert at.status(kept)["status"] == "succeeded"
        assert git(at.repository, "log", "--format=%s", "-1", f"mendwork/{kept}").strip() == "Add mul"
        ends = rows(at, "SELECT action, outcome FROM undo WHERE build = ? ORDER BY action", kept)
        assert ends == [("forget_build", "final"), ("release_build", "undone"), ("retract_result", "final")]
