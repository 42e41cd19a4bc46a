"""What a build carries from phase to phase, and into a new run when its history grows long."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.intake import AdmittedBuild
    from activities.repository.landing import CompensateInput
    from domain.flow.board import TaskState
    from domain.flow.board import carried as task_carried
    from domain.human.asks import Ask
    from domain.human.book import Book


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A commit of the build, how many tests ran on it (-1: the runner cannot count) and what each of them did
    (``baseline``, a digest; "" where the runner does not tell)."""

    commit: str
    ran: int
    baseline: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """One registered compensation; ``key`` is saga/step/number."""

    key: str
    action: str
    request: CompensateInput


@dataclass(slots=True, kw_only=True)
class BuildState:
    """References, numbers and short texts only: it is an input of the next run.

    ``phase`` is the next to run. ``plans`` counts the plans that models were asked for, ``reviews`` the reviews,
    ``landings`` the tries to land: they number steps, and never go back. ``gates`` is the last verdict on the head,
    ``used`` each task id's last attempt over all plans, ``authors`` the models that wrote what was merged, ``asked``
    what is asked now, by what it is about, ``delivered`` what its delivery reported. ``packages`` are names that a
    person allowed to be installed.

    ``started`` (seconds since 1970) is where the times of its commits begin. A build that goes on from a snapshot has
    its token as ``parent``, and what had been spent by then, in micro-dollars and calls, as ``carried``.
    """

    phase: str = "intake"
    paused: bool = False
    admitted: AdmittedBuild | None = None
    base: Head | None = None
    head: Head | None = None
    plan: str = ""
    plans: int = 0
    plan_reason: str = ""
    tasks: dict[str, TaskState] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    book: Book = field(default_factory=Book)
    authors: list[str] = field(default_factory=list)
    gates: dict[str, Any] = field(default_factory=dict)
    findings: dict[str, Any] = field(default_factory=dict)
    reviews: int = 0
    review_rounds: int = 0
    asks: int = 0
    asked: dict[str, Ask] = field(default_factory=dict)
    landings: int = 0
    branch: str = ""
    diff: str = ""
    note: str = ""
    approved: bool = False
    delivering: bool = False
    delivered: dict[str, Any] = field(default_factory=dict)
    undo: list[Undo] = field(default_factory=list)
    packages: tuple[str, ...] = ()
    strategy: str = ""
    started: int = 0
    snapshots: int = 0
    parent: str = ""
    carried_micros: int = 0
    carried_calls: int = 0


def carried(state: BuildState) -> dict[str, Any]:
    """The state as the next run, or a snapshot, is given it: JSON that decodes to the same state."""
    tasks = {name: task_carried(task) for name, task in state.tasks.items()}
    return {**asdict(replace(state, tasks={})), "tasks": tasks}
