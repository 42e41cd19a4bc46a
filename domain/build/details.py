"""One build in full, as a fold of its events: what ``status`` and ``show`` print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.ports.store import Event


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


@dataclass(slots=True, kw_only=True)
class TaskDetails:
    """One task; ``status`` is waiting, running, succeeded, failed or aborted."""

    task: str
    title: str = ""
    status: str = "waiting"
    commit: str = ""
    sentence: str = ""
    attempts: list[AttemptDetails] = field(default_factory=list)

    def attempt(self, number: int) -> AttemptDetails:
        """The attempt of that number; made when an event is the first to name it."""
        while len(self.attempts) < number:
            self.attempts.append(AttemptDetails(number=len(self.attempts) + 1))
        return self.attempts[number - 1]


@dataclass(slots=True, kw_only=True)
class BuildDetails:
    """``diff`` and ``base_log`` are digests; ``faults`` those of the build's own steps (planning)."""

    build: str
    project: str = ""
    title: str = ""
    phase: str = "intake"
    status: str = "running"
    sentence: str = ""
    fault: str = ""
    base: str = ""
    base_log: str = ""
    plan: str = ""
    branch: str = ""
    commit: str = ""
    diff: str = ""
    tasks: dict[str, TaskDetails] = field(default_factory=dict)
    faults: list[Mapping[str, Any]] = field(default_factory=list)

    def task(self, name: str) -> TaskDetails:
        """The task of that name; made when an event is the first to name it."""
        return self.tasks.setdefault(name, TaskDetails(task=name))


def fold_details(build: str, events: Iterable[Event]) -> BuildDetails:
    """The same for any order of arrival and any number of repeats."""
    details = BuildDetails(build=build)
    unique = {(e.first_run, e.run, e.sequence): e for e in events}
    for event in sorted(unique.values(), key=lambda e: (e.at, e.run, e.sequence)):
        if event.kind.startswith("call."):
            _call(details, event)
        elif event.task:
            _task(details.task(event.task), event)
        else:
            _build(details, event)
    return details


def _build(details: BuildDetails, event: Event) -> None:
    data = event.data
    match event.kind:
        case "build.started" | "build.admitted":
            details.project = data["project"]
            details.title = data.get("title", details.title)
        case "build.phase":
            details.phase = data["phase"]
        case "build.base":
            details.base, details.base_log = data["commit"], data["log"]
        case "build.planned":
            details.plan = data["plan"]
            for task in data["tasks"]:
                details.task(task["id"]).title = task["title"]
        case "build.ended":
            details.status, details.sentence = data["status"], data["sentence"]
            details.fault = data.get("fault", "")
            details.branch, details.commit = data.get("branch", ""), data.get("commit", "")
            details.diff = data.get("diff", "")


def _task(task: TaskDetails, event: Event) -> None:
    data = event.data
    match event.kind:
        case "task.started":
            task.status = "running"
        case "task.ended":
            task.status, task.commit = data["status"], data.get("commit", "")
            task.sentence = data.get("sentence", "")
        case "attempt.phase" if not task.attempt(event.attempt).green:
            task.attempt(event.attempt).phase = data["phase"]
        case "change.applied":
            attempt = task.attempt(event.attempt)
            attempt.commit, attempt.diff = data["commit"], data["diff"]
        case "change.refused":
            attempt = task.attempt(event.attempt)
            attempt.reason, attempt.phase = data["reason"], "refused"
        case "gates.ran":
            attempt = task.attempt(event.attempt)
            attempt.green, attempt.reason, attempt.ran = data["green"], data["reason"], data["ran"]
            attempt.log, attempt.report = data["log"], data["report"]
            attempt.phase = "green" if attempt.green else "red"


def _call(details: BuildDetails, event: Event) -> None:
    data = event.data
    attempt = details.task(event.task).attempt(event.attempt) if event.task else None
    faults = details.faults if attempt is None else attempt.faults
    faults.extend(data["faults"])
    if data.get("problems"):
        faults.append({"kind": "UnusableAnswer", "source": data["model"], "sentence": data["problems"][0]})
    if attempt is not None and event.kind == "call.answered":
        attempt.model, attempt.prompt, attempt.answer = data["model"], data["prompt"], data["answer"]
