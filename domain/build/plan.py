"""A plan: a DAG of tasks, as the reasoning model answers it and as the saga runs it."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from domain.build.names import is_task_id
from domain.errors import InvalidPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """One task. ``id`` is lower-case kebab, ``files`` the repository paths it expects to touch, ``tests`` to satisfy."""

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
    """Everything that makes a plan unusable, each as a sentence that a model can act on; empty means usable."""
    found: list[str] = []
    ids = [task.id for task in plan.tasks]
    if not ids:
        found.append("the plan has no task")
    if len(ids) > max_tasks:
        found.append(f"the plan has {len(ids)} tasks, at most {max_tasks} are allowed")
    found += [
        f"task id {i!r} is not lower-case letters, digits and dashes (at most 40)" for i in ids if not is_task_id(i)
    ]
    found += [f"task id {i!r} is used more than once" for i in sorted({i for i in ids if ids.count(i) > 1})]
    for task in plan.tasks:
        found += [f"task {task.id!r} depends on {d!r}, which is no task" for d in task.depends_on if d not in ids]
        if not task.instructions.strip():
            found.append(f"task {task.id!r} has no instructions")
    found += _cycles(plan)
    return tuple(found)


def run_order(plan: Plan) -> tuple[str, ...]:
    """Task ids so that each comes after what it depends on, otherwise in the plan's own order.

    Raises InvalidPlan when the plan has a cycle.
    """
    done: list[str] = []
    waiting = list(plan.tasks)
    while waiting:
        ready = next((t for t in waiting if set(t.depends_on) <= set(done)), None)
        if ready is None:
            raise InvalidPlan("the plan's dependencies have a cycle or name an unknown task")
        done.append(ready.id)
        waiting.remove(ready)
    return tuple(done)


def _cycles(plan: Plan) -> list[str]:
    try:
        TopologicalSorter({t.id: t.depends_on for t in plan.tasks}).prepare()
    except CycleError as error:
        return ["the dependencies have a cycle: " + " → ".join(str(step) for step in error.args[1])]
    return []
