"""pytest's terminal output."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from domain.gates.report import TestReport, settle
from domain.gates.results import Outcome, by_name, is_bad, worst

_COUNTED = {
    *("passed", "failed", "error", "errors", "skipped", "deselected", "xfailed", "xpassed", "warning", "warnings"),
    *("rerun", "subtests passed", "subtests failed", "subtests skipped"),
}
_SECTIONS = {"FAILURES", "ERRORS"}
_SHORT = "short test summary info"
_OUTCOMES: Mapping[str, Outcome] = {
    "PASSED": "passed",
    "FAILED": "failed",
    "SUBFAILED": "failed",
    "ERROR": "error",
    "XFAIL": "xfailed",
    "XPASS": "xfailed",
}
_COUNT_OF = {"PASSED": "passed", "FAILED": "failed", "SUBFAILED": "failed", "XFAIL": "xfailed", "XPASS": "xpassed"}
_NODE = re.compile(r"(?:^|[\s\])])(\S{1,400}?::)")
_AFTERWARDS = (
    _SHORT,
    "warnings summary",
    "slowest",
    "tests coverage",
    "PASSES",
    "XPASSES",
    "XFAILURES",
)


def read_pytest(lines: Sequence[str], exit_code: int) -> TestReport:
    """From the line "2 passed, 1 failed in 0.03s", with or without its frame."""
    summaries = [report for line in lines if " in " in line and (report := _summary(line))]
    return settle(summaries, exit_code, _failing(lines), "pytest")


def pytest_blocks(lines: Sequence[str]) -> list[str]:
    """One block a failed test or collection error, and the short summary."""
    blocks: list[list[str]] = []
    section = ""
    for line in lines:
        title = _framed(line, "=")
        if title in _SECTIONS or title.startswith(_AFTERWARDS) or (title and _summary(line)):
            section = title
        elif section in _SECTIONS:
            if _framed(line, "_") or not blocks:
                blocks.append([])
            blocks[-1].append(line)
    closing = _closing(lines)
    return ["\n".join(block).strip("\n") for block in [*blocks, closing] if any(block)]


def pytest_tests(lines: Sequence[str]) -> dict[str, Outcome] | None:
    """What each test did, from the short summaries with a line a test; None unless they add up with the last counts.

    Code under test can print such a summary too, and a command can run pytest more than once: of all that is said of a
    test the worst counts.
    """
    told: dict[str, Outcome] = {}
    partly: list[dict[str, Outcome]] = []
    adds_up = False
    for said, counts in _sessions(lines):
        tests = by_name((name, _OUTCOMES[kind]) for kind, name in said)
        adds_up = _adds_up(Counter(kind for kind, _ in said), counts)
        if adds_up:
            told = by_name([*told.items(), *tests.items()])
        else:
            partly.append(tests)
    for tests in partly:
        told |= {name: worst((told[name], tests[name])) for name in tests if name in told and is_bad(tests[name])}
    return told if adds_up else None


def _sessions(lines: Sequence[str]) -> Iterator[tuple[list[tuple[str, str]], dict[str, int]]]:
    """The kinds and names of each short summary, with the counts that close it."""
    said: list[tuple[str, str]] = []
    inside = False
    for line in lines:
        if line.startswith("=") and _framed(line, "=") == _SHORT:
            said, inside = [], True
        elif " in " in line and (counts := _counts(line)) is not None:
            yield said, counts
            said, inside = [], False
        elif inside and (entry := _entry(line)):
            said.append(entry)


def _adds_up(found: Counter[str], counts: Mapping[str, int]) -> bool:
    """Skipped tests do not matter: their lines hold places, not names."""
    named = Counter({"error": found["ERROR"]})
    for kind, word in _COUNT_OF.items():
        named[word] += found[kind]
    said = dict(counts) | {"error": counts.get("error", 0) + counts.get("errors", 0)}
    return all(named[word] == said.get(word, 0) for word in ("passed", "failed", "error", "xfailed", "xpassed"))


def _entry(line: str) -> tuple[str, str] | None:
    kind, _, rest = line.partition(" ")
    if line.startswith("SUBFAILED"):  # with a message and values before the name, and perhaps without a space
        found = _NODE.search(line[len("SUBFAILED") :])
        return ("SUBFAILED", _node(line[len("SUBFAILED") + found.start(1) :])) if found else None
    if kind not in _OUTCOMES or not rest:
        return None
    return kind, rest.strip() if kind == "PASSED" else _node(rest)


def _node(rest: str) -> str:
    """The name before " - " and a reason; a parameter in brackets may have " - " in it too."""
    first, _, _ = rest.partition(" - ")
    if "[" not in first or first.endswith("]"):
        return first.strip()
    end = rest.find("] - ")
    if end < 0:
        return (rest if rest.rstrip().endswith("]") else first).strip()
    return rest[: end + 1].strip()


def _closing(lines: Sequence[str]) -> list[str]:
    for number in range(len(lines) - 1, -1, -1):
        if _framed(lines[number], "=") == _SHORT:
            return [line for line in lines[number:] if not line.startswith(("PASSED ", "XFAIL ", "SKIPPED "))]
    return []


def _framed(line: str, frame: str) -> str:
    if not line.startswith(frame) or not line.endswith(frame) or len(line) > 400:
        return ""
    title = line.strip(frame)
    # pytest separates the frames of one traceback with "_ _ _ _".
    return title.strip() if title.startswith(" ") and title.endswith(" ") and title.strip("_ ") else ""


def _failing(lines: Sequence[str]) -> list[str]:
    names = []
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind in {"FAILED", "ERROR"} and (".py" in rest or "::" in rest):
            names.append(_node(rest))
    return names


def _summary(line: str) -> TestReport | None:
    found = _counts(line)
    if found is None:
        return None
    failed = found.get("failed", 0)
    errors = found.get("error", 0) + found.get("errors", 0)
    skipped = found.get("skipped", 0)
    return TestReport(
        runner="pytest", ran=found.get("passed", 0) + failed, failed=failed, errors=errors, skipped=skipped
    )


def _counts(line: str) -> dict[str, int] | None:
    counts, _, duration = line[:400].strip().strip("=").strip().rpartition(" in ")
    if not _is_duration(duration):
        return None
    if counts == "no tests ran":
        return {}
    found: dict[str, int] = {}
    for part in counts.split(", "):
        number, _, word = part.partition(" ")
        if not number.isdecimal() or word not in _COUNTED:
            return None
        found[word] = int(number)
    return found


def _is_duration(text: str) -> bool:
    seconds = text.partition(" ")[0]
    return seconds.endswith("s") and seconds[:-1].replace(".", "", 1).isdecimal()
