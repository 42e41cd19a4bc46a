"""The output of the standard library's unittest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from domain.gates.report import TestReport, settle
from domain.gates.results import Outcome, by_name

_RAN = re.compile(r"Ran (\d{1,9}) tests? in \d+(?:\.\d+)?s")
_RESULT = re.compile(
    r"(OK|FAILED|NO TESTS RAN)(?: \(([a-z]+(?: [a-z]+)?=\d{1,9}(?:, [a-z]+(?: [a-z]+)?=\d{1,9}){0,5})\))?"
)
_NAMED = re.compile(r"(?:FAIL|ERROR): (\S.{0,300})")
_ID = r"\w[\w.\[\]<>-]{0,300} \([\w.<>\[\]-]{1,500}\)"
_STARTED = re.compile(rf"(?:^| \.\.\. )({_ID})(?= \.\.\. |$)")
_BLOCK = re.compile(rf"(FAIL|ERROR|UNEXPECTED SUCCESS): ({_ID})(?: .{{0,500}})?")
_ENDED = re.compile(r"(ok|FAIL|ERROR|expected failure|unexpected success|skipped (?:'.{0,500}'|\".{0,500}\"))$")
_AROUND = ("setUpClass (", "tearDownClass (", "setUpModule (", "tearDownModule (")
_OUTCOMES: Mapping[str, Outcome] = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "error",
    "expected failure": "xfailed",
    "unexpected success": "failed",
    "UNEXPECTED SUCCESS": "failed",
}


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


def unittest_tests(lines: Sequence[str]) -> dict[str, Outcome] | None:
    """What each test did, from the lines of ``-v`` and the blocks of failures; None unless they add up with the last
    result. Of several runs in one output, and of all that is said of one test, the worst counts."""
    told: dict[str, Outcome] | None = None
    found: list[tuple[str, Outcome]] = []
    for part, ran, counts in _runs(lines):
        said = _part(part, ran, counts)
        found += said or []
        told = None if said is None else by_name(found)
    return told


def _runs(lines: Sequence[str]) -> Iterator[tuple[Sequence[str], int, dict[str, int]]]:
    begun, ran = 0, None
    for number, line in enumerate(lines):
        if found := _RAN.fullmatch(line.strip()):
            ran = int(found[1])
        elif ran is not None and (result := _RESULT.fullmatch(line.strip())):
            yield lines[begun:number], ran, _details(result[2] or "")
            begun, ran = number + 1, None


def _part(lines: Sequence[str], ran: int, counts: Mapping[str, int]) -> list[tuple[str, Outcome]] | None:
    blocks = [(found[2], found[1]) for line in lines if (found := _BLOCK.fullmatch(line))]
    first = next((n for n, line in enumerate(lines[1:]) if _is_rule(lines[n], "=") and _BLOCK.fullmatch(line)), None)
    said = list(_progress(lines[:first]))
    tests = [(name, status) for name, status in said if not name.startswith(_AROUND)]
    failing = [kind for _, kind in blocks]
    told = {name for name, status in said if status} | {name for name, _ in blocks}
    fits = (
        len({name for name, _ in tests}) <= ran <= len(tests)
        and failing.count("FAIL") == counts.get("failures", 0)
        and failing.count("ERROR") == counts.get("errors", 0)
        and all(name in told for name, _ in tests)
    )
    if not fits:
        return None
    # What failed has a block; the end of a line may be that of another test, where a test prints such lines itself.
    passed = [(name, status) for name, status in tests if status and status not in {"FAIL", "ERROR"}]
    ended: list[tuple[str, Outcome]] = [(name, _OUTCOMES.get(status, "skipped")) for name, status in passed]
    return [*ended, *((name, _OUTCOMES[kind]) for name, kind in blocks)]


def _progress(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each started test and how it ended ("": not said). What it prints may stand in between, on lines of its own."""
    name, status = "", ""
    for line in lines:
        for found in _STARTED.finditer(line[:1_000]):
            if name:
                yield name, status
            name, status = found[1], ""
        if name and (end := _ENDED.search(line[-600:])):
            status = end[1]
    if name:
        yield name, status


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


def _details(text: str) -> dict[str, int]:
    pairs = (part.partition("=") for part in text.split(", ")) if text else ()
    return {name: int(number) for name, _, number in pairs}


def _summary(ran: int, details: str) -> TestReport:
    found = _details(details)
    skipped = found.get("skipped", 0)
    real = max(ran - skipped - found.get("expected failures", 0) - found.get("unexpected successes", 0), 0)
    return TestReport(
        runner="unittest",
        ran=real,
        failed=found.get("failures", 0) + found.get("unexpected successes", 0),
        errors=found.get("errors", 0),
        skipped=skipped,
    )
