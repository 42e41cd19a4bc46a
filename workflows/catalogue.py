"""Every workflow that the engine serves, since which release, and which stay with the version that began them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import VersioningBehavior

from workflows.build_saga import BuildSaga
from workflows.delivery.lane import Lane
from workflows.delivery.saga import DeliverySaga
from workflows.delivery.watch import KpiWatch
from workflows.housekeeper import Housekeeper
from workflows.sweeper import SweepBuild, Sweeper
from workflows.task_saga import TaskSaga

with workflow.unsafe.imports_passed_through():
    from domain.build.requests import TaskOutcome
    from domain.errors import MendworkError
    from domain.kpi.watching import Watching, WatchOutcome

WORKFLOWS: Sequence[type] = (BuildSaga, TaskSaga, DeliverySaga, KpiWatch, Lane, Sweeper, SweepBuild, Housekeeper)

SINCE: Mapping[str, str] = {each.__name__: "0.1.0" for each in WORKFLOWS}
"""The release that each is in for the first time: every release since has a recorded history of it."""

PINNED: Mapping[str, str] = {
    "TaskSaga": "a task is written and tested within minutes, and asks nobody",
    "KpiWatch": "a watch lasts for as long as its project gave it, minutes as a rule",
}
"""What stays with the version that began it, where workers are a deployment, and why it may. Whatever waits for people
(BuildSaga, DeliverySaga) or lives for ever (Lane) moves on with each version, and so do those that begin anew all the
time (Sweeper, SweepBuild, Housekeeper): their changes are made behind ``workflow.patched``."""


@workflow.defn(name="TaskSaga", failure_exception_types=[MendworkError], versioning_behavior=VersioningBehavior.PINNED)
class PinnedTaskSaga(TaskSaga):
    """The same saga. Temporal takes a versioning behaviour from the workers of a deployment, and from no other: one
    that all workers named would stop every saga of an engine that is no deployment."""

    @workflow.init
    def __init__(self, request: Any = None) -> None:
        super().__init__(request)

    @workflow.run
    async def run(self, request: Any = None) -> TaskOutcome:
        """As TaskSaga's."""
        return await super().run(request)


@workflow.defn(name="KpiWatch", failure_exception_types=[MendworkError], versioning_behavior=VersioningBehavior.PINNED)
class PinnedKpiWatch(KpiWatch):
    """As PinnedTaskSaga."""

    @workflow.init
    def __init__(self, request: Any = None, carried: Watching | None = None) -> None:
        super().__init__(request, carried)

    @workflow.run
    async def run(self, request: Any = None, carried: Watching | None = None) -> WatchOutcome:
        """As KpiWatch's."""
        return await super().run(request, carried)


IN_A_DEPLOYMENT: Sequence[type] = tuple(
    {TaskSaga: PinnedTaskSaga, KpiWatch: PinnedKpiWatch}.get(each, each) for each in WORKFLOWS
)
"""``WORKFLOWS``, as the workers of a deployment serve them."""
