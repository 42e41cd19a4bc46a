"""The read model of one build is the same for any order of arrival and any number of repeats."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.build.details import DetailsFold, fold_details
from domain.ports.store import Event
from tests.domain import trace_stories


def event(sequence: int, kind: str, *, task: str = "", attempt: int = 0, **data: Any) -> Event:
    run = f"run-{task}"
    return Event(
        first_run=run,
        run=run,
        sequence=sequence,
        build="b",
        kind=kind,
        at=1000 + sequence,
        task=task,
        attempt=attempt,
        data=data,
    )


FAULT = {"kind": "RateLimited", "sentence": "later", "source": "coder", "number": 1}
ANSWER: dict[str, Any] = {"model": "coder", "prompt": "p", "answer": "a", "problems": [], "faults": [FAULT]}
STORY = [
    event(1, "build.started", project="p", title="Tags"),
    event(2, "build.base", commit="c0", log="l0"),
    event(3, "build.planned", plan="d", tasks=[{"id": "api", "title": "The API"}]),
    event(4, "task.started", task="api"),
    event(5, "call.answered", task="api", attempt=1, **ANSWER),
    event(6, "change.applied", task="api", attempt=1, commit="c1", diff="d1"),
    event(7, "gates.ran", task="api", attempt=1, green=False, reason="1 failed", ran=4, log="l1", report="r1"),
    event(8, "change.refused", task="api", attempt=2, reason="no such file"),
    event(9, "change.applied", task="api", attempt=3, commit="c3", diff="d3"),
    event(10, "gates.ran", task="api", attempt=3, green=True, reason="5 passed", ran=5, log="l3", report=""),
    event(11, "task.ended", task="api", status="succeeded", commit="c3"),
    event(12, "build.ended", status="succeeded", sentence="done", branch="mendwork/b", commit="c3", diff="dd"),
]


def test_a_build_shows_its_attempts_faults_and_result() -> None:
    details = fold_details("b", STORY)
    assert (details.project, details.status, details.branch, details.diff) == ("p", "succeeded", "mendwork/b", "dd")
    task = details.tasks["api"]
    assert (task.title, task.status, task.commit) == ("The API", "succeeded", "c3")
    assert [attempt.phase for attempt in task.attempts] == ["red", "refused", "green"]
    assert task.attempts[0].faults == [FAULT]
    assert task.attempts[1].reason == "no such file"


def test_an_answer_that_did_not_fit_counts_as_a_fault() -> None:
    unfit = event(5, "call.answered", **{**ANSWER, "problems": ["it is cut off"], "faults": []})
    assert fold_details("b", [*STORY[:1], unfit]).faults[0]["kind"] == "UnusableAnswer"


def test_a_merge_its_tests_and_what_came_of_it_are_the_tasks_not_an_attempts() -> None:
    task = fold_details("b", trace_stories.whole()).tasks["store"]
    assert (task.status, task.commit, task.sent_back, task.why) == ("merged", "m2", 1, "")
    assert (task.merge.onto, task.merge.green, task.merge.conflicts) == ("m1", True, [])
    assert [(attempt.phase, attempt.reason) for attempt in task.attempts] == [("green", "4 tests passed")] * 2


def test_the_tests_of_the_landing_are_the_builds() -> None:
    details = fold_details("b", trace_stories.whole())
    assert (details.landing.green, details.target, details.user) == (True, "m2", "ann")
    assert [call.phase for call in details.calls] == ["plan", "review"]
    assert details.reviews[0]["medium"] == 1


def test_a_newer_plan_replaces_what_it_does_not_name_and_begins_the_rest_anew() -> None:
    root = trace_stories.Saga("run-1", sequence=99)
    tasks = [{"id": "api", "title": "Again", "depends_on": ["docs"]}, {"id": "docs", "title": "Docs"}]
    details = fold_details("b", [*trace_stories.whole()[:-1], root.note(9999, "build.planned", plan="p2", tasks=tasks)])
    assert {name: task.status for name, task in details.tasks.items()} == {
        "api": "waiting",
        "store": "replaced",
        "docs": "waiting",
    }
    assert (details.tasks["api"].title, details.tasks["api"].depends_on) == ("Again", ("docs",))
    assert len(details.tasks["api"].attempts) == 2


def test_attempts_that_an_earlier_saga_used_up_without_a_word_are_lost() -> None:
    again = trace_stories.Saga("r", task="api").note(1, "attempt.started", attempt=3)
    assert [a.phase for a in fold_details("b", [again]).tasks["api"].attempts] == ["lost", "lost", "starting"]


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (["started"], "running"),
        (["started", "green"], "written"),
        (["started", "stuck"], "stuck"),
        (["started", "green", "sent_back"], "waiting"),
        (["started", "green", "sent_back", "started"], "running"),
        (["started", "green", "merged"], "merged"),
        (["started", "stuck", "skipped"], "skipped"),
        (["blocked"], "blocked"),
        (["started", "aborted"], "aborted"),
    ],
)
def test_a_task_stands_where_its_last_fact_left_it(facts: list[str], status: str) -> None:
    known: dict[str, tuple[str, dict[str, Any]]] = {
        "started": ("task.started", {"base": "c"}),
        "green": ("task.ended", {"status": "green", "commit": "c"}),
        "aborted": ("task.ended", {"status": "aborted", "sentence": "it was cancelled"}),
        "stuck": ("task.stuck", {"fault": "AttemptsExhausted", "sentence": "red"}),
        "sent_back": ("task.sent_back", {"why": "red", "times": 1, "sentence": "red", "report": "r"}),
        "merged": ("task.merged", {"commit": "m", "ran": 1}),
        "skipped": ("task.skipped", {"sentence": "ann: no"}),
        "blocked": ("task.blocked", {"by": "store"}),
    }
    saga = trace_stories.Saga("r")
    story = [saga.note(n, known[fact][0], task="api", **known[fact][1]) for n, fact in enumerate(facts, 1)]
    assert fold_details("b", story).tasks["api"].status == status


def test_a_log_of_thousands_is_folded_as_it_comes_without_growing_slower() -> None:
    """Counted, not timed: each event is applied once, not once for every one that follows."""
    root, tasks = trace_stories.Saga("r"), [f"t{n}" for n in range(300)]
    story = [root.note(1, "build.started", project="p", title="t")]
    for n, task in enumerate(tasks):
        story += trace_stories.attempt(trace_stories.Saga(f"s{n}", task=task), 1000 * n + 10, 1)
    fold, applied = Counting("b"), 0
    for event in story:
        fold.add([event])
        applied += 1
    assert fold.applied == applied == len(story)


class Counting(DetailsFold):
    """Counts how often an event is applied."""

    applied = 0

    def _apply(self, event: Event, *, counts: bool) -> None:
        self.applied += 1
        super()._apply(event, counts=counts)


@given(st.permutations(STORY), st.lists(st.sampled_from(STORY)))
def test_order_and_repeats_change_nothing(story: list[Event], repeats: list[Event]) -> None:
    assert asdict(fold_details("b", [*story, *repeats])) == asdict(fold_details("b", STORY))
