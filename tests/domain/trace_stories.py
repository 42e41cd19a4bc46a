"""One build's log as the sagas write it: two tasks side by side, a conflict, a finding, an approval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from domain.ports.store import Event

BUILD = "build-calc-1"
GREEN: dict[str, Any] = {
    "green": True,
    "reason": "4 tests passed",
    "ran": 4,
    "log": "l-green",
    "report": "",
    "seconds": 0.5,
}
RED: dict[str, Any] = {
    "green": False,
    "reason": "1 of 4 tests failed",
    "ran": 4,
    "log": "l-red",
    "report": "r-red",
    "seconds": 0.5,
}
FAULT: dict[str, Any] = {"kind": "RateLimited", "sentence": "later", "source": "coder", "number": 1}
ASK: dict[str, Any] = {
    "id": "q1",
    "about": "change",
    "kind": "approval",
    "digest": "0123456789abcdef",
    "sentence": "2 tasks, tests green",
    "choices": ["approve", "reject"],
    "opened": 9000,
    "deadline": 99_000,
}


PLANNED: dict[str, Any] = {"step": "plan", "phase": "plan", "role": "reasoning", "model": "planner"}


class Saga:
    """Writes the rows of one workflow run."""

    def __init__(self, run: str, *, first_run: str = "", task: str = "", sequence: int = 0) -> None:
        self.run, self.first_run, self.task, self.sequence = run, first_run or run, task, sequence

    def note(self, at: int, kind: str, /, *, attempt: int = 0, task: str = "", **data: Any) -> Event:
        """The next row."""
        self.sequence += 1
        return Event(
            first_run=self.first_run,
            run=self.run,
            sequence=self.sequence,
            build=BUILD,
            kind=kind,
            at=at,
            task=task or self.task,
            attempt=attempt,
            data=data,
        )


def called(**changes: Any) -> dict[str, Any]:
    """The data of a ``call.answered``."""
    usage = {"input_tokens": 100, "output_tokens": 10, "cost_micros": 1000}
    known = {"step": "change", "turn": 1, "model": "coder", "prompt": "p", "answer": "a", "value": "v", "problems": []}
    return {**known, "usage": usage, "faults": [], "phase": "change", "role": "coding", **changes}


def attempt(saga: Saga, at: int, number: int, *, gates: dict[str, Any] = GREEN) -> list[Event]:
    """An attempt of 400 ms: 100 ms to its call's end, 100 to the change, 200 to the tests."""
    return [
        saga.note(at, "attempt.started", attempt=number),
        saga.note(at, "attempt.phase", attempt=number, phase="writing"),
        saga.note(at + 100, "call.answered", attempt=number, **called()),
        saga.note(at + 100, "attempt.phase", attempt=number, phase="applying"),
        saga.note(at + 200, "change.applied", attempt=number, commit=f"c{number}", diff=f"d{number}", files=1),
        saga.note(at + 200, "attempt.phase", attempt=number, phase="testing"),
        saga.note(at + 400, "gates.ran", attempt=number, **gates),
    ]


def begun(root: Saga) -> list[Event]:
    """Until the plan stands: 1000 ms."""
    tasks: list[Any] = [
        {"id": name, "title": f"The {name}", "depends_on": [], "files": []} for name in ("api", "store")
    ]
    return [
        root.note(10, "build.started", project="", title="Tags", user="ann"),
        root.note(50, "build.admitted", project="calc", spec="s"),
        root.note(50, "build.phase", phase="intake"),
        root.note(100, "build.phase", phase="base"),
        root.note(300, "build.base", commit="c0", **GREEN),
        root.note(300, "build.phase", phase="plan"),
        root.note(900, "call.answered", attempt=1, **called(**PLANNED)),
        root.note(1000, "build.planned", plan="plan-digest", tasks=tasks),
        root.note(1000, "build.phase", phase="tasks"),
    ]


def written(root: Saga) -> list[Event]:
    """Both tasks beside each other; the second one conflicts, is written again and merged."""
    api, store, again = Saga("run-api", task="api"), Saga("run-store", task="store"), Saga("run-store-2", task="store")
    return [
        api.note(1010, "task.started", base="c0"),
        store.note(1020, "task.started", base="c0"),
        *attempt(api, 1020, 1, gates=RED),
        *attempt(store, 1030, 1),
        store.note(1440, "task.ended", attempt=1, status="green", commit="c1"),
        *attempt(api, 1430, 2),
        api.note(1840, "task.ended", attempt=2, status="green", commit="c2"),
        root.note(1900, "merge.tried", task="api", onto="c0", commit="m1", conflicts=[], report="", diff="d"),
        root.note(2000, "gates.ran", task="api", label="merge", **GREEN),
        root.note(2010, "task.merged", task="api", commit="m1", ran=4),
        root.note(2050, "merge.tried", task="store", onto="m1", commit="", conflicts=["a.py"], report="r", diff=""),
        root.note(2060, "task.sent_back", task="store", why="conflict", times=1, sentence="a.py conflicts", report="r"),
        again.note(2100, "task.started", base="m1"),
        *attempt(again, 2100, 2),
        again.note(2510, "task.ended", attempt=2, status="green", commit="c3"),
        root.note(2600, "merge.tried", task="store", onto="m1", commit="m2", conflicts=[], report="", diff="d"),
        root.note(2700, "gates.ran", task="store", label="merge", **GREEN),
        root.note(2710, "task.merged", task="store", commit="m2", ran=4),
    ]


def reviewed(root: Saga) -> list[Event]:
    """A review and an approval that is open."""
    answer = called(step="review", phase="review", role="validation", model="reviewer", prompt="rp", answer="ra")
    counts: dict[str, Any] = {"high": 0, "medium": 1, "low": 0}
    return [
        root.note(2800, "build.phase", phase="review"),
        root.note(3000, "call.answered", attempt=1, **answer),
        root.note(3010, "review.ended", findings="f", weak=False, model="reviewer", round=1, **counts),
        root.note(3020, "build.phase", phase="approve"),
        root.note(3100, "ask.opened", **ASK),
    ]


def ended(root: Saga) -> list[Event]:
    """Approved by Ann, landed."""
    return [
        root.note(9000, "ask.closed", id="q1", about="change", choice="approve", by="ann", reason=""),
        root.note(9010, "build.phase", phase="landing"),
        root.note(9100, "gates.ran", label="landing", **GREEN),
        root.note(9200, "target.forwarded", old="c0", new="m2"),
        root.note(
            9300, "build.ended", status="succeeded", sentence="on main", branch="mendwork/b", commit="m2", diff="dd"
        ),
    ]


def whole() -> list[Event]:
    """From the start to the end."""
    root = Saga("run-1")
    return [*begun(root), *written(root), *reviewed(root), *ended(root)]


def waiting() -> list[Event]:
    """The same build while Ann has not answered."""
    root = Saga("run-1")
    return [*begun(root), *written(root), *reviewed(root)]


def moved(events: Iterable[Event], by: int) -> list[Event]:
    """The same events, later."""
    return [replace(event, at=event.at + by) for event in events]


def reset() -> list[Event]:
    """The whole build, and then a reset to where its plan stood: everything after it again, in a new run."""
    before = whole()
    planned = next(event for event in before if event.kind == "build.planned")
    root = Saga("run-2", first_run="run-1", sequence=planned.sequence)
    again = [root.note(0, "build.phase", phase="tasks"), *written(root), *reviewed(root)]
    renamed = [
        replace(e, first_run=f"{e.first_run}-b", run=f"{e.run}-b") if e.first_run != "run-1" else e for e in again
    ]
    return [*before, *moved(renamed, 20_000)]
