"""``mendwork doctor`` as a person types it: where nothing is, and where everything is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.workshop import MENDWORK, Ran, Workshop, wait_for


def doctor(at: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(at), "TEMPORAL_CONFIG_FILE": str(at / "none"), **variables}
    return subprocess.run(
        [*MENDWORK, "doctor", *words], cwd=at, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def clean(ran: Ran) -> Ran | None:
    """A worker that serves is seen as a poller a moment later."""
    return ran if ran.code == 0 else None


@pytest.mark.parametrize("words", [(), ("--json",), ("--fix",)])
def test_on_a_machine_with_nothing_it_says_what_to_do(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = doctor(tmp_path, *words, PATH="/nowhere")
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert "mendwork init" in ran.stdout
    assert list(tmp_path.iterdir()) == [], "it makes nothing"


def test_in_a_folder_that_was_deleted_it_says_so(tmp_path: Path) -> None:
    argv = ["sh", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "sh", *MENDWORK, "doctor"]
    ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (2, "mendwork: the current folder was deleted; go to another one\n")


def test_what_hangs_does_not_keep_the_process(tmp_path: Path) -> None:
    """A server program that never answers is one line; the process neither waits for it nor leaves it behind."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "temporal").write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    (tmp_path / "bin" / "temporal").chmod(0o755)
    ran = doctor(tmp_path, "--json", PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    checks = {each["name"]: each for each in json.loads(ran.stdout)["checks"]}
    assert checks["temporal"]["detail"] == "no answer within 9 s"
    assert checks["python"]["state"] == "ok"
    hung = Path("/proc") / (tmp_path / "pid").read_text().strip() / "cmdline"
    wait_for(lambda: not hung.exists() or not hung.read_bytes(), why="the end of what hung")


def test_beside_a_whole_mendwork_all_is_well(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w")
    with at.running():
        well: Ran = wait_for(
            lambda: clean(at.mendwork("doctor", "--json")), seconds=60, why="a doctor who finds nothing"
        )
        answer = json.loads(well.out)
        checks = {each["name"]: each["state"] for each in answer["checks"]}
        assert answer["ok"] is True
        assert {"server", "retention", "search attributes", "workers", "store", "project calc"} <= set(checks)
        assert at.environment["SCRIPTED_API_KEY"] not in json.dumps(answer)
        listed = at.mendwork("config", "list", "--show-origin")
        assert f"{at.root}/mendwork.toml:2  temporal.port = 0" in listed.out.splitlines()
        del at.environment["SCRIPTED_API_KEY"]
        ran = at.mendwork("doctor")
        assert ran.code == 1
        assert "SCRIPTED_API_KEY is not set" in ran.out
    gone = at.mendwork("doctor", "--json")
    names = {each["name"] for each in json.loads(gone.out)["checks"]}
    assert "workers" not in names, "no server runs: there is nothing to say of it"
