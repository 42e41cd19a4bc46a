"""From what a reviewer said to findings that can be acted on: each at a task, in one line, as grave as it may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.review.findings import Finding, Review, Severity

MOST_FINDINGS = 50
SHORT = 300
_RANKS: Mapping[Severity, int] = {"high": 0, "medium": 1, "low": 2}
_PREFIXES = ("./", "a/", "b/", "/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """``tasks`` are the ids that a finding may name, in the order in which they merged. ``declared`` are the paths that
    each declares, ``touched`` those of the reviewed diff, None when they are not all known."""

    tasks: tuple[str, ...]
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    touched: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """``findings`` with the gravest first; ``left_out`` counts those beyond ``MOST_FINDINGS``."""

    summary: str
    findings: tuple[Finding, ...]
    left_out: int = 0

    def count(self, severity: Severity) -> int:
        """How many findings have it."""
        return sum(finding.severity == severity for finding in self.findings)

    def tasks_with_high(self) -> tuple[str, ...]:
        """The tasks that have to mend a high finding."""
        return tuple(dict.fromkeys(finding.task for finding in self.findings if finding.severity == "high"))

    def of(self, task: str) -> tuple[Finding, ...]:
        """All findings of one task."""
        return tuple(finding for finding in self.findings if finding.task == task)


def weigh(review: Review, scope: Scope) -> Weighed:
    """Every finding as one printable line of its task, none twice, the gravest first and at most ``MOST_FINDINGS``."""
    settled = dict.fromkeys(_settled(finding, scope) for finding in review.findings)
    ordered = sorted(settled, key=lambda finding: _RANKS[finding.severity])
    return Weighed(
        summary=one_line(review.summary, limit=SHORT),
        findings=tuple(ordered[:MOST_FINDINGS]),
        left_out=max(len(ordered) - MOST_FINDINGS, 0),
    )


def sentence_of(findings: tuple[Finding, ...]) -> str:
    """The first of some findings in words, and how many more there are; at most 300 characters."""
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return one_line(_line(findings[0]), limit=SHORT - len(more)) + more


def report_of(findings: tuple[Finding, ...]) -> str:
    """A task's findings as its next prompt shows them."""
    high = [f"- {_line(finding)}\n" for finding in findings if finding.severity == "high"]
    others = [f"- ({finding.severity}) {_line(finding)}\n" for finding in findings if finding.severity != "high"]
    return "".join(["These defects have to be mended:\n", *high, *(["Noticed too:\n"] if others else []), *others])


def one_line(text: str, *, limit: int) -> str:
    """``text`` without control and invisible characters and without line ends, cut with an ellipsis."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _settled(finding: Finding, scope: Scope) -> Finding:
    path = _path(finding.file, scope)
    severity, message = finding.severity, one_line(finding.message, limit=SHORT)
    doubt = _doubt(path, message, scope)
    if doubt and severity != "low":
        severity, message = "low", f"{message} ({doubt}; the reviewer said {finding.severity})".strip()
    return Finding(
        task=_task(finding.task.strip(), path, scope),
        file=one_line(path, limit=SHORT),
        line=max(finding.line, 0),
        severity=severity,
        message=message or "(no message)",
    )


def _doubt(path: str, message: str, scope: Scope) -> str:
    """Why nobody is sent back for this finding; "" when somebody is."""
    if not message:
        return "it says nothing"
    return "" if scope.touched is None or path in scope.touched else "the change does not touch this file"


def _path(file: str, scope: Scope) -> str:
    """As the diff spells it, if it is there without a prefix that models like to add."""
    known = scope.touched or frozenset().union(*scope.declared.values())
    plain = file.strip()
    spellings = (file, plain, *(plain.removeprefix(prefix) for prefix in _PREFIXES))
    return next((spelling for spelling in spellings if spelling in known), plain)


def _task(named: str, path: str, scope: Scope) -> str:
    """The task itself, else the last one that declares the file, else the last one."""
    if named in scope.tasks:
        return named
    declaring = [task for task in scope.tasks if any(_holds(d, path) for d in scope.declared.get(task, ()))]
    return next(reversed([*scope.tasks[-1:], *declaring]), "")


def _holds(declared: str, path: str) -> bool:
    """A plan may declare a folder."""
    return path == declared or path.startswith(declared.rstrip("/") + "/")


def _line(finding: Finding) -> str:
    where = finding.file + (f", line {finding.line}" if finding.line else "")
    return f"{where}: {finding.message}" if where else finding.message
