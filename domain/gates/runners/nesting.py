"""Results in a tree by their indentation: of Node, and of what prints TAP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from domain.gates.results import Outcome, is_bad

_TAP = re.compile(r"( {0,200})(not )?ok\b(?: \d{1,9})?(?: -)?(?: (.{0,2000}))?")
_DIRECTIVE = re.compile(r"(?:^|\s)# (SKIP|TODO)\b.{0,500}$", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class Result:
    """One line's result; ``path`` grows to the left as the results around it are read, ``inner`` are those in it."""

    depth: int
    path: tuple[str, ...]
    outcome: Outcome
    inner: list[Result] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The names of what is around it, and its own."""
        return " > ".join(self.path)


def tap_results(lines: Iterable[str]) -> Iterator[tuple[int, str, Outcome]]:
    """Depth, name and outcome of each "ok" and "not ok", but of none inside a failure's YAML."""
    yaml = ""
    for line in lines:
        if yaml:
            yaml = "" if line.rstrip() == yaml else yaml
        elif line.strip() == "---":
            yaml = f"{line[: len(line) - len(line.lstrip(' '))]}..."
        elif found := _TAP.fullmatch(line):
            yield len(found[1]), *_named(found[3] or "", failed=bool(found[2]))


def _named(text: str, *, failed: bool) -> tuple[str, Outcome]:
    directive = _DIRECTIVE.search(text)
    name = (text[: directive.start()] if directive else text).replace("\\#", "#").replace("\\\\", "\\").strip()
    if directive:
        return name, "skipped" if directive[1].upper() == "SKIP" else "xfailed"
    return name, "failed" if failed else "passed"


def nested(found: Iterable[tuple[int, str, Outcome]]) -> list[Result]:
    """The outermost results, with the others in them: what stands deeper belongs to the next that stands less deep."""
    waiting: list[Result] = []
    for depth, name, outcome in found:
        result = Result(depth=depth, path=(name,), outcome=outcome)
        while waiting and waiting[-1].depth > depth:
            result.inner.append(waiting.pop())
        result.inner.reverse()
        waiting.append(result)
    return waiting


def leaves(results: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """The tests, and what only holds others; both with their whole paths, in order."""
    tests: list[Result] = []
    groups: list[Result] = []
    waiting = list(reversed(results))
    while waiting:
        result = waiting.pop()
        (groups if result.inner else tests).append(result)
        for inner in reversed(result.inner):
            inner.path = (*result.path, *inner.path)[-50:]
            waiting.append(inner)
    return tests, groups


def named_tests(tests: Sequence[Result], groups: Sequence[Result]) -> list[tuple[str, Outcome]]:
    """The tests, and the groups that failed by themselves: with nothing in them that did."""
    alone = [group for group in groups if is_bad(group.outcome) and not _any_bad(group)]
    return [(result.name, result.outcome) for result in [*tests, *alone]]


def _any_bad(group: Result) -> bool:
    waiting = list(group.inner)
    while waiting:
        result = waiting.pop()
        if is_bad(result.outcome):
            return True
        waiting += result.inner
    return False
