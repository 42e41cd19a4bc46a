"""Completion and version: what a shell asks for again and again has to be cheap, and silent where it cannot answer."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer

from adapters.cli.app import app
from adapters.cli.config import completing
from adapters.cli.config.completing import PHASES, build_names, project_names
from adapters.cli.doctor.versions import commit
from adapters.store import open_store
from domain.ports.store import Event
from tests.architecture.sources import ROOT
from tests.forks import Ran, run_command

MENDWORK = Path(sys.executable).parent / "mendwork"
CONFIG = """
[projects.notes]
repository = "n"
test = "true"
[projects.shop]
repository = "s"
test = "true"
[models.fast]
model = "openai/x"
"""


def mendwork(*words: str, at: Path, **variables: str) -> Ran:
    return run_command(words, folder=at, environment={"PATH": os.environ["PATH"], "HOME": str(at), **variables})


def completed(line: str, *, at: Path) -> list[str]:
    """What bash would offer at the end of ``line``."""
    words = line.split(" ")
    asked = {"_MENDWORK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    ran = mendwork(at=at, **asked)
    assert ran.err == "", "it would stand in the line that somebody types"
    return ran.out.split()


def note(build: str, sequence: int, kind: str, *, task: str = "", **data: object) -> Event:
    return Event(
        first_run=build, run=build, sequence=sequence, build=build, kind=kind, at=sequence, task=task, data=data
    )


CAME_THROUGH = ("intake", "base", "plan")


@pytest.fixture
async def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two projects, and a store with two builds, one of which came through three phases, and their releases."""
    (tmp_path / "mendwork.toml").write_text(CONFIG)
    (tmp_path / ".mendwork").mkdir()
    async with await open_store(f"sqlite:///{tmp_path}/.mendwork/mendwork.db") as store:
        events = [
            Event(
                first_run=name,
                run=name,
                sequence=1,
                build=name,
                kind="build.started",
                at=number,
                data={"project": "notes", "title": "t"},
            )
            for number, name in enumerate(("build-notes-1", "build-shop-2"))
        ]
        notes = [note("build-notes-1", n, "build.phase", phase=phase) for n, phase in enumerate(CAME_THROUGH, 2)]
        notes += [note("build-notes-1", n, "task.started", task=task) for n, task in ((5, "store"), (6, "api"))]
        notes += [note("build-notes-1", n, "snapshot.taken", number=n - 6) for n in (7, 8)]
        notes += [note("build-shop-2", 2, "snapshot.taken", number=1)]
        await store.events.append([*events, *notes])
        for project, saga in (("notes", "a"), ("notes", "b"), ("shop", "c")):
            await store.releases.reserve(project, saga=saga)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MENDWORK_CONFIG", raising=False)
    monkeypatch.delenv("MENDWORK_STORE", raising=False)
    return tmp_path


def test_commands_projects_and_builds_are_completed(folder: Path) -> None:
    assert completed("mendwork wat", at=folder) == ["watch"]
    assert completed("mendwork build spec.md --project sh", at=folder) == ["shop"]
    assert completed("mendwork watch build-", at=folder) == ["build-shop-2", "build-notes-1"]
    assert completed("mendwork status build-n", at=folder) == ["build-notes-1"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("release show --project notes ", ["2", "1"]),
        ("rollback --project shop ", ["1"]),
        ("trace build-notes-1 --phase ", list(CAME_THROUGH)),
        ("replay build-shop-2 --phase a", ["approve_plan", "approve"]),  # it came through none yet
        ("show build-notes-1 --task ", ["store", "api"]),
        ("resume build-notes", ["build-notes-1@2", "build-notes-1@1"]),
        ("resume build-shop-2@1 --model f", ["fast"]),
        ("compare build-notes-1 build-s", ["build-shop-2"]),
        ("approve ghost", []),
    ],
)
def test_what_a_store_and_a_file_hold_is_completed(folder: Path, line: str, offered: list[str]) -> None:
    assert completed(f"mendwork {line}", at=folder) == offered


def parameters(command: Any, name: str = "mendwork") -> Iterator[tuple[str, Any]]:
    for each in command.params:
        yield f"{name} {each.name}", each
    for below, child in getattr(command, "commands", {}).items():
        yield from parameters(child, f"{name} {below}")


