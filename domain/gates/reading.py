"""From a run's log to what it says: its counts, and what each test did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from domain.gates.plain import plain
from domain.gates.report import Runner, TestReport, runner_of
from domain.gates.results import Outcome, Tests
from domain.gates.runners.go_output import go_tests, is_go_output, read_go
from domain.gates.runners.mocha_output import mocha_tests, read_mocha
from domain.gates.runners.node_output import node_tests, read_node
from domain.gates.runners.pytest_output import pytest_tests, read_pytest
from domain.gates.runners.tap_output import is_tap, read_tap, tap_tests
from domain.gates.runners.unittest_output import read_unittest, unittest_tests

READERS: Mapping[str, Callable[[list[str], int], TestReport]] = {
    "pytest": read_pytest,
    "unittest": read_unittest,
    "node": read_node,
    "tap": read_tap,
    "go": read_go,
    "mocha": read_mocha,
}
_TESTS: Mapping[str, Callable[[Sequence[str]], dict[str, Outcome] | None]] = {
    "pytest": pytest_tests,
    "unittest": unittest_tests,
    "node": node_tests,
    "tap": tap_tests,
    "go": go_tests,
    "mocha": mocha_tests,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it was read. ``ended`` and ``exit_code`` as the sandbox gives them. ``tests`` is None where what is said
    of single tests does not add up with the counts, or nothing is said of them. ``behind``: the runner was known by its
    output only, so the exit code is that of the program before it."""

    report: TestReport
    tests: Tests | None
    ended: str
    exit_code: int
    behind: bool = False


def read_report(runner: Runner, log_text: str, exit_code: int) -> TestReport:
    """What the runner said of itself in ``log_text``; counts nothing for "other"."""
    reader = READERS.get(runner)
    if reader is None:
        return TestReport(runner=runner)
    return reader(plain(log_text).split("\n"), exit_code)


def read_run(argv: Sequence[str], log_text: str, *, ended: str, exit_code: int, runner: Runner | None = None) -> Run:
    """``runner`` is the one that was read before (None: not known yet): an output that suddenly looks like another's
    is not read as that."""
    lines = plain(log_text).split("\n")
    plainly = runner_of(argv)
    for known in (runner,) if runner else (plainly, recognised):
        name = known(lines) if callable(known) else known
        report = READERS[name](lines, exit_code) if name in READERS else TestReport(runner="other")
        tests = _TESTS[name](lines) if report.runner != "other" else None
        if report.runner != "other":
            break
    return Run(report=report, tests=tests, ended=ended, exit_code=exit_code, behind=plainly != report.runner)


def recognised(lines: list[str]) -> Runner:
    """The runner whose output this is, for one behind another program (make, npm, a script); "other" when no reader
    finds its counts and what each test did."""
    if is_go_output(lines):
        return "go"
    for runner in ("pytest", "unittest", "node", "mocha"):
        if READERS[runner](lines, 1).ran is not None and _TESTS[runner](lines) is not None:
            return runner
    return "tap" if is_tap(lines) and tap_tests(lines) is not None else "other"
