"""What a person reads of a build, and the code that a script gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.cli.exits import exit_code
from adapters.cli.lines import line_of, plain
from domain import errors
from domain.ports.store import Event

FAULT = {"kind": "RateLimited", "sentence": "later", "source": "coder", "number": 1}


def event(kind: str, *, task: str = "", attempt: int = 0, **data: Any) -> Event:
    return Event(first_run="r", run="r", sequence=1, build="b", kind=kind, at=1, task=task, attempt=attempt, data=data)


def answered(**changes: Any) -> Event:
    usage = {"input_tokens": 10, "output_tokens": 5, "cost_micros": 1_500_000}
    data = {"model": "coder", "usage": usage, "faults": [], "problems": [], **changes}
    return event("call.answered", task="api", attempt=2, **data)


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        (event("build.phase", phase="plan"), "planning"),
        (event("build.phase", phase="tasks"), None),
        (event("build.planned", tasks=[{"id": "a"}, {"id": "b"}]), "2 tasks: a, b"),
        (answered(), "  api #2: coder answered (10 + 5 tokens, $1.5000)"),
        (answered(faults=[FAULT]), "  api #2: coder answered (10 + 5 tokens, $1.5000), after RateLimited (later)"),
        (answered(problems=["cut"]), "  api #2: coder answered (10 + 5 tokens, $1.5000); it does not fit: cut"),
        (
            answered(usage={"input_tokens": 1, "output_tokens": 1, "cost_micros": None}),
            "  api #2: coder answered (1 + 1 tokens, unknown cost)",
        ),
        (event("task.ended", task="api", status="failed", sentence="no"), "  api: failed: no"),
        (event("something.new"), None),
    ],
)
def test_an_event_is_one_line_or_none(fact: Event, line: str | None) -> None:
    assert line_of(fact) == line


@given(st.text())
def test_no_text_of_a_model_moves_the_cursor_or_turns_the_line(text: str) -> None:
    line = line_of(event("change.refused", task="api", attempt=1, reason=text))
    assert line is not None
    assert line.isprintable()
    assert plain(plain(text)) == plain(text)


@pytest.mark.parametrize(
    ("status", "fault", "code"),
    [
        ("succeeded", "", 0),
        ("aborted", "Cancelled", 3),
        ("failed", "UnknownName", 2),
        ("failed", "BranchTaken", 3),
        ("failed", "AlreadyRunning", 3),
        ("failed", "AttemptsExhausted", 5),
        ("failed", "ModelsExhausted", 5),
        ("failed", "EventConflict", 1),
        ("failed", "ValueError", 1),
        ("failed", "WorkerLost", 1),
    ],
)
def test_a_script_is_told_who_can_act(status: str, fault: str, code: int) -> None:
    assert exit_code(status, fault) == code


def test_every_defect_is_our_own_failure() -> None:
    defects = [name for name, kind in vars(errors).items() if isinstance(kind, type) and kind.__base__ is errors.Defect]
    assert {exit_code("failed", name) for name in defects} == {1}
