"""The exact test against the integers, and what holds of a verdict for any windows."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.kpi.exact import more_failures
from domain.kpi.judging import FAIL, PASS, Verdict, judge
from domain.kpi.policy import ASK, EXTEND, ROLL_BACK, WatchPolicy
from domain.kpi.watching import PROMOTE, SERIES, Watching, chart_of, point_of, unmeasured, what_next
from domain.kpi.window import Arm, Window
from tests.domain.kpi_windows import POLICY, arm, lasting, window

POLICIES = st.builds(
    WatchPolicy,
    seconds=st.sampled_from([30.0, 90.0, 300.0]),
    max_errors=st.sampled_from([0.05, 0.2, 1.0]),
    guard_windows=st.integers(1, 3),
    level=st.sampled_from([0.0001, 0.05]),
    min_asked=st.sampled_from([1, 50, 100]),
)


@st.composite
def arms(draw: st.DrawFn) -> Arm:
    asked = draw(st.integers(0, 200))
    failed = draw(st.integers(0, asked))
    kinds = draw(st.permutations(["status", "content", "timeout"]))
    faults = dict.fromkeys(kinds, failed // 3)
    faults[kinds[0]] += failed - sum(faults.values())
    return Arm(
        asked=asked,
        failed=failed,
        unmeasured=draw(st.integers(0, 200)),
        p50=10.0,
        p95=draw(st.sampled_from([0.0, 20.0, 200.0])),
        faults=faults,
        healthy=draw(st.sampled_from([True, True, True, False])),
    )


@st.composite
def watches(draw: st.DrawFn) -> list[Window]:
    first = draw(st.booleans())
    count = draw(st.integers(1, 12))
    return [
        Window(number=n, seconds=30.0, candidate=draw(arms()), baseline=None if first else draw(arms()))
        for n in range(1, count + 1)
    ]


def fisher(failed: int, asked: int, other_failed: int, other_asked: int) -> float:
    """By integers alone, to the last digit."""
    both, failures = asked + other_asked, failed + other_failed
    ways = sum(comb(asked, x) * comb(other_asked, failures - x) for x in range(failed, min(asked, failures) + 1))
    return ways / comb(both, failures)


@given(st.integers(1, 300), st.integers(1, 300), st.data())
def test_the_test_is_exact(asked: int, other_asked: int, data: st.DataObject) -> None:
    failed, other = data.draw(st.integers(0, asked)), data.draw(st.integers(0, other_asked))
    exact = fisher(failed, asked, other, other_asked)
    assert more_failures(failed, asked, than=(other, other_asked)) == pytest.approx(exact, rel=1e-9)


def test_the_test_knows_the_lady_who_tasted_tea() -> None:
    """Fisher's own figures: three of four cups right by chance in 17 of 70 ways."""
    assert more_failures(3, 4, than=(1, 4)) == pytest.approx(17 / 70)


def test_the_test_stands_large_counts() -> None:
    assert 0.0 <= more_failures(6_000, 120_000, than=(1_200, 120_000)) < 1e-300
    assert more_failures(1_200, 120_000, than=(1_200, 120_000)) == pytest.approx(0.5, abs=0.02)


@given(watches(), POLICIES, st.data())
def test_more_failures_never_make_a_verdict_better(
    windows: list[Window], policy: WatchPolicy, data: st.DataObject
) -> None:
    worse = []
    for each in windows:
        more = data.draw(st.integers(each.candidate.failed, each.candidate.asked))
        worse.append(replace(each, candidate=replace(each.candidate, failed=more)))
    before, after = judge(windows, policy).kind, judge(worse, policy).kind
    assert not (before == FAIL and after != FAIL)
    assert not (before != PASS and after == PASS)


