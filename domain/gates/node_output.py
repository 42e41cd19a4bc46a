"""The output of Node's own test runner: its TAP and its spec reporter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from domain.gates.report import TestReport, settle

_COUNT = re.compile(r"(?:#|ℹ) (tests|pass|fail|cancelled|skipped|todo) (\d{1,9})")
_NOT_OK = re.compile(r" {0,200}not ok \d{1,9}(?: - (.{0,300}))?")
_CROSS = re.compile(r" {0,200}✖ (\S.{0,300}?)(?: \(\d+(?:\.\d+)?ms\))?(?: #.{0,200})?")
_FAILING = "✖ failing tests:"


def read_node(lines: Sequence[str], exit_code: int) -> TestReport:
    """From the closing "# tests 3", "# pass 2", "# fail 1" (spec: "ℹ tests 3")."""
    summaries = []
    counts: dict[str, int] = {}
    for line in lines:
        found = _COUNT.fullmatch(line)
        if found and found[1] == "tests":
            counts = {}
        if found:
            counts[found[1]] = int(found[2])
        if found and counts.keys() >= {"tests", "pass", "fail", "cancelled", "skipped", "todo"}:
            summaries.append(_summary(counts))
            counts = {}
    return settle(summaries, exit_code, _failing(lines), "node")


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
