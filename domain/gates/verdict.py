"""Green or red. What a run claims about itself is not enough: the exit code, the limits and the count have to agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from domain.gates.node_output import read_node
from domain.gates.plain import plain
from domain.gates.pytest_output import read_pytest
from domain.gates.report import Runner, TestReport
from domain.gates.unittest_output import read_unittest

READERS: Mapping[str, Callable[[list[str], int], TestReport]] = {
    "pytest": read_pytest,
    "unittest": read_unittest,
    "node": read_node,
}
_LIMITS = {
    "timeout": "the tests did not end in time and were stopped",
    "memory": "the tests used more memory than they may and were stopped",
    "processes": "the tests started more processes than they may",
    "log": "the tests did not end in time, printing without end, and were stopped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``reason`` is one sentence for a person and for the model."""

    green: bool
    reason: str


def read_report(runner: Runner, log_text: str, exit_code: int) -> TestReport:
    """What the runner said of itself in ``log_text``; counts nothing for "other"."""
    reader = READERS.get(runner)
    if reader is None:
        return TestReport(runner=runner)
    return reader(plain(log_text).split("\n"), exit_code)


def verdict(report: TestReport, *, base_ran: int | None, ended: str, exit_code: int) -> Verdict:
    """``base_ran`` is how many tests ran before the change: None or below zero when there is nothing to compare with.

    ``ended`` and ``exit_code`` as the sandbox gives them.
    """
    if ended != "exited":
        return Verdict(green=False, reason=_LIMITS.get(ended, f"the tests hit a limit: {ended}"))
    if exit_code != 0:
        return Verdict(green=False, reason=_red(report, exit_code))
    if report.runner == "other":
        return Verdict(green=True, reason="the test command exited with 0; its runner's tests cannot be counted")
    if report.ran is None:
        return Verdict(green=False, reason=f"{report.runner} exited with 0 but no summary that fits tells what ran")
    if report.ran == 0:
        return Verdict(green=False, reason="no test ran")
    if base_ran is not None and report.ran < base_ran:
        return Verdict(green=False, reason=f"only {report.ran} tests ran; before the change it was {base_ran}")
    return Verdict(green=True, reason=f"{_tests(report.ran)} passed")


def _red(report: TestReport, exit_code: int) -> str:
    bad = (report.failed or 0) + (report.errors or 0)
    if report.ran == 0 and not bad:
        return f"no test ran (exit code {exit_code})"
    if report.ran is None or not bad:
        return f"the test command exited with {exit_code}"
    errors = f", {report.errors} could not be run" if report.errors and report.runner == "pytest" else ""
    failed = report.failed if report.runner == "pytest" else bad
    return f"{failed} of {_tests(report.ran)} failed{errors}"


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"
