"""From an answered plan to the tasks that a saga can run."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from activities.documents import read_plan
from domain.build.plan import problems, run_order
from domain.ports.blobs import Blobs


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPlanInput:
    """``plan`` is the digest of the plan's canonical JSON."""

    plan: str
    max_tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBrief:
    """What the history holds of a task; its instructions stay in the plan's blob."""

    id: str
    title: str
    depends_on: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlan:
    """``tasks`` in an order in which they can run; empty when there are ``problems``."""

    tasks: tuple[TaskBrief, ...]
    problems: tuple[str, ...]


class Planning:
    """Reads blobs only."""

    def __init__(self, *, blobs: Blobs) -> None:
        self._blobs = blobs

    @activity.defn
    async def check_plan(self, request: CheckPlanInput) -> CheckedPlan:
        """Validate the DAG and put its tasks in order."""
        plan = await read_plan(self._blobs, request.plan)
        found = problems(plan, max_tasks=request.max_tasks)
        if found:
            return CheckedPlan(tasks=(), problems=found[:10])
        tasks = (plan.task(task_id) for task_id in run_order(plan))
        briefs = tuple(TaskBrief(id=t.id, title=t.title[:100], depends_on=t.depends_on) for t in tasks)
        return CheckedPlan(tasks=briefs, problems=())
