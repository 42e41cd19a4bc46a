"""A workflow with one activity, for what the interceptor promises about tries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from workflows.faults import faults_of


@workflow.defn
class Trying:
    """Returns the activity's result, or the faults that its failure carries."""

    @workflow.run
    async def run(self) -> Any:
        try:
            return await workflow.execute_activity(
                "flaky",
                start_to_close_timeout=timedelta(seconds=20),
                heartbeat_timeout=timedelta(seconds=1),
                retry_policy=RetryPolicy(maximum_attempts=3),
            )
        except ActivityError as error:
            return [[fault.kind, fault.sentence, fault.number] for fault in faults_of(error)]
