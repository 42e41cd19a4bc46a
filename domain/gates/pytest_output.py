"""pytest's terminal output."""

from __future__ import annotations

from collections.abc import Sequence

from domain.gates.report import TestReport, settle

_COUNTED = {
    *("passed", "failed", "error", "errors", "skipped", "deselected", "xfailed", "xpassed", "warning", "warnings"),
    *("rerun", "subtests passed", "subtests failed", "subtests skipped"),
}
_SECTIONS = {"FAILURES", "ERRORS"}
_AFTERWARDS = (
    "short test summary info",
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


def _closing(lines: Sequence[str]) -> list[str]:
    for number in range(len(lines) - 1, -1, -1):
        if _framed(lines[number], "=") == "short test summary info":
            return list(lines[number:])
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
            names.append(rest.partition(" - ")[0].strip())
    return names


def _summary(line: str) -> TestReport | None:
    counts, _, duration = line[:400].strip().strip("=").strip().rpartition(" in ")
    if not _is_duration(duration):
        return None
    if counts == "no tests ran":
        return TestReport(runner="pytest", ran=0, failed=0, errors=0, skipped=0)
    found: dict[str, int] = {}
    for part in counts.split(", "):
        number, _, word = part.partition(" ")
        if not number.isdecimal() or word not in _COUNTED:
            return None
        found[word] = int(number)
    failed = found.get("failed", 0)
    errors = found.get("error", 0) + found.get("errors", 0)
    skipped = found.get("skipped", 0)
    return TestReport(
        runner="pytest", ran=found.get("passed", 0) + failed, failed=failed, errors=errors, skipped=skipped
    )


def _is_duration(text: str) -> bool:
    seconds = text.partition(" ")[0]
    return seconds.endswith("s") and seconds[:-1].replace(".", "", 1).isdecimal()
