"""The output of Node's own test runner: its TAP and its spec reporter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from domain.gates.report import TestReport, settle
from domain.gates.results import Outcome, numbered
from domain.gates.runners.nesting import Result, leaves, named_tests, nested, tap_results

_COUNT = re.compile(r"(?:#|ℹ) (tests|suites|pass|fail|cancelled|skipped|todo) (\d{1,9})")
_NOT_OK = re.compile(r" {0,200}not ok \d{1,9}(?: - (.{0,300}))?")
_CROSS = re.compile(r" {0,200}✖ (\S.{0,300}?)(?: \(\d+(?:\.\d+)?ms\))?(?: #.{0,200})?")
_FAILING = "✖ failing tests:"
_SPEC = re.compile(r"( {0,200})([✔✖﹣]) (\S.{0,2000}?) \(\d+(?:\.\d+)?ms\)(?: # (SKIP|TODO|.{0,500}))?")
_MARKS: Mapping[str, Outcome] = {"✔": "passed", "✖": "failed", "﹣": "skipped"}
_ALL = ("tests", "pass", "fail", "cancelled", "skipped", "todo")


def read_node(lines: Sequence[str], exit_code: int) -> TestReport:
    """From the closing "# tests 3", "# pass 2", "# fail 1" (spec: "ℹ tests 3")."""
    summaries = [_summary(counts) for _, counts in _runs(lines)]
    return settle(summaries, exit_code, _failing(lines), "node")


def node_tests(lines: Sequence[str]) -> dict[str, Outcome] | None:
    """What each test did, from the lines before the closing counts; None unless they add up with the last of them."""
    told: list[tuple[str, Outcome]] = []
    adds_up = False
    for part, counts in _runs(lines):
        is_tap = any(line.startswith(("TAP version", "# Subtest: ")) for line in part)
        tests, groups = leaves(nested(tap_results(part) if is_tap else _spec_results(part)))
        adds_up = _adds_up(tests, groups, counts)
        if adds_up:
            # A file that cannot be loaded is named by its path.
            named = named_tests(tests, groups)
            told += [(name, "error" if name[:1] == "/" and outcome == "failed" else outcome) for name, outcome in named]
    return numbered(told) if adds_up else None


def _runs(lines: Sequence[str]) -> Iterator[tuple[Sequence[str], dict[str, int]]]:
    """What was printed before each of the closing counts, and these."""
    begun = first = 0
    counts: dict[str, int] = {}
    for number, line in enumerate(lines):
        found = _COUNT.fullmatch(line)
        if found and found[1] == "tests":
            counts, first = {}, number
        if found:
            counts[found[1]] = int(found[2])
        if found and counts.keys() >= set(_ALL):
            yield lines[begun:first], counts
            begun, counts = number + 1, {}


def _spec_results(lines: Sequence[str]) -> Iterator[tuple[int, str, Outcome]]:
    for line in lines:
        if found := _SPEC.fullmatch(line):
            outcome: Outcome = "xfailed" if found[4] == "TODO" else _MARKS[found[2]]
            yield len(found[1]), found[3], "skipped" if found[4] == "SKIP" else outcome


def _adds_up(tests: Sequence[Result], groups: Sequence[Result], counts: Mapping[str, int]) -> bool:
    """A group is counted where it is a test with tests in it, and not where it is a suite: which it is, is not said of
    each, only how many suites there are (in Node before 20 not even that)."""
    said: Mapping[Outcome, int] = {
        "passed": counts["pass"],
        "failed": counts["fail"] + counts["cancelled"],
        "skipped": counts["skipped"],
        "xfailed": counts["todo"],
    }
    if "suites" in counts and counts["tests"] != len(tests) + len(groups) - counts["suites"]:
        return False
    inner = Counter(test.outcome for test in tests)
    outer = Counter(group.outcome for group in groups)
    return all(inner[outcome] <= count <= inner[outcome] + outer[outcome] for outcome, count in said.items())


def node_blocks(lines: Sequence[str]) -> list[str]:
    """Each "not ok" with its YAML, or the spec reporter's last section; then the counts."""
    if _FAILING in lines:
        start = max(number for number, line in enumerate(lines) if line == _FAILING)
        return _paragraphs(lines[start + 1 :])
    blocks: list[list[str]] = []
    indent = -1
    for line in lines:
        depth = len(line) - len(line.lstrip(" "))
        if _is_failure(line):
            blocks.append([line])
            indent = depth
        elif indent >= 0 and (depth > indent or not line):
            blocks[-1].append(line)
        else:
            indent = -1
    closing = [line for line in lines[-40:] if _COUNT.fullmatch(line)]
    return ["\n".join(block).rstrip("\n") for block in [*blocks, closing] if block]


def _paragraphs(lines: Sequence[str]) -> list[str]:
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("test at "):
            blocks.append([])
        blocks[-1].append(line)
    return ["\n".join(block).strip("\n") for block in blocks if any(block)]


def _is_failure(line: str) -> bool:
    found = _NOT_OK.fullmatch(line[:600])
    return bool(found) and not _is_excused(found[1] or "" if found else "")


def _is_excused(name: str) -> bool:
    return "# SKIP" in name or "# TODO" in name


def _failing(lines: Sequence[str]) -> list[str]:
    names = []
    for line in lines:
        found = _NOT_OK.fullmatch(line) or _CROSS.fullmatch(line)
        if found and found[1] and not _is_excused(line) and line != _FAILING:
            names.append(found[1].strip())
    return names


def _summary(counts: dict[str, int]) -> TestReport:
    failed = counts["fail"] + counts["cancelled"]
    return TestReport(
        runner="node",
        ran=counts["pass"] + failed,
        failed=failed,
        errors=0,
        skipped=counts["skipped"] + counts["todo"],
    )
