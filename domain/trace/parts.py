"""One build in full: its tasks with their attempts, what waits for a person, what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.trace.asks import AskDetails
from domain.trace.calls import CallDetails
from domain.trace.delivery.told import DeliveryDetails
from domain.trace.spending import NOTHING, Spending

OVER = ("merged", "skipped", "blocked", "replaced", "succeeded")
"""A task that nothing more happens to; "succeeded" is what logs of version 0.1 say for merged."""


@dataclass(slots=True, kw_only=True)
class AttemptDetails:
    """One attempt of a task; ``diff``, ``log`` and ``report`` are digests, "" where there is none."""

    number: int
    phase: str = "starting"
    model: str = ""
    prompt: str = ""
    answer: str = ""
    commit: str = ""
    diff: str = ""
    log: str = ""
    report: str = ""
    green: bool = False
    ran: int = -1
    reason: str = ""
    faults: list[Mapping[str, Any]] = field(default_factory=list)
    calls: list[CallDetails] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MergedDetails:
    """The tests of a merged tree, and what stood against the merge; ``diff``, ``log`` and ``report`` are digests."""

    onto: str = ""
    commit: str = ""
    conflicts: list[str] = field(default_factory=list)
    diff: str = ""
    green: bool | None = None
    ran: int = -1
    reason: str = ""
    log: str = ""
    report: str = ""


@dataclass(slots=True, kw_only=True)
class TaskDetails:
    """One task. ``status`` is waiting, running, written (green, not merged yet), stuck, merged, skipped, blocked,
    replaced (by a newer plan), failed or aborted. ``sent_back`` counts, ``why`` is conflict, red or finding."""

    task: str
    title: str = ""
    status: str = "waiting"
    commit: str = ""
    sentence: str = ""
    depends_on: tuple[str, ...] = ()
    sent_back: int = 0
    why: str = ""
    taken: str = ""
    merge: MergedDetails = field(default_factory=MergedDetails)
    attempts: list[AttemptDetails] = field(default_factory=list)

    def attempt(self, number: int) -> AttemptDetails:
        """The attempt of that number, from 1; made when an event is the first to name it."""
        while len(self.attempts) < number:  # an earlier saga of the task may have used numbers and noted nothing
            known = len(self.attempts) + 1
            self.attempts.append(AttemptDetails(number=known, phase="starting" if known == number else "lost"))
        return self.attempts[number - 1]


@dataclass(slots=True, kw_only=True)
class BuildDetails:
    """``diff`` and ``base_log`` are digests; ``faults``, ``calls`` those of the build's own steps (planning, review).

    ``head`` is the commit where the build stands. ``missing`` says which tasks a partial build lacks, and why.
    ``spent`` is what the log knows of; the ledger knows of lost calls too. ``target`` is the commit that the target
    branch was forwarded to, ``raised`` what people raised.
    ``alone`` when this is no build but a delivery that somebody started by itself. A build that went on from a
    snapshot has its token as ``parent``, and as ``carried`` what had been spent by then: its calls and their cost.
    """

    build: str
    project: str = ""
    title: str = ""
    user: str = ""
    phase: str = "intake"
    status: str = "running"
    sentence: str = ""
    fault: str = ""
    base: str = ""
    base_log: str = ""
    head: str = ""
    plan: str = ""
    branch: str = ""
    target: str = ""
    commit: str = ""
    diff: str = ""
    started: int = 0
    ended: int = 0
    paused: bool = False
    tasks: dict[str, TaskDetails] = field(default_factory=dict)
    asks: dict[str, AskDetails] = field(default_factory=dict)
    missing: list[Mapping[str, Any]] = field(default_factory=list)
    reviews: list[Mapping[str, Any]] = field(default_factory=list)
    landing: MergedDetails = field(default_factory=MergedDetails)
    raised: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    faults: list[Mapping[str, Any]] = field(default_factory=list)
    calls: list[CallDetails] = field(default_factory=list)
    spent: Spending = NOTHING
    parent: str = ""
    carried: Spending = NOTHING
    delivery: DeliveryDetails = field(default_factory=DeliveryDetails)
    alone: bool = False

    def task(self, name: str) -> TaskDetails:
        """The task of that name; made when an event is the first to name it."""
        return self.tasks.setdefault(name, TaskDetails(task=name))

    def open_asks(self) -> list[AskDetails]:
        """What waits for a person, oldest first; nothing of a build that ended."""
        waiting = [ask for ask in self.asks.values() if ask.is_open] if self.status == "running" else []
        return sorted(waiting, key=lambda ask: (ask.opened, ask.id))
