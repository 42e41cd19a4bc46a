"""Every workflow that the engine serves."""

from __future__ import annotations

from collections.abc import Sequence

from workflows.build_saga import BuildSaga
from workflows.delivery.lane import Lane
from workflows.delivery.saga import DeliverySaga
from workflows.delivery.watch import KpiWatch
from workflows.housekeeper import Housekeeper
from workflows.sweeper import SweepBuild, Sweeper
from workflows.task_saga import TaskSaga

WORKFLOWS: Sequence[type] = (BuildSaga, TaskSaga, DeliverySaga, KpiWatch, Lane, Sweeper, SweepBuild, Housekeeper)
