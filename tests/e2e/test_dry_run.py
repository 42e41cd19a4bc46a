"""A dry run plans for real and touches nothing: what it would take is printed, with what that stands on."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.workshop import ANSWERS, Ran, Workshop, git

PLANNED = [entry for entry in ANSWERS if entry["role"] == "Plan"]


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    workshop = Workshop(tmp_path_factory.mktemp("dry") / "w")
    with workshop.running():
        yield workshop


def everything(folder: Path) -> dict[str, str]:
    """Each file of a repository, its own folder included, by content and mode."""
    return {
        str(path.relative_to(folder)): f"{path.lstat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def mirror_refs(at: Workshop) -> list[str]:
    mirror = next(path for path in (at.state / "mirrors").iterdir() if path.is_dir())
    return git(mirror, "for-each-ref", "--format=%(refname)").splitlines()


def open_undo(at: Workshop) -> list[str]:
    with sqlite3.connect(at.state / "mendwork.db") as connection:
        rows = connection.execute("select key, outcome from undo").fetchall()
    return [key for key, outcome in rows if not outcome]


def forecast(ran: Ran) -> dict[str, object]:
    told: dict[str, object] = json.loads(ran.out)
    return told


def test_a_dry_run_then_a_build_then_a_dry_run_that_knows_the_build(at: Workshop) -> None:
    before = everything(at.repository)
    first = at.mendwork("build", "spec.md", "--dry-run")
    assert first.code == 0, first.err
    assert "a guess: no build of this project has ended yet" in first.out
    assert "mul" in first.out
    assert "mendwork-sandbox" in first.out
    assert "planning    1 call, $" in first.out
    assert everything(at.repository) == before
    assert open_undo(at) == []
    assert not [ref for ref in mirror_refs(at) if "build-calc-1/" in ref]
    assert [line["schema"] for line in at.billed() if "schema" in line].count("Change") == 0

    status = at.status("build-calc-1")
    assert (status["status"], status["branch"], status["calls"]) == ("planned", "", 1)
    assert at.mendwork("watch", "build-calc-1").code == 0
    traced = at.mendwork("trace", "build-calc-1")
    assert traced.code == 0, traced.err

    built = at.mendwork("build", "spec.md")
    assert built.code == 0, built.err

    before = everything(at.repository)
    second = at.mendwork("build", "spec.md", "--dry-run", "--json")
    assert second.code == 0, second.err
    told = json.loads(second.out)
    assert told["status"] == "planned"
    assert told["forecast"]["basis"].startswith("history of this project: 1 build, 2 tasks")
    totals = told["forecast"]["totals"]
    assert totals["low"]["calls"] <= totals["expected"]["calls"] <= totals["high"]["calls"]
    assert totals["expected"]["cost_micros"] > 0
    assert everything(at.repository) == before
    assert open_undo(at) == []


def test_a_dry_run_whose_base_cannot_be_had_ends_as_a_build_would(at: Workshop) -> None:
    ran = at.mendwork("build", "spec.md", "--dry-run", "--project", "nobody")
    assert ran.code == 2
    assert "unknown project" in ran.err
