"""The output of the standard library's unittest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from domain.gates.report import TestReport, settle

_RAN = re.compile(r"Ran (\d{1,9}) tests? in \d+(?:\.\d+)?s")
_RESULT = re.compile(
    r"(OK|FAILED|NO TESTS RAN)(?: \(([a-z]+(?: [a-z]+)?=\d{1,9}(?:, [a-z]+(?: [a-z]+)?=\d{1,9}){0,5})\))?"
)
_NAMED = re.compile(r"(?:FAIL|ERROR): (\S.{0,300})")


def read_unittest(lines: Sequence[str], exit_code: int) -> TestReport:
    """From "Ran 3 tests in 0.001s" and the "OK" or "FAILED (failures=1)" after it."""
    summaries = []
    ran: int | None = None
    for line in lines:
        if found := _RAN.fullmatch(line.strip()):
            ran = int(found[1])
        elif ran is not None and (result := _RESULT.fullmatch(line.strip())):
            summaries.append(_summary(ran, result[2] or ""))
            ran = None
    names = (found[1] for line in lines if (found := _NAMED.fullmatch(line)))
    return settle(summaries, exit_code, names, "unittest")


def unittest_blocks(lines: Sequence[str]) -> list[str]:
    """One block a failure or error, and the closing lines."""
    blocks: list[list[str]] = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        failure = _is_rule(line, "=") and _NAMED.fullmatch(following)
        end = _is_rule(line, "-") and _RAN.fullmatch(following.strip())
        if failure or end:
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    return ["\n".join(block).strip("\n") for block in blocks if any(block)]


def _is_rule(line: str, of: str) -> bool:
    return len(line) == 70 and line == of * 70


def _summary(ran: int, details: str) -> TestReport:
    found = {}
    for part in details.split(", ") if details else ():
        name, _, number = part.partition("=")
        found[name] = int(number)
    skipped = found.get("skipped", 0)
    real = max(ran - skipped - found.get("expected failures", 0) - found.get("unexpected successes", 0), 0)
    return TestReport(
        runner="unittest",
        ran=real,
        failed=found.get("failures", 0) + found.get("unexpected successes", 0),
        errors=found.get("errors", 0),
        skipped=skipped,
    )
