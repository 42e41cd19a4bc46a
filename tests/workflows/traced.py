"""A saga with what a trace has to survive: activities, a child, a signal, a new run, and a failure."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

SECRET = "the prompt said hunter2"
WAIT = timedelta(seconds=30)


@activity.defn
async def step(name: str) -> str:
    """Fails where it is told to, with a text that a model could have written."""
    if name == "fail":
        raise ApplicationError(SECRET, type="GatesRed", non_retryable=True)
    return name


@workflow.defn
class TracedChild:
    """One step, then the end that it was told of."""

    @workflow.run
    async def run(self, end: str) -> None:
        """ "fail" fails, with the same text."""
        await workflow.execute_activity(step, "child", start_to_close_timeout=WAIT)
        if end == "fail":
            raise ApplicationError(SECRET, type="Escalated", non_retryable=True)


@workflow.defn
class Traced:
    """Two runs of one saga."""

    def __init__(self) -> None:
        self._heard = False

    @workflow.signal
    def hear(self) -> None:
        """Let the first run go on."""
        self._heard = True

    @workflow.run
    async def run(self, number: int) -> None:
        """``number`` is that of the run; the second is the last."""
        await workflow.execute_activity(step, f"run-{number}", start_to_close_timeout=WAIT)
        if number == 1:
            await workflow.wait_condition(lambda: self._heard)
            workflow.continue_as_new(2)
        try:
            await workflow.execute_activity(
                step, "fail", start_to_close_timeout=WAIT, retry_policy=RetryPolicy(maximum_attempts=1)
            )
        except ActivityError:
            await workflow.execute_child_workflow(TracedChild.run, "", id=f"{workflow.info().workflow_id}-child")
