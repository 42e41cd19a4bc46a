"""The verdicts beside a baseline: of a change, and of the base that changes are to be judged on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.gates.comparing import Baseline, Comparison, compare, measured
from domain.gates.reading import Run
from domain.gates.results import is_bad
from domain.gates.verdict import LIMITS, Verdict, red, tests, verdict

_NAMED = 5
_LONGEST = 160
_LAST_CODE = 125  # above it: not found, not a program, killed by a signal
_CURES = {
    "timeout": "raise limits.test_seconds, or name a test command that takes less",
    "memory": "raise limits.test_memory_bytes",
    "processes": "raise limits.test_processes",
    "log": "raise limits.test_seconds, or have the tests print less",
}
_NO_TESTS = 'name a test command that runs some, or say what counts instead: untested = "syntax" or "review"'
_READABLE = "pytest, unittest, node --test, go test -v, mocha's spec reporter, TAP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """``compared`` is empty for a run that could not be compared."""

    verdict: Verdict
    compared: Comparison = field(default_factory=Comparison)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Whether changes can be judged on top of it, and beside what (None: by its exit code and count, as it is
    green). ``failing`` failed both times."""

    usable: bool
    green: bool
    reason: str
    ran: int
    failing: int = 0
    baseline: Baseline | None = None


def judge_change(run: Run, before: Baseline, *, untested: bool = False) -> Judged:
    """Green when the run came to its end, nothing fails that did not, nothing is lost, and what is known to fail
    explains the exit code. ``untested``: it may have no tests, as before."""
    if run.ended != "exited":
        return Judged(verdict=verdict(run.report, base_ran=None, ended=run.ended, exit_code=run.exit_code))
    if untested and not before.tests and has_no_tests(run):
        return Judged(verdict=Verdict(green=True, reason="there are no tests; what was written parses"))
    if run.tests is None:
        said = red(run.report, run.exit_code) if run.exit_code else "the test command exited with 0"
        reason = f"{said}; what each test did cannot be read from its output, so nothing can be compared with before"
        return Judged(verdict=Verdict(green=False, reason=reason))
    found = compare(before, run.tests)
    problem = _worse(found) or ("no test ran" if has_no_tests(run) else "") or _unexplained(run, before.codes)
    if problem:
        return Judged(verdict=Verdict(green=False, reason=f"{problem}{_beside(found)}"), compared=found)
    passed = sum(outcome == "passed" for outcome in run.tests.values())
    return Judged(verdict=Verdict(green=True, reason=f"{tests(passed)} passed{_beside(found)}"), compared=found)


def judge_base(runs: Sequence[Run], *, untested: bool = False) -> Base:
    """``runs`` are two of the same commit, or one that settles it already (see ``needs_another``). The reason of one
    that is not usable says what to do about it."""
    problem = next((sentence for run in runs if (sentence := _unusable(run, untested=untested))), "")
    counts = [-1 if run.report.ran is None else run.report.ran for run in runs]
    if problem:
        return Base(usable=False, green=False, reason=problem, ran=min(counts))
    if untested and any(has_no_tests(run) for run in runs):
        nothing = Baseline(runner=runs[0].report.runner)
        return Base(usable=True, green=True, reason="there are no tests yet", ran=0, baseline=nothing)
    told = [run.tests for run in runs if run.tests is not None]
    green = all(run.exit_code == 0 for run in runs)
    if len(told) < 2:
        reason = verdict(runs[0].report, base_ran=None, ended="exited", exit_code=0).reason
        return Base(usable=True, green=green, reason=reason, ran=min(counts))
    codes = {run.exit_code for run in runs}
    baseline = measured((told[0], told[1]), runner=runs[0].report.runner, codes=codes)
    failing = sorted(name for name, was in baseline.tests.items() if is_bad(was) and name not in baseline.flaky)
    ran = min(counts)
    reason = f"{len(failing)} of {tests(ran)} fail before any change: {_names(failing)}" if failing else ""
    flaky = f"; {len(baseline.flaky)} flaky: {_names(sorted(baseline.flaky))}" if baseline.flaky else ""
    return Base(
        usable=True,
        green=green,
        reason=f"{reason or f'{tests(ran)} passed, twice'}{flaky}",
        ran=ran,
        failing=len(failing),
        baseline=baseline,
    )


