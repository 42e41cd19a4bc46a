"""``mendwork doctor`` about this machine: git, the sandbox, the state folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapters.cli.doctor import machine
from adapters.cli.doctor.examine import doctor
from adapters.sandbox.bubblewrap import Bubblewrap
from tests.adapters.test_cli_doctor import patient, states


def test_git_is_looked_at_by_its_version(tmp_path: Path) -> None:
    assert machine.git_on(str(tmp_path)).state == "missing"
    for said, state in (("git version 2.47.1", "ok"), ("git version 2.30.2", "broken"), ("hello", "broken")):
        (tmp_path / "git").write_text(f"#!/bin/sh\necho {said}\n")
        (tmp_path / "git").chmod(0o755)
        found = machine.git_on(str(tmp_path))
        assert (found.state, bool(found.cure)) == (state, state != "ok"), said


def test_without_bubblewrap_the_cure_is_its_package(tmp_path: Path) -> None:
    lacking = Bubblewrap(path=str(tmp_path)).missing()
    found = machine.told_of_sandbox("bubblewrap", {"engine": lacking["engine"]}, path=str(tmp_path))
    assert [(each.name, each.state, each.cure) for each in found] == [
        ("sandbox", "missing", "apt-get install -y bubblewrap")
    ]


def test_an_isolation_that_is_missing_is_a_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bwrap").touch(0o755)
    lacking = {"memory": "memory cannot be limited here, no control group is writable: do this"}
    found = machine.told_of_sandbox("bubblewrap", lacking, path=str(tmp_path))
    assert [(each.name, each.state, each.cure) for each in found] == [("sandbox memory", "broken", "do this")]


async def test_an_engine_that_was_chosen_for_isolating_less_is_said_and_is_no_fault(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    found = await machine.sandbox(patient(tmp_path, environment, '[sandbox]\nengine = "mount"\n'))
    assert [each.state for each in found] == ["ok"]
    assert "no network" in found[0].detail


async def test_a_state_folder_that_others_may_write_to_is_closed_by_fix(
    tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    ill = patient(tmp_path, environment)
    ill.state.mkdir()
    ill.state.chmod(0o777)
    found = await machine.folder(ill)
    assert [(each.state, each.cure) for each in found] == [("broken", f"chmod go-w {ill.state}")]
    await doctor(start=tmp_path, environment=environment, repair=True, json=False)
    assert f"fixed: {ill.state} is closed to others" in capsys.readouterr().err
    assert states(await machine.folder(ill)) == {"state": "ok"}


async def test_a_store_that_others_may_read_is_told(tmp_path: Path, environment: dict[str, str]) -> None:
    ill = patient(tmp_path, environment)
    ill.state.mkdir()
    (ill.state / "mendwork.db").touch()
    (ill.state / "mendwork.db").chmod(0o644)
    found = await machine.folder(ill)
    assert [(each.state, each.cure) for each in found] == [
        ("broken", f"chmod go-rwx {ill.state / 'mendwork.db'}"),
    ]


def test_the_tests_run_where_git_is() -> None:
    assert machine.git_on(os.environ["PATH"]).state == "ok"
