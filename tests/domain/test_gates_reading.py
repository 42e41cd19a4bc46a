"""What the runners say is read strictly, from real outputs."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.gates.report import Runner, TestReport, runner_of
from domain.gates.verdict import read_report
from tests.domain import runners

KNOWN: list[Runner] = ["pytest", "unittest", "node"]


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        ("pytest", "pytest"),
        ("/opt/venv/bin/pytest -q tests", "pytest"),
        ("python3 -X dev -m pytest", "pytest"),
        ("python -mpytest", "pytest"),
        ("uv run pytest -x", "pytest"),
        ("env A=1 pytest", "pytest"),
        ("python -m coverage run -m pytest", "pytest"),
        ("sh -c 'python3 -m unittest discover -s tests'", "unittest"),
        ("python3 -m unittest", "unittest"),
        ("node --test", "node"),
        ("/usr/bin/node --experimental-vm-modules --test test/", "node"),
        ("npm test", "other"),
        ("make pytest", "other"),
        ("cargo test", "other"),
        ("node check.js", "other"),
        ("python3 tests/pytest.py", "other"),
    ],
)
def test_the_runner_is_known_by_the_test_command(command: str, runner: str) -> None:
    assert runner_of(shlex.split(command)) == runner


@pytest.mark.parametrize(
    "options", [(), ("-q",), ("-v",), ("--color=yes",), ("-rA",), ("--tb=no",), ("--durations=3",)]
)
def test_pytest_is_read_however_it_prints(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(runners.PYTEST)
    output = runners.run_pytest(tmp_path, *options)
    report = read_report("pytest", output.text, output.exit_code)
    assert (report.ran, report.failed, report.errors, report.skipped) == (3, 1, 0, 1)
    assert report.failing == ("test_it.py::test_bad",)


def test_pytest_that_collects_nothing_ran_nothing(tmp_path: Path) -> None:
    output = runners.run_pytest(tmp_path)
    assert read_report("pytest", output.text, output.exit_code).ran == 0
    assert output.exit_code == 5


def test_pytest_that_cannot_import_a_test_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def broken(:\n")
    output = runners.run_pytest(tmp_path, "-q")
    report = read_report("pytest", output.text, output.exit_code)
    assert (report.ran, report.errors, report.failing) == (0, 1, ("test_it.py",))


def test_pytest_without_a_summary_cannot_be_told(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_good(): pass\n")
    output = runners.run_pytest(tmp_path, "-qq")
    assert read_report("pytest", output.text, output.exit_code).ran is None


@pytest.mark.parametrize("options", [(), ("-v",), ("-q",)])
def test_unittest_is_read_however_it_prints(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(runners.UNITTEST)
    output = runners.run_unittest(tmp_path, *options)
    report = read_report("unittest", output.text, output.exit_code)
    assert (report.ran, report.failed, report.errors, report.skipped) == (3, 1, 1, 1)
    assert [name.split()[0] for name in report.failing] == ["test_broken", "test_bad"]


def test_unittest_that_finds_nothing_ran_nothing(tmp_path: Path) -> None:
    output = runners.run_unittest(tmp_path)
    assert read_report("unittest", output.text, output.exit_code).ran == 0


def test_newer_pythons_say_no_tests_ran() -> None:
    text = "\n" + "-" * 70 + "\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n"
    assert read_report("unittest", text, 5).ran == 0


@pytest.mark.parametrize("text", [runners.NODE_TAP, runners.NODE_SPEC], ids=["tap", "spec"])
def test_nodes_reporters_are_read(text: str) -> None:
    report = read_report("node", text, 1)
    assert (report.ran, report.failed, report.skipped) == (4, 2, 2)
    assert {"bad one", "inner bad"} <= set(report.failing)


def test_the_samples_of_node_say_what_the_node_of_this_machine_says(tmp_path: Path) -> None:
    (tmp_path / "a.test.js").write_text(runners.NODE)
    node = shutil.which("node")
    for reporter, sample in (("tap", runners.NODE_TAP), ("spec", runners.NODE_SPEC)):
        text = runners.run(tmp_path, node, "--test", f"--test-reporter={reporter}").text if node else sample
        assert read_report("node", text, 1) == read_report("node", sample, 1)


def test_a_summary_that_the_code_prints_before_the_runners_cannot_raise_the_count() -> None:
    text = "9 passed in 0.01s\n" * 3 + "= 2 passed in 0.10s ="
    assert read_report("pytest", text, 0).ran == 2


def test_a_summary_that_the_code_prints_after_the_runners_cannot_raise_the_count() -> None:
    text = "= 2 passed in 0.10s =\n= 900 passed in 0.10s ="
    assert read_report("pytest", text, 0).ran == 2
    text = "Ran 1 test in 0.000s\n\nOK\nRan 40 tests in 0.000s\n\nOK\n"
    assert read_report("unittest", text, 0).ran == 1


def test_a_real_exit_hook_that_prints_a_better_summary_is_seen_through(tmp_path: Path) -> None:
    hook = 'import atexit\natexit.register(print, "= 40 passed in 0.10s =")\ndef test_one(): pass\n'
    (tmp_path / "test_it.py").write_text(hook)
    output = runners.run_pytest(tmp_path)
    assert output.text.rstrip().endswith("= 40 passed in 0.10s =")
    assert read_report("pytest", output.text, output.exit_code).ran == 1


def test_failures_beside_an_exit_code_of_zero_count_nothing() -> None:
    assert read_report("pytest", "1 failed, 4 passed in 0.10s", 0).ran is None
    assert read_report("unittest", "Ran 4 tests in 0.000s\n\nFAILED (failures=1)", 0).ran is None
    assert read_report("node", runners.NODE_TAP, 0).ran is None


@pytest.mark.parametrize(
    "line", ["3 passed in the end", "x passed in 0.1s", "-3 passed in 0.1s", "3 hoped in 0.1s", "in 1s"]
)
def test_a_line_that_merely_looks_like_a_summary_is_none(line: str) -> None:
    assert read_report("pytest", line, 0).ran is None


def test_another_runner_counts_nothing() -> None:
    assert read_report("other", "5 passed in 0.1s", 0) == TestReport(runner="other")


@given(st.sampled_from(KNOWN), st.text(max_size=300), st.integers(0, 255))
def test_any_text_is_read_without_failing(runner: Runner, text: str, exit_code: int) -> None:
    report = read_report(runner, text, exit_code)
    assert report.ran is None or report.ran >= 0


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.booleans())
def test_what_ran_is_what_passed_and_what_failed(passed: int, failed: int, skipped: int, framed: bool) -> None:
    line = f"{failed} failed, {passed} passed, {skipped} skipped, 7 deselected, 1 warning in 61.20s (0:01:01)"
    report = read_report("pytest", f"==== {line} ====" if framed else line, 1)
    assert (report.ran, report.failed, report.skipped) == (passed + failed, failed, skipped)
