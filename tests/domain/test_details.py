"""The read model of one build is the same for any order of arrival and any number of repeats."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.build.details import fold_details
from domain.ports.store import Event


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


@given(st.permutations(STORY), st.lists(st.sampled_from(STORY)))
def test_order_and_repeats_change_nothing(story: list[Event], repeats: list[Event]) -> None:
    assert asdict(fold_details("b", [*story, *repeats])) == asdict(fold_details("b", STORY))
