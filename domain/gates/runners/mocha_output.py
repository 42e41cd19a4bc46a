"""The output of mocha's spec reporter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from domain.gates.report import TestReport, settle
from domain.gates.results import Outcome, is_bad, numbered

_COUNT = re.compile(r" {1,4}(\d{1,9}) (passing|pending|failing)(?: \(.{1,20}\))?")
_TEST = re.compile(r"( {2,200})(?:([✔✓√-])|\d{1,9}\)) (\S.{0,2000}?)(?: \(\d+(?:\.\d+)?m?s\))?")
_SUITE = re.compile(r"( {2,200})(\S.{0,2000})")
_FAILURE = re.compile(r"  \d{1,9}\) .{0,2000}")
_HOOK = re.compile(r'"(?:before|after) (?:all|each)" hook')
_NO_TESTS = "Error: No test files found"


def read_mocha(lines: Sequence[str], exit_code: int) -> TestReport:
    """From "2 passing (8ms)", "1 pending" and "1 failing"; "other" where no reporter prints them."""
    summaries = [_summary(counts) for _, counts in _runs(lines)]
    if any(line.startswith(_NO_TESTS) for line in lines):
        summaries.append(_summary({}))
    if not summaries:
        return TestReport(runner="other")
    failing = [name for part, _ in _runs(lines) for name, outcome in _results(part) if is_bad(outcome)]
    return settle(summaries, exit_code, failing, "mocha")


def mocha_tests(lines: Sequence[str]) -> dict[str, Outcome] | None:
    """What each test did, by its suites' names and its own; None unless they add up with the last counts."""
    told: list[tuple[str, Outcome]] = []
    adds_up = any(line.startswith(_NO_TESTS) for line in lines)
    for part, counts in _runs(lines):
        found = list(_results(part))
        outcomes = [outcome for _, outcome in found]
        adds_up = (
            outcomes.count("passed") == counts.get("passing", 0)
            and outcomes.count("failed") + outcomes.count("error") == counts.get("failing", 0)
            and outcomes.count("skipped") == counts.get("pending", 0)
        )
        told += found if adds_up else []
    return numbered(told) if adds_up else None


def mocha_blocks(lines: Sequence[str]) -> list[str]:
    """Each numbered failure after the last counts, and these."""
    counted = [number for number, line in enumerate(lines) if _COUNT.fullmatch(line)]
    if not counted:
        return []
    blocks: list[list[str]] = []
    for line in lines[counted[-1] + 1 :]:
        if _FAILURE.fullmatch(line):
            blocks.append([])
        if blocks:
            blocks[-1].append(line)
    closing = [lines[number] for number in counted[-3:]]
    return ["\n".join(block).strip("\n") for block in [*blocks, closing] if any(block)]


def _runs(lines: Sequence[str]) -> Iterator[tuple[Sequence[str], dict[str, int]]]:
    begun = 0
    last = 0
    counts: dict[str, int] = {}
    for number, line in enumerate([*lines, ""]):
        found = _COUNT.fullmatch(line)
        if counts and (not found or found[2] in counts):
            yield lines[begun:last], counts
            begun, counts = number, {}
        if found and (counts or found[2] == "passing"):
            last = last if counts else number
            counts[found[2]] = int(found[1])


def _results(lines: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    """Tests with the suites around them. An outermost suite follows an empty line; what a test prints does not."""
    around: dict[int, str] = {}
    before = ""
    for line in lines:
        if found := _TEST.fullmatch(line):
            depth = len(found[1])
            failed: Outcome = "error" if _HOOK.match(found[3]) else "failed"
            outcome: Outcome = failed if not found[2] else "skipped" if found[2] == "-" else "passed"
            yield " > ".join([*(around[d] for d in sorted(around) if d < depth), found[3]]), outcome
        elif (suite := _SUITE.fullmatch(line)) and (len(suite[1]) > 2 or not before.strip() or not around):
            around = {depth: name for depth, name in around.items() if depth < len(suite[1])}
            around[len(suite[1])] = suite[2]
        before = line


def _summary(counts: Mapping[str, int]) -> TestReport:
    failed = counts.get("failing", 0)
    return TestReport(
        runner="mocha",
        ran=counts.get("passing", 0) + failed,
        failed=failed,
        errors=0,
        skipped=counts.get("pending", 0),
    )
