"""Which answer counts: early, late, twice, for something else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.human.asks import APPROVAL, STUCK, Answer, Ask, decode_answer, decode_saying, how
from domain.human.book import MOST_EARLY, Book
from domain.human.raising import Raised, decode_raised, raised
from domain.money.budget import Budget

A, B = "a" * 64, "b" * 64


def approval(digest: str = A, name: str = "change-1") -> Ask:
    return Ask(id=name, about="change", digest=digest, sentence="s", choices=APPROVAL, opened=0, deadline=10)


def question(name: str = "task-1", task: str = "store") -> Ask:
    return Ask(id=name, about="task", digest=B, sentence="s", choices=STUCK, opened=0, deadline=10, task=task)


def says(choice: str, **more: Any) -> Answer:
    return decode_answer(more, choice=choice) if choice in APPROVAL else decode_answer({"choice": choice, **more})


def test_an_approval_is_bound_to_its_digest() -> None:
    book = Book()
    book.opening(approval())
    assert book.receive(says("approve", digest="b" * 8)).reason.startswith("stale")
    ruling = book.receive(says("approve", digest=A[:8].upper(), by="ann"))
    assert (ruling.outcome, ruling.ask) == ("accepted", "change-1")
    assert book.answers["change-1"].by == "ann"
    assert book.open == {}


def test_what_comes_after_the_decision_is_told_what_was_decided_and_by_whom() -> None:
    book = Book()
    book.opening(approval())
    book.receive(says("approve", digest=A, by="ann"))
    assert book.receive(says("approve", digest=A)).reason == "duplicate: change-1 was answered approve by ann already"
    late = book.receive(says("reject", digest=A, reason="no"))
    assert (late.outcome, late.reason) == ("refused", "already decided: change-1 was answered approve by ann")


def test_an_expired_ask_is_never_taken_for_a_yes() -> None:
    book = Book()
    book.opening(approval())
    book.close("change-1", "expired")
    assert book.receive(says("approve", digest=A)).reason == "expired: change-1 was not answered in time"
    assert book.answers == {}


def test_a_superseded_ask_is_stale() -> None:
    book = Book()
    book.opening(approval())
    book.close("change-1", "superseded")
    book.opening(approval(B, "change-2"))
    assert book.receive(says("approve", digest=A)).reason == "stale: change-1 was replaced by a newer one"


def test_an_early_answer_is_kept_for_exactly_its_digest() -> None:
    book = Book()
    assert book.receive(says("approve", digest=A[:12])).outcome == "early"
    assert "duplicate" in book.receive(says("approve", digest=A[:12])).reason
    assert book.opening(approval(B, "change-1")) is None
    early = book.opening(approval(A, "change-2"))
    assert early is not None
    assert book.answers["change-2"] is early
    assert book.early == []


def test_early_answers_are_bounded() -> None:
    book = Book()
    rulings = [book.receive(says("approve", digest=f"{n:08x}")) for n in range(MOST_EARLY + 1)]
    assert [r.outcome for r in rulings].count("early") == MOST_EARLY
    assert rulings[-1].outcome == "refused"


def test_a_question_goes_by_its_id_or_is_the_only_one() -> None:
    book = Book()
    assert "open: none" in book.receive(says("skip")).reason
    book.opening(question())
    assert book.receive(says("skip")).ask == "task-1"
    book.opening(question("task-2"))
    book.opening(question("task-3", "api"))
    assert book.receive(says("skip")).reason == "name the question that you answer; open: task-2, task-3"
    assert book.receive(says("skip", ask="task-3")).outcome == "accepted"
    assert book.receive(says("retry", ask="task-3")).reason == "already decided: task-3 was answered skip by unknown"


def test_a_question_is_never_answered_by_a_choice_that_it_does_not_have() -> None:
    book = Book()
    book.opening(approval())
    assert "name the question" in book.receive(says("skip")).reason
    refused = book.receive(says("skip", ask="change-1"))
    assert refused.reason == "change-1 can be answered by approve, reject, not by skip"


@pytest.mark.parametrize(
    ("choice", "more", "reason"),
    [("reject", {"digest": A}, "needs a reason"), ("take", {}, "needs a commit")],
)
def test_an_answer_without_what_it_needs_leaves_the_ask_open(choice: str, more: Any, reason: str) -> None:
    book = Book()
    book.opening(approval() if choice == "reject" else question())
    assert reason in book.receive(says(choice, **more)).reason
    assert len(book.open) == 1


@given(st.lists(st.tuples(st.sampled_from(["approve", "reject"]), st.sampled_from([A, B, "c" * 64])), max_size=12))
def test_of_any_answers_in_any_order_exactly_the_first_fitting_one_counts(said: list[tuple[str, str]]) -> None:
    book = Book()
    book.opening(approval())
    rulings = [book.receive(says(choice, digest=digest, reason="r")) for choice, digest in said]
    accepted = [n for n, r in enumerate(rulings) if r.outcome == "accepted"]
    fitting = [n for n, (_, digest) in enumerate(said) if digest == A]
    assert accepted == fitting[:1]
    assert all(r.reason for r in rulings)


@pytest.mark.parametrize(
    "raw",
    [None, [], "yes", 3, {"digest": "1234567"}, {"digest": "xyz" * 4}, {"digest": 5}, {"digest": A, "colour": 1}],
)
def test_a_malformed_approval_is_refused_with_one_sentence(raw: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_answer(raw, choice="approve")
    assert "\n" not in str(caught.value)


def test_names_lose_what_a_terminal_would_obey() -> None:
    answer = decode_answer({"digest": A, "by": "\x1b[31mann\n"}, choice="approve")
    assert answer.by == "[31mann"
    assert decode_saying({}).by == "unknown"


@given(st.dictionaries(st.text(max_size=8), st.one_of(st.none(), st.text(), st.integers(), st.lists(st.integers()))))
def test_decoding_never_raises_anything_but_its_own_error(raw: dict[str, Any]) -> None:
    for decode in (decode_answer, decode_raised, decode_saying):
        with suppress(InvalidInput):
            decode(raw)


def test_limits_only_go_up() -> None:
    budget = Budget(task=2_000_000, build=10_000_000, day=None, calls=40)
    more = raised(budget, Raised(task_budget=3.5, build_budget=1.0, day_budget=5.0, calls=10))
    assert (more.task, more.build, more.day, more.calls) == (3_500_000, 10_000_000, None, 40)


@pytest.mark.parametrize("raw", [{}, {"by": "ann"}, {"calls": -1}, {"task_budget": 1e12}, {"attempts": "3"}])
def test_raising_nothing_or_nonsense_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidInput):
        decode_raised(raw)


def test_every_choice_has_the_command_that_makes_it() -> None:
    assert how("build-x-1", approval())["approve"] == f"mendwork approve build-x-1 {A[:12]}"
    assert set(how("build-x-1", question())) == set(STUCK)
