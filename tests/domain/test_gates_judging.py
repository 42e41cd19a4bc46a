"""A change is judged by what it changes: new failures and lost tests, whatever was red before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.gates.comparing import Baseline, baseline_of, carried, compare, document, measured
from domain.gates.judging import Base, Judged, judge_base, judge_change, needs_another, next_failures
from domain.gates.reading import Run
from domain.gates.report import Runner, TestReport
from domain.gates.results import Outcome, is_bad

OUTCOMES: list[Outcome] = ["passed", "xfailed", "skipped", "failed", "error"]
TESTS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(OUTCOMES))
BASES = st.builds(
    lambda tests, flaky: Baseline(runner="pytest", tests=tests, flaky=flaky & tests.keys()),
    TESTS,
    st.frozensets(st.sampled_from("abcdefgh"), max_size=2),
)


def ran(
    tests: Mapping[str, Outcome] | None, *, code: int | None = None, ended: str = "exited", runner: Runner = "pytest"
) -> Run:
    """A run whose counts and exit code fit its tests."""
    told = list((tests or {}).values())
    failed, errors = told.count("failed"), told.count("error")
    counted = told.count("passed") + failed if tests is not None else None
    fits = bool(failed + errors) if told or tests is None else 5
    report = TestReport(runner=runner, ran=counted, failed=failed, errors=errors)
    return Run(report=report, tests=tests, ended=ended, exit_code=int(fits) if code is None else code)


def before(tests: Mapping[str, Outcome], *, flaky: str = "", codes: frozenset[int] = frozenset()) -> Baseline:
    return Baseline(runner="pytest", tests=tests, flaky=frozenset(flaky), codes=codes)


def change(was: Mapping[str, Outcome], now: Mapping[str, Outcome] | None, **more: Any) -> Judged:
    return judge_change(ran(now, **more), before(was))


def base(*runs: Mapping[str, Outcome] | Run | None, untested: bool = False) -> Base:
    return judge_base([run if isinstance(run, Run) else ran(run) for run in runs], untested=untested)


class TestAChange:
    def test_that_breaks_nothing_is_green_beside_what_is_known_to_fail(self) -> None:
        judged = change({"a": "passed", "b": "failed"}, {"a": "passed", "b": "failed", "c": "passed"})
        assert judged.verdict.green
        assert judged.verdict.reason == "2 tests passed (1 known to fail)"

    def test_that_mends_a_test_is_told_so(self) -> None:
        judged = change({"a": "passed", "b": "failed", "c": "error"}, {"a": "passed", "b": "passed", "c": "error"})
        assert judged.verdict.green
        assert judged.verdict.reason == "2 tests passed (1 known to fail, 1 fixed)"

    def test_that_breaks_a_test_is_red_and_names_it(self) -> None:
        now: dict[str, Outcome] = {"a": "failed", "b": "error", "c": "failed", "d": "passed"}
        judged = change({"a": "passed", "c": "failed", "d": "failed"}, now)
        assert not judged.verdict.green
        assert judged.verdict.reason == "2 new failures: a, b (1 known to fail, 1 fixed)"

    @pytest.mark.parametrize("was", ["passed", "skipped", "xfailed", None])
    def test_fails_anew_whatever_the_test_did_but_fail(self, was: Outcome | None) -> None:
        before_it: dict[str, Outcome] = {"x": "passed", **({"a": was} if was else {})}
        judged = change(before_it, {"x": "passed", "a": "failed"})
        assert judged.compared.new == ("a",)

    @pytest.mark.parametrize("now", ["skipped", "xfailed", None])
    @pytest.mark.parametrize("was", ["passed", "failed", "error"])
    def test_loses_a_test_that_is_gone_skipped_or_allowed_to_fail(self, was: Outcome, now: Outcome | None) -> None:
        after_it: dict[str, Outcome] = {"x": "passed", **({"a": now} if now else {})}
        judged = change({"x": "passed", "a": was}, after_it)
        assert not judged.verdict.green
        assert judged.verdict.reason == "1 lost test (gone, renamed, skipped or allowed to fail): a"

    def test_loses_a_test_that_it_renames(self) -> None:
        judged = change({"a": "failed", "x": "passed"}, {"a2": "passed", "x": "passed"})
        assert judged.compared.lost == ("a",)
        assert not judged.verdict.green

    @pytest.mark.parametrize(
        ("whole", "test"),
        [
            ("tests/test_a.py", "tests/test_a.py::test_x"),
            ("tests", "tests/test_a.py::test_x"),
            ("tests.test_a (unittest.loader._FailedTest.tests.test_a)", "test_x (tests.test_a.Case.test_x)"),
            ("setUpClass (tests.test_a.Case)", "test_x (tests.test_a.Case.test_x)"),
            ("example.com/m/pkg", "example.com/m/pkg.TestX"),
            ("/work/b.test.js", "it works"),
            ('Calc > deep > "before each" hook for "a"', "Calc > deep > a"),
        ],
    )
    def test_fixes_a_file_or_class_that_could_not_be_loaded_when_its_tests_run(self, whole: str, test: str) -> None:
        fixed = change({"x": "passed", whole: "error"}, {"x": "passed", test: "passed"})
        assert (fixed.verdict.green, fixed.compared.fixed) == (True, (whole,))
        deleted = change({"x": "passed", whole: "error"}, {"x": "passed"})
        assert (deleted.verdict.green, deleted.compared.lost) == (False, (whole,))

    def test_is_not_held_responsible_for_flaky_tests(self) -> None:
        base = before({"a": "failed", "x": "passed"}, flaky="a")
        for outcome in ("failed", "error", "passed"):
            judged = judge_change(ran({"a": outcome, "x": "passed"}), base)
            assert judged.verdict.green
            assert judged.compared.fixed == ()
        assert not judge_change(ran({"x": "passed"}), base).verdict.green

    def test_may_skip_what_the_base_skipped_now_and_then_also_after_it_once_ran(self) -> None:
        now_and_then = before({"a": "skipped", "x": "passed"}, flaky="a")
        following = carried(now_and_then, {"a": "passed", "x": "passed"}, runner="pytest")
        assert judge_change(ran({"x": "passed"}), following).verdict.green

    @pytest.mark.parametrize("ended", ["timeout", "memory", "processes", "log"])
    def test_that_hits_a_limit_is_red(self, ended: str) -> None:
        assert not change({"a": "passed"}, {"a": "passed"}, ended=ended).verdict.green

    def test_whose_tests_cannot_be_told_apart_is_red(self) -> None:
        for code in (0, 1):
            judged = change({"a": "passed"}, None, code=code)
            assert not judged.verdict.green
            assert "nothing can be compared" in judged.verdict.reason

    @pytest.mark.parametrize(
        ("now", "code", "reason"),
        [
            ({"a": "passed", "b": "passed"}, 1, "though no test failed"),
            ({"a": "passed", "b": "failed"}, 0, "exited with 0 though 1 test failed"),
            ({"a": "passed", "b": "failed"}, 3, "do not explain"),
            ({"a": "passed", "b": "failed"}, 139, "do not explain"),
        ],
    )
    def test_needs_an_exit_code_that_its_tests_explain(self, now: dict[str, Outcome], code: int, reason: str) -> None:
        judged = change({"a": "passed", "b": "failed"}, now, code=code)
        assert not judged.verdict.green
        assert reason in judged.verdict.reason

    def test_may_have_the_exit_code_that_the_base_had(self) -> None:
        known = before({"a": "passed", "b": "failed"}, codes=frozenset({2}))
        assert judge_change(ran({"a": "passed", "b": "failed"}, code=2), known).verdict.green
        behind = replace(ran({"a": "passed", "b": "failed"}, code=7), behind=True)
        assert judge_change(behind, before({"a": "passed", "b": "failed"})).verdict.green
        assert not judge_change(replace(behind, exit_code=137), before({"b": "failed"})).verdict.green

    def test_may_have_no_tests_only_where_the_project_says_so_and_had_none(self) -> None:
        assert judge_change(ran({}), before({}), untested=True).verdict.green
        assert not judge_change(ran({}), before({})).verdict.green
        assert judge_change(ran({}, code=0), before({})).verdict.reason == "no test ran"
        assert not judge_change(ran({}), before({"a": "passed"}), untested=True).verdict.green
        assert not judge_change(ran({"a": "failed"}), before({}), untested=True).verdict.green

    def test_names_a_few_of_many_and_never_all_of_a_long_name(self) -> None:
        judged = change({}, {f"{n}{'x' * 500}": "failed" for n in range(30)})
        assert judged.verdict.reason.endswith("and 25 more")
        assert len(judged.verdict.reason) < 1_000
        assert next_failures(judged.compared).count("NEW FAILURE") == 30


class TestABase:
    def test_that_is_green_twice_is_usable(self) -> None:
        found = base({"a": "passed"}, {"a": "passed"})
        assert (found.usable, found.green, found.reason) == (True, True, "1 test passed, twice")
        assert found.baseline == Baseline(runner="pytest", tests={"a": "passed"})

    def test_that_is_red_is_usable_when_each_failure_has_a_name(self) -> None:
        found = base({"a": "passed", "b": "failed"}, {"a": "passed", "b": "failed"})
        assert (found.usable, found.green, found.failing) == (True, False, 1)
        assert found.reason == "1 of 2 tests fail before any change: b"
        assert found.baseline is not None
        assert found.baseline.codes == {1}

    def test_whose_runs_disagree_has_flaky_tests(self) -> None:
        found = base({"a": "passed", "b": "passed"}, {"a": "failed", "b": "passed"})
        assert (found.usable, found.green, found.failing) == (True, False, 0)
        assert found.reason == "2 tests passed, twice; 1 flaky: a"
        assert found.baseline is not None
        assert found.baseline.flaky == {"a"}

    def test_that_fails_in_two_ways_is_not_flaky(self) -> None:
        found = base({"a": "failed", "b": "passed"}, {"a": "error", "b": "passed"})
        assert (found.failing, found.baseline and found.baseline.flaky) == (1, frozenset())

    @pytest.mark.parametrize(
        ("ended", "cure"),
        [
            ("timeout", "limits.test_seconds"),
            ("memory", "limits.test_memory_bytes"),
            ("processes", "limits.test_processes"),
            ("log", "limits.test_seconds"),
        ],
    )
    def test_that_hits_a_limit_says_which_to_raise_and_is_not_run_again(self, ended: str, cure: str) -> None:
        run = ran({"a": "passed"}, ended=ended)
        assert not needs_another(run, untested=True)
        assert not judge_base([run]).usable
        assert cure in judge_base([run]).reason

    def test_without_tests_says_what_may_count_instead(self) -> None:
        assert not base({}).usable
        assert 'untested = "syntax"' in base({}).reason
        assert not needs_another(ran({}), untested=False)

    def test_without_tests_is_usable_where_the_project_says_what_counts(self) -> None:
        found = base({}, untested=True)
        assert (found.usable, found.ran, found.baseline) == (True, 0, Baseline(runner="pytest"))

    def test_of_which_nothing_can_be_loaded_is_not_usable_and_names_what(self) -> None:
        found = base({"test_a.py": "error"})
        assert not found.usable
        assert "test_a.py cannot be loaded" in found.reason
        assert base({"test_a.py": "error", "b": "passed"}, {"test_a.py": "error", "b": "passed"}).usable

    def test_that_is_red_and_tells_no_names_is_not_usable_and_says_which_runners_do(self) -> None:
        found = base(ran(None, code=1, runner="other"))
        assert not found.usable
        assert "pytest, unittest, node --test, go test -v, mocha" in found.reason

    def test_that_is_green_and_tells_no_names_is_judged_by_exit_code_and_count(self) -> None:
        counted = Run(report=TestReport(runner="pytest", ran=3), tests=None, ended="exited", exit_code=0)
        found = base(counted, counted)
        assert (found.usable, found.green, found.ran, found.baseline) == (True, True, 3, None)
        other = ran(None, code=0, runner="other")
        assert (base(other, other).usable, base(other, other).ran) == (True, -1)
        assert not base(counted, ran(None, code=1)).usable

    @pytest.mark.parametrize("code", [1, 2])
    def test_of_which_something_beside_the_tests_fails_is_not_usable(self, code: int) -> None:
        assert "something beside the tests" in base(ran({"a": "passed"}, code=code)).reason

    def test_that_hides_its_failures_behind_an_exit_code_of_zero_is_not_usable(self) -> None:
        assert not base(ran({"a": "failed"}, code=0)).usable


@given(BASES, TESTS)
def test_every_failure_is_either_new_or_known_and_none_is_lost(was: Baseline, now: dict[str, Outcome]) -> None:
    found = compare(was, now)
    bad = {name for name, outcome in now.items() if is_bad(outcome)}
    assert set(found.new) | set(found.known) == bad
    assert not set(found.new) & set(found.known)
    assert not set(found.lost) & (bad | set(found.fixed))
    assert not {*found.new, *found.fixed} & was.flaky


@given(TESTS)
def test_nothing_changes_beside_oneself(tests: dict[str, Outcome]) -> None:
    found = compare(before(tests), tests)
    assert (found.new, found.lost, found.fixed) == ((), (), ())


@given(BASES, TESTS)
def test_green_means_that_each_test_is_at_least_as_good(was: Baseline, now: dict[str, Outcome]) -> None:
    if not judge_change(ran(now), was).verdict.green:
        return
    for name, outcome in was.tests.items():
        if name in was.flaky:
            continue
        if outcome == "passed":
            assert now[name] == "passed"
        if is_bad(outcome):
            assert now[name] == "passed" or is_bad(now[name])
    assert not any(is_bad(now[name]) for name in now if not is_bad(was.tests.get(name, "passed")) | (name in was.flaky))


@given(BASES, TESTS)
def test_what_is_green_once_is_green_beside_its_own_baseline(was: Baseline, now: dict[str, Outcome]) -> None:
    judged = judge_change(ran(now), was)
    following = carried(was, now, runner="pytest")
    assert following.flaky == was.flaky
    if judged.verdict.green:
        assert judge_change(ran(now), following).verdict.green


@given(TESTS, TESTS)
def test_a_base_that_was_measured_blames_neither_of_its_runs(
    first: dict[str, Outcome], second: dict[str, Outcome]
) -> None:
    measure = measured((first, second), runner="pytest", codes=())
    for run in (first, second):
        found = compare(measure, run)
        assert (found.new, found.lost, found.fixed) == ((), (), ())


@given(BASES, st.frozensets(st.integers(1, 255), max_size=3))
def test_a_baseline_is_the_same_after_it_was_kept(was: Baseline, codes: frozenset[int]) -> None:
    kept = replace(was, codes=codes)
    assert baseline_of(document(kept)) == kept
    with pytest.raises((KeyError, TypeError)):
        baseline_of({"tests": []})