@given(watches(), POLICIES, st.data())
def test_a_worse_baseline_never_makes_a_candidate_fail(
    windows: list[Window], policy: WatchPolicy, data: st.DataObject
) -> None:
    changed = []
    for each in windows:
        theirs = each.baseline
        if theirs is not None:
            theirs = replace(theirs, failed=data.draw(st.integers(theirs.failed, theirs.asked)))
        changed.append(replace(each, baseline=theirs))
    if judge(windows, policy).kind != FAIL:
        assert judge(changed, policy).kind != FAIL


@given(watches(), POLICIES)
def test_the_order_of_keys_and_a_second_look_change_nothing(windows: list[Window], policy: WatchPolicy) -> None:
    turned = [
        replace(each, candidate=replace(each.candidate, faults=dict(reversed(list(each.candidate.faults.items())))))
        for each in windows
    ]
    for end in range(len(windows) + 1):
        verdict = judge(windows[:end], policy)
        assert verdict == judge(windows[:end], policy) == judge(turned[:end], policy)
        assert any(character.isdigit() for character in verdict.reason)


@given(watches(), POLICIES)
def test_what_was_not_asked_is_never_a_pass(windows: list[Window], policy: WatchPolicy) -> None:
    silent = [replace(each, candidate=replace(each.candidate, asked=0, failed=0)) for each in windows]
    assert judge(silent, policy).kind != PASS


class TestWhatFollows:
    """From a verdict and the project's policy."""

    @pytest.mark.parametrize(
        ("kind", "number", "what"),
        [
            ("going on", 3, ""),
            ("pass", 9, ""),
            ("pass", 10, PROMOTE),
            ("fail", 1, ROLL_BACK),
            ("inconclusive", 10, ASK),
            ("no data", 10, ROLL_BACK),
            ("no data", 9, ""),
        ],
    )
    def test_by_default(self, kind: str, number: int, what: str) -> None:
        assert what_next(Verdict(kind=kind, reason="0"), POLICY, number=number, until=10) == what

    def test_a_watch_is_extended_so_often_and_then_a_person_is_asked(self) -> None:
        policy, open_verdict = replace(POLICY, on_inconclusive=EXTEND), Verdict(kind="inconclusive", reason="0")
        follows = [what_next(open_verdict, policy, number=number, until=10) for number in range(9, 16)]
        assert follows == ["", EXTEND, EXTEND, EXTEND, EXTEND, ASK, ASK]

    def test_what_the_policy_cannot_mean_asks(self) -> None:
        policy = replace(POLICY, on_no_data="promote")
        assert what_next(Verdict(kind="no data", reason="0"), policy, number=10, until=10) == ASK

    def test_blind_windows_are_no_data_with_and_without_a_baseline(self) -> None:
        for baseline in (True, False):
            blind = [unmeasured(number, POLICY, baseline=baseline) for number in range(1, 11)]
            assert judge(blind, POLICY).kind == "no data"

    def test_a_watch_keeps_what_is_shown_and_what_is_judged(self) -> None:
        watching = Watching()
        for number in range(1, 1_001):
            watching.add(window(number, arm(number % 7)), Verdict(kind="going on", reason="0"))
        assert len(watching.points) == SERIES
        assert watching.points[-1].number == watching.number == 1_000
        assert len(watching.windows) == 400

    def test_the_first_end_counts(self) -> None:
        watching = Watching()
        watching.end("fail", "5 of 10")
        watching.end("pass", "0 of 10", by="ada")
        assert (watching.outcome.kind, watching.outcome.by) == ("fail", "")

    def test_the_table_shows_the_last_windows_of_both(self) -> None:
        points = tuple(point_of(each, "going on") for each in lasting(arm(30), baseline=arm(6), windows=12))
        table = chart_of(points, Verdict(kind="fail", reason="5 of 10"))
        assert table.startswith("**fail**: 5 of 10\n\n| window |")
        assert "| 12 | 30 of 600 | 6 of 600 | 20 | 20 | going on |" in table
        assert "| 2 |" not in table
