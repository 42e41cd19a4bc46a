"""Green needs an orderly end, an exit code of zero, tests that ran, and not fewer than before."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.gates.report import Runner, TestReport
from domain.gates.verdict import Verdict, read_report, verdict
from tests.domain import runners

RUNNERS = st.sampled_from(["pytest", "unittest", "node"])
ENDS = st.sampled_from(["exited", "timeout", "memory", "processes", "log"])
COUNTS = st.none() | st.integers(0, 50)


def judge(ran: int | None, *, base: int | None = None, ended: str = "exited", exit_code: int = 0) -> Verdict:
    return verdict(TestReport(runner="pytest", ran=ran), base_ran=base, ended=ended, exit_code=exit_code)


def test_tests_that_ran_and_passed_are_green() -> None:
    assert judge(3, base=3) == Verdict(green=True, reason="3 tests passed")
    assert judge(1) == Verdict(green=True, reason="1 test passed")


def test_fewer_tests_than_the_base_had_are_red() -> None:
    assert judge(2, base=3) == Verdict(green=False, reason="only 2 tests ran; before the change it was 3")


def test_a_run_without_a_test_is_red() -> None:
    assert judge(0, base=0) == Verdict(green=False, reason="no test ran")
    assert judge(0, exit_code=5) == Verdict(green=False, reason="no test ran (exit code 5)")


def test_a_run_that_does_not_say_what_ran_is_red() -> None:
    assert not judge(None).green
    assert "no summary" in judge(None).reason


@pytest.mark.parametrize("ended", ["timeout", "memory", "processes", "log", "new"])
def test_a_run_that_hit_a_limit_is_red_and_says_which(ended: str) -> None:
    found = judge(3, ended=ended)
    assert not found.green
    assert found.reason != judge(3, ended="other").reason


def test_a_base_that_could_not_be_counted_asks_nothing() -> None:
    assert judge(1, base=-1).green


def test_another_runner_is_judged_by_its_exit_code_and_says_so() -> None:
    report = TestReport(runner="other")
    green = verdict(report, base_ran=4, ended="exited", exit_code=0)
    assert green.green
    assert "cannot be counted" in green.reason
    assert not verdict(report, base_ran=None, ended="exited", exit_code=1).green


def test_the_reason_of_a_red_run_counts_its_failures() -> None:
    report = TestReport(runner="pytest", ran=3, failed=1, errors=2)
    reason = verdict(report, base_ran=3, ended="exited", exit_code=1).reason
    assert reason == "1 of 3 tests failed, 2 could not be run"


@pytest.mark.parametrize(
    ("runner", "text", "reason"),
    [
        ("pytest", "1 failed, 2 passed in 0.1s", "1 of 3 tests failed"),
        ("unittest", "Ran 3 tests in 0.001s\n\nFAILED (failures=1, errors=1)", "2 of 3 tests failed"),
        ("node", runners.NODE_SPEC, "2 of 4 tests failed"),
        ("node", "", "the test command exited with 1"),
        ("other", "", "the test command exited with 1"),
    ],
)
def test_each_runners_failures_make_a_sentence(runner: Runner, text: str, reason: str) -> None:
    assert verdict(read_report(runner, text, 1), base_ran=None, ended="exited", exit_code=1).reason == reason


def test_skipping_a_failing_test_does_not_make_a_run_green(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_a(): pass\ndef test_b(): assert False\n")
    base = runners.run_pytest(tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_a(): pass\n@pytest.mark.skip\ndef test_b(): assert False\n"
    )
    after = runners.run_pytest(tmp_path)
    before = read_report("pytest", base.text, base.exit_code).ran
    found = verdict(
        read_report("pytest", after.text, after.exit_code), base_ran=before, ended="exited", exit_code=after.exit_code
    )
    assert after.exit_code == 0
    assert not found.green


def test_leaving_in_the_middle_of_the_tests_with_zero_is_red(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n")
    output = runners.run_pytest(tmp_path)
    assert output.exit_code == 0
    assert not verdict(read_report("pytest", output.text, 0), base_ran=None, ended="exited", exit_code=0).green


@given(runner=RUNNERS, ran=COUNTS, failed=COUNTS, base=COUNTS, ended=ENDS, exit_code=st.integers(0, 3))
def test_green_is_never_given_away(
    runner: Runner, ran: int | None, failed: int | None, base: int | None, ended: str, exit_code: int
) -> None:
    report = TestReport(runner=runner, ran=ran, failed=failed)
    found = verdict(report, base_ran=base, ended=ended, exit_code=exit_code)
    deserved = ended == "exited" and exit_code == 0 and bool(ran) and (ran or 0) >= (base or 0)
    assert found.green == deserved
    assert found.reason
