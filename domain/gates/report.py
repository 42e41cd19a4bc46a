"""What a test runner says about a run, read from its output. Reading is strict: what is in doubt is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from domain.gates.telling import is_go

Runner = Literal["pytest", "unittest", "node", "tap", "go", "mocha", "other"]
_BEFORE_PROGRAM = {"run", "exec", "--", "-c", "&&", ";", "time", "env", "coverage", "npx"}
_PROGRAMS: Mapping[str, Runner] = {
    **dict.fromkeys(("pytest", "py.test", "pytest-3"), "pytest"),
    **dict.fromkeys(("mocha", "_mocha"), "mocha"),
    **dict.fromkeys(("tape", "tap"), "tap"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """Counts are None when they cannot be told. ``ran`` counts tests that were executed and had to pass: neither
    skipped, nor deselected, nor expected to fail. ``failing`` are the names of failed tests, the first fifty."""

    __test__ = False  # no test class, though pytest would take it for one by its name

    runner: Runner
    ran: int | None = None
    failed: int | None = None
    errors: int | None = None
    skipped: int | None = None
    failing: tuple[str, ...] = ()


def runner_of(argv: Sequence[str]) -> Runner:
    """The runner that a test command starts, also behind ``python -m``, ``uv run``, ``npx`` and ``sh -c``."""
    if is_go(argv):
        return "go"
    words = [word for argument in argv for word in argument.split()]
    names = [PurePosixPath(word).name for word in words]
    for before, word, name in zip(["--", *words], words, names, strict=False):
        for module in ("pytest", "unittest"):
            if word == f"-m{module}" or (before == "-m" and word == module):
                return "pytest" if module == "pytest" else "unittest"
        if name in _PROGRAMS and (before in _BEFORE_PROGRAM or "=" in before):
            return _PROGRAMS[name]
        if word == "--test" and {"node", "nodejs"} & set(names):
            return "node"
    return "other"


def settle(summaries: Sequence[TestReport], exit_code: int, failing: Iterable[str], runner: Runner) -> TestReport:
    """One report out of all summaries in an output, oldest first.

    Code under test can print a summary too. The last is the runner's unless something ran after it, so a run that
    wants to be green is held to the lowest of all, and one that contradicts its exit code counts nothing.
    """
    names = tuple(dict.fromkeys(name[:200] for name in failing))[:50]
    if not summaries:
        return TestReport(runner=runner, failing=names)
    last = summaries[-1] if exit_code else min(summaries, key=lambda s: s.ran or 0)
    bad = any((s.failed or 0) + (s.errors or 0) for s in summaries)
    if exit_code == 0 and bad:
        return TestReport(runner=runner, failing=names)
    return TestReport(
        runner=runner, ran=last.ran, failed=last.failed, errors=last.errors, skipped=last.skipped, failing=names
    )
