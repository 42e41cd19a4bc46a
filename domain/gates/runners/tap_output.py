"""The Test Anything Protocol, as tape, tap and others print it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from domain.gates.report import TestReport, settle
from domain.gates.results import Outcome, is_bad, numbered
from domain.gates.runners.nesting import Result, leaves, named_tests, nested, tap_results

_PLAN = re.compile(r"1\.\.(\d{1,9})(?: .{0,200})?")
_RESULT = re.compile(r"(?:not )?ok\b.{0,2000}")
# tape's comment before a test's assertions; not the closing counts, directives and times.
_TITLE = re.compile(r"# (?!(?:tests|pass|fail|ok|todo|skip|time|Subtest|SKIP|TODO)\b)(\S.{0,500})")
_CLOSING = re.compile(r"# (?:tests|pass|fail|skip|todo|ok|time)\b.{0,100}")


def is_tap(lines: Sequence[str]) -> bool:
    """Whether there is a plan, and a result at least or a first line that says so."""
    has_plan = any(_PLAN.fullmatch(line) for line in lines)
    return has_plan and any(line.startswith("TAP version") or _RESULT.fullmatch(line) for line in lines)


def read_tap(lines: Sequence[str], exit_code: int) -> TestReport:
    """Counted from the results, where there are as many as planned; "other" where there is no plan."""
    if not any(_PLAN.fullmatch(line) for line in lines):
        return TestReport(runner="other")
    read = [_read(part) for part in _parts(lines)]
    failing = [test.name for tests, _ in filter(None, read) for test in tests if is_bad(test.outcome)]
    if None in read:
        return TestReport(runner="tap")
    return settle([_count(tests) for tests, _ in filter(None, read)], exit_code, failing, "tap")


def tap_tests(lines: Sequence[str]) -> dict[str, Outcome] | None:
    """What each test did; None unless every stream in the output has as many results as it planned."""
    read = [_read(part) for part in _parts(lines)]
    if not read or None in read:
        return None
    return numbered(named for part in filter(None, read) for named in named_tests(*part))


def tap_blocks(lines: Sequence[str]) -> list[str]:
    """Each "not ok" with its YAML, after the title of its test; then the plan and the counts."""
    blocks: list[list[str]] = []
    title, depth = "", -1
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        result = next(tap_results([line]), None)
        if _TITLE.fullmatch(line):
            title = line
        if result:
            depth = indent if is_bad(result[2]) else -1
            blocks += [[title, line]] if depth >= 0 else []
        elif depth >= 0 and (indent > depth or not line):
            blocks[-1].append(line)
        else:
            depth = -1
    closing = [line for line in lines[-40:] if _PLAN.fullmatch(line) or _CLOSING.fullmatch(line)]
    return ["\n".join(block).strip("\n") for block in [*blocks, closing] if any(block)]


def _parts(lines: Sequence[str]) -> list[Sequence[str]]:
    starts = [number for number, line in enumerate(lines) if line.startswith("TAP version")]
    return [lines[start:end] for start, end in pairwise([*(starts or [0]), len(lines)])]


def _read(lines: Sequence[str]) -> tuple[list[Result], list[Result]] | None:
    plans = [int(found[1]) for line in lines if (found := _PLAN.fullmatch(line))]
    outermost = nested(_titled(lines))
    if len(plans) != 1 or plans[0] != len(outermost) or any(line.startswith("Bail out!") for line in lines):
        return None
    return leaves(outermost)


def _titled(lines: Sequence[str]) -> Iterator[tuple[int, str, Outcome]]:
    """An assertion is named after the test that it is one of."""
    title = ""
    begun = 0
    for number, line in enumerate([*lines, "# end"]):
        if found := _TITLE.fullmatch(line):
            for depth, name, outcome in tap_results(lines[begun:number]):
                yield depth, name if depth or not title else f"{title} > {name}", outcome
            title, begun = found[1].strip(), number


def _count(tests: Sequence[Result]) -> TestReport:
    outcomes = [test.outcome for test in tests]
    failed = outcomes.count("failed")
    return TestReport(
        runner="tap",
        ran=outcomes.count("passed") + failed,
        failed=failed,
        errors=0,
        skipped=outcomes.count("skipped") + outcomes.count("xfailed"),
    )
