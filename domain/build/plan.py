"""A plan: a DAG of tasks, as the reasoning model answers it and as the saga runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from domain.build.change import path_problem
from domain.build.names import is_task_id
from domain.errors import InvalidPlan

MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """One task. ``id`` is lower-case kebab; ``files`` are the paths it expects to touch, ``tests`` those to satisfy."""

    id: str
    title: str
    instructions: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    depends_on: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the reasoning model answers to a spec."""

    summary: str
    tasks: tuple[PlannedTask, ...]

    def task(self, task_id: str) -> PlannedTask:
        """Raises InvalidPlan when there is no such task."""
        for task in self.tasks:
            if task.id == task_id:
                return task
        raise InvalidPlan(f"the plan has no task {task_id!r}")


def problems(plan: Plan, *, max_tasks: int) -> tuple[str, ...]:
    """What makes a plan unusable, as at most twenty sentences that a model can act on; empty means usable."""
    if not plan.tasks:
        return ("the plan has no task",)
    if len(plan.tasks) > max_tasks:
        return (f"the plan has {len(plan.tasks)} tasks, at most {max_tasks} are allowed",)
    counts = Counter(task.id for task in plan.tasks)
    found = [f"task id {_short(i)} is used more than once" for i, count in counts.items() if count > 1]
    for task in plan.tasks:
        found += _task_problems(task, counts)
    found += _cycles(plan)
    more = len(found) - MOST_PROBLEMS
    return tuple(found) if more <= 0 else (*found[: MOST_PROBLEMS - 1], f"and {more + 1} more problems")


def run_order(plan: Plan) -> tuple[str, ...]:
    """Task ids so that each comes after what it depends on, otherwise in the plan's own order.

    Raises InvalidPlan when the plan has a cycle.
    """
    done: dict[str, None] = {}
    waiting = list(plan.tasks)
    while waiting:
        ready = next((t for t in waiting if done.keys() >= set(t.depends_on)), None)
        if ready is None or ready.id in done:
            raise InvalidPlan("the plan has a cycle, an unknown dependency or the same task twice")
        done[ready.id] = None
        waiting.remove(ready)
    return tuple(done)


def _task_problems(task: PlannedTask, known: Container[str]) -> list[str]:
    name = _short(task.id)
    found = []
    if not is_task_id(task.id):
        found.append(f"task id {name} is not lower-case letters, digits and dashes (at most 40)")
    if not task.title.strip():
        found.append(f"task {name} has no title")
    if not task.instructions.strip():
        found.append(f"task {name} has no instructions")
    found += [f"task {name} depends on {_short(d)}, which is no task" for d in task.depends_on if d not in known]
    for path in (*task.files, *(test.split("::")[0] for test in task.tests)):
        problem = path_problem(path.rstrip("/") or path)
        if problem:
            found.append(f"task {name} names the path {_short(path)}, which {problem}")
    return found


def _cycles(plan: Plan) -> list[str]:
    try:
        TopologicalSorter({t.id: t.depends_on for t in plan.tasks}).prepare()
    except CycleError as error:
        return ["the dependencies have a cycle: " + " → ".join(_short(str(step)) for step in error.args[1][:20])]
    return []


def _short(text: str) -> str:
    """Quoted and cut: it came from a model, and the sentence goes into a history."""
    return repr(text[:80])
