"""Completion and version: what a shell asks for again and again has to be cheap, and silent where it cannot answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.cli.config.completing import build_names, project_names
from adapters.cli.doctor.versions import commit
from adapters.store import open_store
from domain.ports.store import Event
from tests.architecture.sources import ROOT

MENDWORK = (str(Path(sys.executable).parent / "mendwork"),)
CONFIG = '[projects.notes]\nrepository = "n"\ntest = "true"\n[projects.shop]\nrepository = "s"\ntest = "true"\n'


def mendwork(*words: str, at: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(at), **variables}
    return subprocess.run(
        [*MENDWORK, *words], cwd=at, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def completed(line: str, *, at: Path) -> list[str]:
    """What bash would offer at the end of ``line``."""
    words = line.split(" ")
    asked = {"_MENDWORK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return mendwork(at=at, **asked).stdout.split()


@pytest.fixture
async def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two projects, and a store with two builds."""
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
        await store.events.append(events)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MENDWORK_CONFIG", raising=False)
    monkeypatch.delenv("MENDWORK_STORE", raising=False)
    return tmp_path


def test_commands_projects_and_builds_are_completed(folder: Path) -> None:
    assert completed("mendwork wat", at=folder) == ["watch"]
    assert completed("mendwork build spec.md --project sh", at=folder) == ["shop"]
    assert completed("mendwork watch build-", at=folder) == ["build-shop-2", "build-notes-1"]
    assert completed("mendwork status build-n", at=folder) == ["build-notes-1"]


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
    assert (ran.returncode, mark in ran.stdout) == (0, True), ran.stderr


def test_another_shell_is_refused_with_those_there_are(tmp_path: Path) -> None:
    ran = mendwork("completion", "tcsh", at=tmp_path)
    assert ran.returncode == 2
    assert all(known in ran.stderr for known in ("bash", "zsh", "fish"))


def test_bash_accepts_what_it_is_given(folder: Path) -> None:
    script = mendwork("completion", "bash", at=folder).stdout
    (folder / "mendwork").symlink_to(MENDWORK[0])
    asked = (
        'COMP_WORDS=(./mendwork build --project no); COMP_CWORD=3; _mendwork_completion ./mendwork; echo "$COMPREPLY"'
    )
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "notes"


def test_the_version_is_one_line_or_all_that_a_report_needs(tmp_path: Path) -> None:
    assert mendwork("--version", at=tmp_path).stdout == mendwork("version", at=tmp_path).stdout
    told = json.loads(mendwork("version", "--json", at=tmp_path).stdout)
    assert set(told) == {"version", "python", "temporalio", "commit"}
    assert told["version"] == mendwork("--version", at=tmp_path).stdout.strip()
    assert told["python"].startswith("3.")


def test_the_commit_is_that_of_the_checkout_or_unknown(tmp_path: Path) -> None:
    assert commit(tmp_path) is None
    (tmp_path / ".git").mkdir()
    assert commit(tmp_path) is None, "a folder of that name alone is no history"
    if (ROOT / ".git").exists():
        found = commit(ROOT)
        assert found is not None
        assert len(found) == 40