def test_no_command_takes_such_a_name_without_completing_it() -> None:
    names = {"build", "left", "right", "project", "phase", "task", "token", "release", "number", "to", "model"}
    found = {where: each for where, each in parameters(typer.main.get_command(app)) if each.name in names}
    assert len(found) > 30
    assert [where for where, each in found.items() if each._custom_shell_complete is None] == []


def test_the_phases_are_those_of_a_build() -> None:
    from workflows import build_saga

    assert tuple(build_saga.PHASES) == PHASES


def test_a_store_that_takes_its_time_is_not_waited_for(folder: Path) -> None:
    """A hundred thousand rows are no matter; a look that would take minutes is given up."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    started = time.monotonic()
    assert completing._found(endless, "") == []
    assert time.monotonic() - started < 30
    with closing(sqlite3.connect(folder / ".mendwork" / "mendwork.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert len(build_names("")) == 2, "nor is a writer"


def test_a_folder_that_was_deleted_and_a_store_that_is_damaged_offer_nothing(folder: Path) -> None:
    (folder / ".mendwork" / "mendwork.db").write_text("no database " * 100)
    assert build_names("") == []
    gone = folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert (project_names(""), build_names("")) == ([], [])


def test_builds_are_found_in_a_store_that_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = folder / "elsewhere.db"
    (folder / ".mendwork" / "mendwork.db").rename(named)
    assert build_names("") == []
    monkeypatch.setenv("MENDWORK_STORE", f"sqlite+aiosqlite:///{named}")
    assert len(build_names("")) == 2


@pytest.mark.parametrize(
    "text", ["[projects", "projects = 3\n", "store = 3\n", 'store = "postgresql://nobody@nowhere/x"\n', "\udcff"]
)
def test_nothing_is_offered_and_nothing_said_where_nothing_can_be_read(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mendwork.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    monkeypatch.chdir(tmp_path)
    assert (project_names(""), build_names("")) == ([], [])
    assert not (tmp_path / ".mendwork").exists(), "a look makes nothing"


def test_no_file_at_all_is_no_error_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENDWORK_CONFIG", str(tmp_path / "none.toml"))
    assert (project_names(""), build_names("")) == ([], [])


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "complete -o default"), ("zsh", "#compdef mendwork"), ("fish", "complete --command")]
)
def test_each_shell_gets_its_own_completion(shell: str, mark: str, tmp_path: Path) -> None:
    ran = mendwork("completion", shell, at=tmp_path)
    assert (ran.code, mark in ran.out) == (0, True), ran.err


def test_another_shell_is_refused_with_those_there_are(tmp_path: Path) -> None:
    ran = mendwork("completion", "tcsh", at=tmp_path)
    assert ran.code == 2
    assert all(known in ran.err for known in ("bash", "zsh", "fish"))


def test_bash_accepts_what_it_is_given(folder: Path) -> None:
    script = mendwork("completion", "bash", at=folder).out
    (folder / "mendwork").symlink_to(MENDWORK)
    asked = (
        'COMP_WORDS=(./mendwork build --project no); COMP_CWORD=3; _mendwork_completion ./mendwork; echo "$COMPREPLY"'
    )
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "notes"


def test_the_version_is_one_line_or_all_that_a_report_needs(tmp_path: Path) -> None:
    assert mendwork("--version", at=tmp_path).out == mendwork("version", at=tmp_path).out
    told = json.loads(mendwork("version", "--json", at=tmp_path).out)
    assert set(told) == {"version", "python", "temporalio", "commit"}
    assert told["version"] == mendwork("--version", at=tmp_path).out.strip()
    assert told["python"].startswith("3.")


def test_the_commit_is_that_of_the_checkout_or_unknown(tmp_path: Path) -> None:
    assert commit(tmp_path) is None
    (tmp_path / ".git").mkdir()
    assert commit(tmp_path) is None, "a folder of that name alone is no history"
    if (ROOT / ".git").exists():
        found = commit(ROOT)
        assert found is not None
        assert len(found) == 40
