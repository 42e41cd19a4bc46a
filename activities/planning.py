"""From an answered plan to the tasks that a saga can run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from activities.documents import read_plan
from domain.build.plan import PlannedTask, problems, run_order
from domain.ports.blobs import Blobs
from domain.ports.language_model import AnswerSchemas


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPlanInput:
    """``plan`` is the digest of the plan's canonical JSON."""

    plan: str
    max_tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBrief:
    """What the history holds of a task; its instructions stay in the plan's blob. ``files`` are those it declares."""

    id: str
    title: str
    depends_on: tuple[str, ...]
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlan:
    """``tasks`` in an order in which they can run; empty when there are ``problems``."""

    tasks: tuple[TaskBrief, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptPlanInput:
    """``plan`` is a plan that a person wrote, as JSON of the class Plan."""

    plan: Mapping[str, Any]
    max_tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedPlan:
    """``plan`` is the digest of the canonical plan, "" when there are ``problems``."""

    plan: str
    tasks: tuple[TaskBrief, ...]
    problems: tuple[str, ...]


class Planning:
    """Reads and writes blobs only."""

    def __init__(self, *, blobs: Blobs, schemas: AnswerSchemas) -> None:
        self._blobs = blobs
        self._schemas = schemas

    @activity.defn
    async def adopt_plan(self, request: AdoptPlanInput) -> AdoptedPlan:
        """Validate a person's plan as strictly as a model's."""
        decoded = self._schemas.decode("Plan", json.dumps(request.plan))
        if decoded.value is None:
            return AdoptedPlan(plan="", tasks=(), problems=decoded.problems[:10])
        digest = await self._blobs.put(decoded.value.encode())
        checked = await self.check_plan(CheckPlanInput(plan=digest, max_tasks=request.max_tasks))
        return AdoptedPlan(plan="" if checked.problems else digest, tasks=checked.tasks, problems=checked.problems)

    @activity.defn
    async def check_plan(self, request: CheckPlanInput) -> CheckedPlan:
        """Validate the DAG and put its tasks in order."""
        plan = await read_plan(self._blobs, request.plan)
        found = problems(plan, max_tasks=request.max_tasks)
        if found:
            return CheckedPlan(tasks=(), problems=found[:10])
        tasks = (plan.task(task_id) for task_id in run_order(plan))
        return CheckedPlan(tasks=tuple(_brief(task) for task in tasks), problems=())


def _brief(task: PlannedTask) -> TaskBrief:
    files = dict.fromkeys((*task.files, *(test.split("::")[0] for test in task.tests)))
    return TaskBrief(id=task.id, title=task.title[:100], depends_on=task.depends_on, files=tuple(files))
