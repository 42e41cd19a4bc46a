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
from tests.domain.trace_stories import ASK
from tests.domain.trace_stories import GREEN as GATES

FAULT = {"kind": "RateLimited", "sentence": "later", "source": "coder", "number": 1}


def event(kind: str, /, *, task: str = "", attempt: int = 0, **data: Any) -> Event:
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
        (event("task.ended", task="api", status="green", commit="c" * 40), f"  api: committed as {'c' * 12}"),
        (event("task.merged", task="api", commit="d" * 40, ran=3), f"  api: merged as {'d' * 12}"),
        (
            event("merge.tried", task="api", onto="c", commit="", conflicts=["a.py", "b\x1b[2J.py"]),
            "  api: conflicts when merged: a.py, b [2J.py",
        ),
        (event("merge.tried", task="api", onto="c", commit="m", conflicts=[]), None),
        (
            event("task.sent_back", task="api", why="conflict", times=2, sentence="a.py"),
            "  api: sent back (conflict, 2.): a.py",
        ),
        (event("task.blocked", task="api", by="store"), "  api: cannot be done without store"),
        (
            event("task.waits", task="api", holder="store", files=["a", "b"]),
            "  api: waits until store has written a, b",
        ),
        (event("gates.ran", task="api", label="merge", **GATES), "  api: merge: green: 4 tests passed (0.5 s)"),
        (event("gates.ran", task="api", attempt=2, **GATES), "  api #2: green: 4 tests passed (0.5 s)"),
        (
            event("review.ended", model="coder", weak=True, high=1, medium=0, low=2),
            "reviewed by coder, by the model that wrote it: 1 high, 0 medium, 2 low",
        ),
        (event("ask.opened", **ASK), "waits for an answer: 2 tasks, tests green (q1, digest 0123456789ab)"),
        (event("ask.closed", id="q1", about="change", choice="expired", by="", reason=""), "q1 is expired"),
        (
            event("ask.closed", id="q1", about="change", choice="reject", by="ann", reason="too long"),
            "q1 is answered: reject by ann: too long",
        ),
        (
            event("answer.refused", choice="approve", by="", reason="stale", ask="q1"),
            "refused: approve by somebody: stale",
        ),
        (
            event("limits.raised", by="ann", task_budget=0.0, build_budget=3.5, attempts=5),
            "limits are raised by ann: build_budget 3.5, attempts 5",
        ),
        (
            event("target.forwarded", old="a" * 40, new="b" * 40),
            f"the target branch is forwarded from {'a' * 12} to {'b' * 12}",
        ),
        (event("money.warned", sentence="80 % of the build's limit"), "80 % of the build's limit"),
        (
            event("build.ended", status="failed", sentence="why", missing=[{"task": "api", "why": "skipped"}]),
            "failed: why; missing: api (skipped)",
        ),
        (
            event("build.ended", status="partial", sentence="without api", missing=[{"task": "api", "why": "skipped"}]),
            "partial: without api",
        ),
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
        ("partial", "", 6),
        ("escalated", "Escalated", 8),
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