def needs_another(run: Run, *, untested: bool) -> bool:
    """Whether a second run of the base can still say something."""
    return not has_no_tests(run) and not _unusable(run, untested=untested)


def has_no_tests(run: Run) -> bool:
    """Whether the runner says so itself: it came to its end, and nothing ran, failed or could not be read."""
    ran = any(outcome != "skipped" for outcome in (run.tests or {}).values())
    counted = run.report.ran == 0 and not run.report.failed and not run.report.errors
    return run.ended == "exited" and run.tests is not None and counted and not ran


def next_failures(found: Comparison) -> str:
    """The head of what a model is shown of a red run."""
    lines = [f"NEW FAILURE {name}" for name in found.new[:50]]
    lines += [f"LOST TEST {name} (it was there before the change and has to run)" for name in found.lost[:50]]
    left = max(len(found.new) - 50, 0) + max(len(found.lost) - 50, 0)
    return "\n".join([*lines, *([f"and {left} more"] if left else [])])


def _unusable(run: Run, *, untested: bool) -> str:
    """Why changes cannot be judged on a base that ran like this, and the cure; "" when they can."""
    if run.ended != "exited":
        said = LIMITS.get(run.ended, f"the tests hit a limit: {run.ended}")
        return f"{said}; {_CURES.get(run.ended, 'raise the limit')}"
    if has_no_tests(run):
        return "" if untested else f"no test ran; {_NO_TESTS}"
    if run.tests is None:
        return _untold(run)
    errors = sorted(name for name, outcome in run.tests.items() if outcome == "error")
    if not run.report.ran and errors:
        return f"no test ran, since {_names(errors)} cannot be loaded; mend that first"
    return _unexplained(run, frozenset({run.exit_code}))


def _untold(run: Run) -> str:
    if run.exit_code:
        said = red(run.report, run.exit_code)
        return f"{said}, and which tests did cannot be read; mend them, or use a test command that tells ({_READABLE})"
    judged = verdict(run.report, base_ran=None, ended=run.ended, exit_code=0)
    return "" if judged.green else f"{judged.reason}; {_NO_TESTS}" if run.report.ran == 0 else judged.reason


def _unexplained(run: Run, codes: frozenset[int]) -> str:
    """What is wrong with the exit code beside what the tests did; "" when they fit."""
    code, told = run.exit_code, run.tests or {}
    bad = sum(is_bad(outcome) for outcome in told.values())
    if code == 0 and bad:
        return f"the test command exited with 0 though {tests(bad)} failed; its exit code has to say so"
    if code == 0:
        return "" if run.report.ran is not None else "the test command exited with 0 but its counts do not fit"
    if not bad:
        return f"the test command exited with {code} though no test failed: something beside the tests did"
    explained = codes | {1} | ({min(bad, 255)} if run.report.runner == "mocha" else set())
    if code <= _LAST_CODE and (run.behind or code in explained):
        return ""
    return f"the test command exited with {code}, which the tests that are known to fail do not explain"


def _worse(found: Comparison) -> str:
    new = f"{len(found.new)} new {_plural('failure', found.new)}: {_names(found.new)}" if found.new else ""
    lost = f"{len(found.lost)} lost {_plural('test', found.lost)} (gone, renamed, skipped or allowed to fail): "
    return "; ".join(part for part in (new, f"{lost}{_names(found.lost)}" if found.lost else "") if part)


def _beside(found: Comparison) -> str:
    known = f"{len(found.known)} known to fail" if found.known else ""
    fixed = f"{len(found.fixed)} fixed" if found.fixed else ""
    said = ", ".join(part for part in (known, fixed) if part)
    return f" ({said})" if said else ""


def _names(names: Sequence[str]) -> str:
    more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..." for name in names[:_NAMED]), *more])


def _plural(word: str, names: Sequence[str]) -> str:
    return word if len(names) == 1 else f"{word}s"
