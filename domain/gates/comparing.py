"""A run beside the one before the change: what fails now and did not, what is gone, what is mended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from domain.gates.report import Runner
from domain.gates.results import Outcome, Tests, is_bad, worst


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What each test did before a change. ``flaky`` tests did not do the same twice; theirs is the worse outcome, but
    "skipped" where one of the runs can do without them. ``codes`` are the exit codes that its failures gave."""

    runner: Runner
    tests: Tests = field(default_factory=dict)
    flaky: frozenset[str] = frozenset()
    codes: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Names, sorted. ``new`` fail now and did not; ``lost`` are gone or may fail now, and passed or failed before;
    ``fixed`` pass now and failed; ``known`` fail as they did, or are flaky."""

    new: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


def compare(before: Baseline, now: Tests) -> Comparison:
    """A test that is gone, skipped or allowed to fail is lost when it passed before, and also when it failed: taking a
    red test away is no repair. A renamed test is a lost one. Flaky tests are never new or fixed."""
    bad = [name for name, outcome in now.items() if is_bad(outcome)]
    known = {name for name in bad if name in before.flaky or is_bad(before.tests.get(name, "skipped"))}
    gone = {name for name, was in before.tests.items() if was == "passed" or is_bad(was)}
    gone -= {name for name in gone if now.get(name, "skipped") not in {"skipped", "xfailed"}}
    opened = _opened(before, now, [name for name in gone if before.tests[name] == "error"])
    mended = {name for name, was in before.tests.items() if is_bad(was) and now.get(name) == "passed"}
    return Comparison(
        new=tuple(sorted(set(bad) - known)),
        lost=tuple(sorted(gone - opened)),
        fixed=tuple(sorted((mended - before.flaky) | opened)),
        known=tuple(sorted(known)),
    )


def measured(runs: tuple[Tests, Tests], *, runner: Runner, codes: Iterable[int]) -> Baseline:
    """The baseline of two runs of the same commit."""
    tests: dict[str, Outcome] = {}
    flaky = set()
    first, second = runs
    for name in {**first, **second}:
        pair: tuple[Outcome, Outcome] = (first.get(name, "skipped"), second.get(name, "skipped"))
        tests[name] = worst(pair)
        if pair[0] != pair[1] and not (is_bad(pair[0]) and is_bad(pair[1])):
            flaky.add(name)
            tests[name] = "skipped" if {"skipped", "xfailed"} & set(pair) else worst(pair)
    return Baseline(runner=runner, tests=tests, flaky=frozenset(flaky), codes=frozenset(codes) - {0})


def carried(before: Baseline, now: Tests, *, runner: Runner) -> Baseline:
    """The baseline of the next change, on top of a green run: what it did, and the flaky tests as they were known."""
    flaky: Mapping[str, Outcome] = {name: before.tests.get(name, "skipped") for name in before.flaky}
    return Baseline(runner=runner, tests={**now, **flaky}, flaky=before.flaky, codes=before.codes)


def document(baseline: Baseline) -> dict[str, object]:
    """As a JSON object."""
    return {
        "runner": baseline.runner,
        "tests": dict(baseline.tests),
        "flaky": sorted(baseline.flaky),
        "codes": sorted(baseline.codes),
    }


def baseline_of(raw: Mapping[str, object]) -> Baseline:
    """The reverse of ``document``. Raises KeyError or TypeError for what it did not make."""
    tests, flaky, codes = raw["tests"], raw["flaky"], raw["codes"]
    if not isinstance(tests, dict) or not isinstance(flaky, list) or not isinstance(codes, list):
        raise TypeError("no baseline")
    runner: Runner = raw["runner"]  # type: ignore[assignment]
    return Baseline(runner=runner, tests=tests, flaky=frozenset(flaky), codes=frozenset(codes))


def _opened(before: Baseline, now: Tests, gone: Iterable[str]) -> set[str]:
    """Errors of a whole file, class or package that are gone because its tests run now, which could not before."""
    added = [name for name, outcome in now.items() if name not in before.tests and not is_bad(outcome)]
    return {name for name in gone if any(_holds(name, test) for test in added)}


def _holds(whole: str, test: str) -> bool:
    name, _, where = whole.partition(" (")
    if where.startswith("unittest.loader._FailedTest."):
        return f" ({name}." in test
    if where:  # setUpClass (module.Class) and the like
        return f" ({where.removesuffix(')')}." in test
    if whole.startswith("/"):  # Node does not say which tests are in a file
        return True
    suite, hook, _ = whole.rpartition(' > "')  # mocha's hooks stand for the tests of their suite
    return test.startswith((f"{whole}::", f"{whole.rstrip('/')}/", f"{whole}.", *([f"{suite} > "] if hook else ())))
