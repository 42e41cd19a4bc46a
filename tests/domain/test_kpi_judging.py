"""The verdict on a release: what acts at once, what is compared, and what is never a pass."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from domain.kpi.judging import FAIL, GOING_ON, INCONCLUSIVE, NO_DATA, PASS, judge, level_at
from domain.kpi.policy import WatchPolicy
from domain.kpi.window import Window
from tests.domain.kpi_windows import POLICY, arm, drawn, lasting, looked_at, watch, window


class TestWhatMustHold:
    def test_five_times_the_errors_are_found_when_the_second_full_window_closes(self) -> None:
        verdicts = [looked_at(drawn(seed, candidate=0.05, baseline=0.01, windows=2)) for seed in range(100)]
        assert sum(verdict.kind == FAIL for verdict in verdicts) >= 97

    @pytest.mark.parametrize("chance", [0.0, 0.01, 0.05])
    def test_equal_services_are_never_called_worse_in_four_hundred_whole_watches(self, chance: float) -> None:
        verdicts = [looked_at(drawn(seed, candidate=chance, baseline=chance)) for seed in range(400)]
        assert [verdict for verdict in verdicts if verdict.kind != PASS] == []

    def test_a_release_that_mends_errors_is_not_held_up(self) -> None:
        verdicts = [looked_at(drawn(seed, candidate=0.01, baseline=0.05)) for seed in range(20)]
        assert {verdict.kind for verdict in verdicts} == {PASS}


class TestGuardRails:
    def test_a_health_check_that_is_down_fails_in_the_first_window(self) -> None:
        verdict = judge(watch(arm(healthy=False)), POLICY)
        assert (verdict.kind, verdict.by) == (FAIL, "health")
        assert "window 1" in verdict.reason

    def test_a_baseline_that_is_down_does_not_fail_the_candidate(self) -> None:
        assert judge(watch(arm(), baseline=arm(healthy=False)), POLICY).kind == GOING_ON

    def test_too_many_errors_fail_after_as_many_windows_as_the_policy_says(self) -> None:
        bad, policy = arm(150), replace(POLICY, guard_windows=3, min_asked=10_000, level=1e-300)
        few = replace(policy, min_asked=100)
        assert judge(watch(bad, bad, first=True), few).kind == GOING_ON
        verdict = judge(watch(bad, bad, bad, first=True), few)
        assert (verdict.kind, verdict.by) == (FAIL, "errors")
        assert "450 of 1800 (25.0%)" in verdict.reason
        assert judge(watch(bad, bad, bad, first=True), policy).kind == GOING_ON

    def test_a_good_window_between_bad_ones_begins_anew(self) -> None:
        bad = arm(150)
        assert judge(watch(bad, arm(), bad, first=True), POLICY).kind == GOING_ON
        assert judge(watch(bad, arm(), bad, bad, first=True), POLICY).by == "errors"

    def test_a_window_that_nobody_could_measure_does_not(self) -> None:
        bad, blind = arm(150), arm(asked=0, unmeasured=600)
        assert judge(watch(bad, blind, bad, first=True), POLICY).by == "errors"

    def test_a_slow_release_fails_against_its_baseline(self) -> None:
        verdict = judge(watch(arm(p95=90), arm(p95=400), arm(p95=410), baseline=arm(p95=100)), POLICY)
        assert (verdict.kind, verdict.by) == (FAIL, "slowdown")
        assert "410 ms" in verdict.reason
        assert "100 ms" in verdict.reason

    @pytest.mark.parametrize(("mine", "theirs"), [(40.0, 2.0), (290.0, 100.0), (5_000.0, 0.0)])
    def test_a_little_slower_is_no_breach(self, mine: float, theirs: float) -> None:
        """Many times nothing is still little; nothing at all to compare with is no comparison."""
        assert judge(lasting(arm(p95=mine), baseline=arm(p95=theirs), windows=5), POLICY).kind == GOING_ON

    def test_one_slow_window_is_no_breach(self) -> None:
        assert judge(watch(arm(p95=900), arm(), arm(p95=900)), POLICY).kind == GOING_ON

    def test_a_breach_in_the_last_window_alone_is_no_pass_either(self) -> None:
        verdict = judge(watch(*[arm()] * 9, arm(p95=900)), POLICY)
        assert verdict.kind == INCONCLUSIVE
        assert "the last window, 10" in verdict.reason


class TestTheComparison:
    def test_says_the_figures_and_the_chance(self) -> None:
        verdict = judge(watch(arm(30), arm(30), baseline=arm(6)), POLICY)
        assert (verdict.kind, verdict.by) == (FAIL, "comparison")
        assert verdict.chance < 1e-6
        assert "60 of 1200 (5.0%) failed against the baseline's 12 of 1200 (1.0%)" in verdict.reason

    def test_waits_for_the_least_number_of_requests(self) -> None:
        few, policy = arm(40, asked=50), replace(POLICY, max_errors=1.0)
        assert judge(watch(few, baseline=arm(asked=50)), policy).kind == GOING_ON
        assert judge(watch(few, few, baseline=arm(asked=50)), policy).by == "comparison"
        assert judge(watch(arm(80, asked=200), baseline=arm(asked=99)), policy).kind == GOING_ON

    def test_a_single_bad_answer_is_no_verdict(self) -> None:
        assert judge(watch(arm(1, asked=1), baseline=arm(asked=1)), POLICY).kind == GOING_ON

    def test_there_is_none_without_a_baseline(self) -> None:
        verdict = judge(lasting(arm(90), first=True), POLICY)
        assert (verdict.kind, verdict.chance) == (PASS, 1.0)
        assert "no baseline" in verdict.reason

    def test_a_watch_that_waits_for_a_person_does_not_find_by_looking_often(self) -> None:
        planned = POLICY.windows + POLICY.extensions
        assert level_at(1, POLICY) == level_at(planned, POLICY) == POLICY.level
        assert sum(level_at(look, POLICY) for look in range(planned + 1, 100_000)) < POLICY.level


class TestTheEnd:
    def test_a_good_release_passes_with_the_last_window_and_not_before(self) -> None:
        assert judge(lasting(arm(), windows=9), POLICY).kind == GOING_ON
        assert judge(lasting(arm(), windows=10), POLICY).kind == PASS

    def test_no_traffic_is_no_data(self) -> None:
        assert judge(lasting(arm(asked=0), baseline=arm(asked=0)), POLICY).kind == NO_DATA
        assert judge(lasting(arm(asked=0), first=True), POLICY).kind == NO_DATA

    def test_a_wrong_path_is_no_data(self) -> None:
        verdict = judge(lasting(arm(600), baseline=arm(600)), POLICY)
        assert verdict.kind == NO_DATA
        assert "what is asked is probably wrong" in verdict.reason
        assert "status 6000" in verdict.reason

    def test_a_wrong_path_of_a_first_release_is_no_pass(self) -> None:
        assert looked_at(iter(lasting(arm(600), first=True))).kind == FAIL

    def test_a_baseline_that_fails_as_much_leaves_it_open(self) -> None:
        assert judge(lasting(arm(240), baseline=arm(240)), POLICY).kind == INCONCLUSIVE

    def test_a_baseline_that_fails_does_not_hide_a_candidate_that_is_worse(self) -> None:
        assert judge(watch(arm(540), baseline=arm(180)), POLICY).by == "comparison"

    def test_failing_to_measure_is_not_a_failing_service(self) -> None:
        blind = arm(asked=0, unmeasured=600)
        assert judge(lasting(blind, baseline=blind), POLICY).kind == NO_DATA
        assert judge(lasting(arm(5, asked=200, unmeasured=400)), POLICY).kind == NO_DATA

    def test_a_baseline_that_could_not_be_measured_is_no_baseline_that_is_good(self) -> None:
        assert judge(lasting(arm(), baseline=arm(asked=0, unmeasured=600)), POLICY).kind == NO_DATA

    @pytest.mark.parametrize(("blind", "kind"), [(2, PASS), (3, INCONCLUSIVE), (5, INCONCLUSIVE), (6, NO_DATA)])
    def test_a_pass_needs_most_of_the_windows(self, blind: int, kind: str) -> None:
        assert judge(watch(*[arm(asked=0, unmeasured=600)] * blind, *[arm()] * (10 - blind)), POLICY).kind == kind

    def test_a_pass_needs_the_last_window(self) -> None:
        assert judge(watch(*[arm()] * 9, arm(asked=0, unmeasured=600)), POLICY).kind == INCONCLUSIVE

    def test_too_few_requests_over_the_whole_watch_leave_it_open(self) -> None:
        assert judge(lasting(arm(asked=5), baseline=arm(asked=5)), POLICY).kind == INCONCLUSIVE

    def test_a_first_release_is_judged_by_its_own_share(self) -> None:
        flapping = [arm(200), arm(100)] * 5
        verdict = judge(watch(*flapping, first=True), POLICY)
        assert (verdict.kind, verdict.by) == (FAIL, "share")
        assert judge(watch(*[arm(130), arm(100)] * 5, first=True), POLICY).kind == PASS

    def test_numbers_that_were_skipped_count_as_time_that_passed(self) -> None:
        late = [*lasting(arm(), windows=3), window(10)]
        assert judge(late, POLICY).kind == NO_DATA

    def test_an_extended_watch_may_still_pass(self) -> None:
        blind = [arm(asked=0, unmeasured=600)] * 4
        extended = watch(*blind, *[arm()] * 8)
        assert judge(extended[:10], POLICY).kind == INCONCLUSIVE
        assert judge(extended, POLICY).kind == PASS

    def test_a_very_long_watch_slides_over_its_last_windows(self) -> None:
        policy = WatchPolicy(seconds=30.0 * 2_000)
        last = [window(number) for number in range(1_601, 2_001)]
        assert judge(last, policy).kind == PASS


EVERY: dict[str, list[Window]] = {
    "nothing": [],
    "health": watch(arm(healthy=False)),
    "errors": lasting(arm(200), windows=2),
    "slow": lasting(arm(p95=900), windows=2),
    "worse": watch(arm(40), arm(40)),
    "going on": watch(arm()),
    "pass": lasting(arm()),
    "pass first": lasting(arm(), first=True),
    "no traffic": lasting(arm(asked=0)),
    "wrong path": lasting(arm(600), baseline=arm(600)),
    "both fail": lasting(arm(240), baseline=arm(240)),
    "few": lasting(arm(asked=5), baseline=arm(asked=5)),
}


@pytest.mark.parametrize("windows", EVERY.values(), ids=EVERY.keys())
def test_every_reason_names_figures(windows: list[Window]) -> None:
    verdict = judge(windows, POLICY)
    assert re.search(r"\d", verdict.reason)
    assert len(verdict.reason) < 300
    assert "\n" not in verdict.reason
