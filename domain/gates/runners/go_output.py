"""The output of ``go test -v``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from domain.gates.report import TestReport, settle
from domain.gates.results import Outcome, by_name, is_bad

_RUN = re.compile(r"=== RUN {1,3}(\S{1,500})")
_RESULT = re.compile(r"--- (PASS|FAIL|SKIP): (\S{1,500}) \(\d+\.\d+s\)$")
_PACKAGE = re.compile(r"(ok|FAIL|\?) {0,4}\t(\S{1,500})(?:[ \t].{0,200})?")
_OUTCOMES: Mapping[str, Outcome] = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}


def is_go_output(lines: Sequence[str]) -> bool:
    """Whether there is a result of ``-v`` and a package's line."""
    return any(_PACKAGE.fullmatch(line) for line in lines) and any(_RESULT.search(line[-600:]) for line in lines)


def read_go(lines: Sequence[str], exit_code: int) -> TestReport:
    """Counted from each test's line; "other" where nothing but packages is said, which is how it is without ``-v``."""
    tests = go_tests(lines)
    silent = any(line.startswith("ok") and _PACKAGE.fullmatch(line) and "[no tests" not in line for line in lines)
    if tests is None or (not tests and silent):
        return TestReport(runner="other")
    outcomes = list(tests.values())
    failed = outcomes.count("failed")
    summary = TestReport(
        runner="go",
        ran=outcomes.count("passed") + failed,
        failed=failed,
        errors=outcomes.count("error"),
        skipped=outcomes.count("skipped"),
    )
    return settle([summary], exit_code, [name for name, outcome in tests.items() if is_bad(outcome)], "go")


def go_tests(lines: Sequence[str]) -> dict[str, Outcome] | None:
    """What each test did, as "package.Test/sub", and the packages that could not be built or died ("error"); None
    where a test began and nothing says how it ended, or no package's line closes the output."""
    told: list[tuple[str, Outcome]] = []
    open_lines: list[str] = []
    packages = 0
    for line in lines:
        found = _PACKAGE.fullmatch(line)
        if not found:
            open_lines.append(line)
            continue
        packages += 1
        package, died = found[2], found[1] == "FAIL"
        said = list(_results(open_lines))
        unended = {run[1] for line in open_lines if (run := _RUN.fullmatch(line))} - {name for name, _ in said}
        if unended and not died:
            return None
        told += [(f"{package}.{name}", outcome) for name, outcome in said]
        told += [(f"{package}.{name}", "failed") for name in unended]
        if died and not unended and not any(is_bad(outcome) for _, outcome in said):
            told.append((package, "error"))
        open_lines = []
    left = any(_RUN.fullmatch(line) for line in open_lines)
    return by_name(told) if packages and not left else None


def go_blocks(lines: Sequence[str]) -> list[str]:
    """What tests that failed printed, what could not be built, and the packages' lines."""
    ended = {found[2] for line in lines if (found := _RESULT.search(line[-600:])) and found[1] != "FAIL"}
    blocks: list[list[str]] = [[]]
    wanted = True
    for line in lines:
        if run := _RUN.fullmatch(line):
            blocks.append([])
            wanted = run[1] not in ended
        result = _RESULT.search(line[-600:])
        if _PACKAGE.fullmatch(line):
            blocks.append([])
            wanted = True
        elif (wanted and not (result and result[1] != "FAIL")) or (result and result[1] == "FAIL"):
            blocks[-1].append(line)
    closing = [line for line in lines if line.startswith("FAIL") and _PACKAGE.fullmatch(line)][-40:]
    return ["\n".join(block).strip("\n") for block in [*blocks, closing] if any(block)]


def _results(lines: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    """A result stands at the end of its line: what the test printed without a newline may stand before it."""
    for line in lines:
        if found := _RESULT.search(line[-600:]):
            yield found[2], _OUTCOMES[found[1]]
