"""What failed among others is asked once more, alone: who passes then is named, who fails again is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.again import MOST

CHECKOUT = Path(__file__).parents[1]
BARE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
"""Starting pytest with every plugin there is would take longer than all that these tests look at."""
ALONE = """
import os
import pytest

@pytest.mark.parametrize("number", range({many}))
def test_that_needs_to_be_alone(number):
    assert os.environ.get("CROWDED") != "1"

def test_that_is_well():
    pass
"""
NEVER = """
def test_that_always_fails():
    assert False
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where small tests of their own are run, under a configuration of their own."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def crowd(folder: Path, **files: str) -> int:
    """Write the tests and run them among others: pytest's exit code."""
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    return run(folder, "pytest", "--cache-clear", "-q", CROWDED="1").returncode


def asked_again(folder: Path, code: int) -> subprocess.CompletedProcess[str]:
    return run(folder, "tests.again", str(code))


def run(folder: Path, module: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    named = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env={**named, **BARE, "PYTHONPATH": str(CHECKOUT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_what_passes_alone_is_named_and_the_run_is_good(folder: Path) -> None:
    code = crowd(folder, alone=ALONE.format(many=MOST))
    assert code == 1
    again = asked_again(folder, code)
    assert again.returncode == 0, again.stdout + again.stderr
    named = again.stdout.partition("FLAKY: failed among others, passed alone:\n")[2].split()
    assert named == [f"test_alone.py::test_that_needs_to_be_alone[{number}]" for number in range(MOST)]
    assert f"{MOST} passed" in again.stdout, "and nothing else was asked again"


def test_what_fails_alone_too_is_a_failure_and_nothing_is_called_flaky(folder: Path) -> None:
    code = crowd(folder, alone=ALONE.format(many=1), never=NEVER)
    again = asked_again(folder, code)
    assert again.returncode == 1
    assert "1 failed, 1 passed" in again.stdout
    assert "FLAKY" not in again.stdout


def test_more_failures_are_no_accident_and_are_not_asked_again(folder: Path) -> None:
    code = crowd(folder, alone=ALONE.format(many=MOST + 1))
    again = asked_again(folder, code)
    assert (again.returncode, again.stdout) == (1, "")


def test_a_run_that_was_broken_or_ended_from_outside_keeps_its_code(folder: Path) -> None:
    assert crowd(folder, never=NEVER) == 1  # what is remembered of it is not asked again for another code
    broken = crowd(folder, broken="import nothing_of_that_name\n")
    assert broken == 2
    for code in (broken, 3, 5, 130):
        again = asked_again(folder, code)
        assert (again.returncode, again.stdout) == (code, "")


def test_without_a_word_of_what_failed_a_failure_stays_one(folder: Path) -> None:
    again = asked_again(folder, 1)
    assert (again.returncode, again.stdout) == (1, "")
