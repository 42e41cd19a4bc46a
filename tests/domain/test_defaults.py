"""What holds where a project says nothing: the README and the documents name these figures."""

from __future__ import annotations

from domain.build.project import Consent, Limits
from domain.kpi.policy import WatchPolicy
from domain.money.budget import Budget
from domain.risk.matrix import LEAST_CONFIDENCE, MOST_RISK

DAY = 86_400


def test_how_long_a_person_has() -> None:
    consent = Consent()
    assert (consent.question_seconds, consent.approval_seconds) == (DAY, 3 * DAY)
    assert consent.approve == ("change",)
    assert consent.land == "branch"


def test_how_often_a_task_is_tried_and_sent_back() -> None:
    assert (Limits().attempts, Limits().sent_back, Limits().needs_rounds) == (3, 2, 3)


def test_what_a_watch_looks_at() -> None:
    watch = WatchPolicy()
    assert (watch.rate, watch.seconds, watch.window) == (20, 300, 30)


def test_what_may_be_spent() -> None:
    budget = Budget()
    assert (budget.task, budget.build, budget.day) == (2_000_000, 10_000_000, 50_000_000)
    assert (budget.project, budget.user, budget.calls) == (None, None, 40)


def test_when_a_person_is_asked_whatever_the_project_says() -> None:
    assert (MOST_RISK, LEAST_CONFIDENCE) == (0.7, 0.6)
