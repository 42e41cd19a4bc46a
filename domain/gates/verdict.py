"""Green or red. What a run claims about itself is not enough: the exit code, the limits and the count have to agree."""

from __future__ import annotations

from dataclasses import dataclass

from domain.gates.reading import READERS as READERS
from domain.gates.reading import read_report as read_report
from domain.gates.report import TestReport

LIMITS = {
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


def verdict(report: TestReport, *, base_ran: int | None, ended: str, exit_code: int) -> Verdict:
    """``base_ran`` is how many tests ran before the change: None or below zero when there is nothing to compare with.

    ``ended`` and ``exit_code`` as the sandbox gives them.
    """
    if ended != "exited":
        return Verdict(green=False, reason=LIMITS.get(ended, f"the tests hit a limit: {ended}"))
    if exit_code != 0:
        return Verdict(green=False, reason=red(report, exit_code))
    if report.runner == "other":
        return Verdict(green=True, reason="the test command exited with 0; its runner's tests cannot be counted")
    if report.ran is None:
        return Verdict(green=False, reason=f"{report.runner} exited with 0 but no summary that fits tells what ran")
    if report.ran == 0:
        return Verdict(green=False, reason="no test ran")
    if base_ran is not None and report.ran < base_ran:
        return Verdict(green=False, reason=f"only {report.ran} tests ran; before the change it was {base_ran}")
    return Verdict(green=True, reason=f"{tests(report.ran)} passed")


def red(report: TestReport, exit_code: int) -> str:
    """What is wrong with a run that ended by itself, but not with 0."""
    bad = (report.failed or 0) + (report.errors or 0)
    if report.ran == 0 and not bad:
        return f"no test ran (exit code {exit_code})"
    if report.ran is None or not bad:
        return f"the test command exited with {exit_code}"
    errors = f", {report.errors} could not be run" if report.errors and report.runner == "pytest" else ""
    failed = report.failed if report.runner == "pytest" else bad
    return f"{failed} of {tests(report.ran)} failed{errors}"


def tests(count: int) -> str:
    """As a person counts them."""
    return "1 test" if count == 1 else f"{count} tests"
