"""Timeouts and retries: the only place with such numbers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType, is_cancelled_exception

Request = TypeVar("Request")
Result = TypeVar("Result")

DEFAULT_HEARTBEAT = timedelta(seconds=5)
WORKFLOW_TASK = timedelta(seconds=5)
"""How long a workflow task of a killed worker blocks its saga."""

LONGEST_FAIRNESS_KEY = 64  # bytes; Temporal's own limit

LOST_WORKERS = 20
"""How often an activity starts afresh when its last try was lost with its worker: that is no verdict on the work, so it
does not use up the work's tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """``queue`` is the suffix of the task queue, ``tries`` the bound for transient faults of one request. Up to
    ``waits`` further tries only wait for a turn: the activity then counts those that are faults."""

    queue: str
    seconds: float
    tries: int
    retry_seconds: float = 60.0
    waits: int = 0


STORE = Policy(queue="", seconds=60, tries=0, retry_seconds=86_400)
"""The log has to be written: a store that is down pauses the saga for up to a day rather than failing it."""
PLACE = Policy(queue="", seconds=60, tries=0, retry_seconds=604_800)
"""A task waits for a free place as long as the project's other tasks need."""
WORKSPACE = Policy(queue="-workspace", seconds=300, tries=3)
MODEL = Policy(queue="-model", seconds=60, tries=3, waits=1_000)
SANDBOX = Policy(queue="-sandbox", seconds=300, tries=3)
"""Both without the time that the project grants to the call or the tests: see ``granting``."""
DEPLOY = Policy(queue="-deploy", seconds=120, tries=3)
"""Without the time that a release may take to start, a project's own step, or a window of the watch."""
RESTORE = Policy(queue="-deploy", seconds=300, tries=10)
"""Going back is tried harder than going forward: production hangs on it."""


async def to_its_end(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of ``work``, whatever is cancelled meanwhile: a second cancellation must not stop what undoes the
    first one's work."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()


def granting(policy: Policy, seconds: float) -> Policy:
    """``policy`` for a step that may itself take ``seconds``."""
    return replace(policy, seconds=policy.seconds + seconds)


class Effects:
    """Runs activities, each by the policy of its kind, with one heartbeat timeout for all."""

    def __init__(self, *, heartbeat: timedelta = DEFAULT_HEARTBEAT) -> None:
        self._heartbeat = heartbeat
        self._base = workflow.info().task_queue
        self._priority = Priority.default
        self._shielded = False
        self._aborted = False
        self._hurries = 0
        self.paused = False

    def fair_to(self, project: str) -> None:
        """From here on every queue serves this project's steps in turn with those of the others."""
        key = project.encode(errors="ignore")[:LONGEST_FAIRNESS_KEY]  # not checked yet, perhaps: it came with the start
        self._priority = Priority(fairness_key=key.decode(errors="ignore"))

    @property
    def priority(self) -> Priority:
        """What the steps, and the children, are queued by."""
        return self._priority

    def shield(self) -> None:
        """From here on a cancellation changes nothing: the saga compensates, or what it did is final."""
        self._shielded = True

    @property
    def shielded(self) -> bool:
        """Whether an abort comes too late."""
        return self._shielded

    def abort(self) -> None:
        """As a cancellation from outside, asked for by a signal."""
        self._aborted = True

    async def clear(self) -> None:
        """Wait while the saga is paused: no new call, task or merge starts."""
        if self.paused and not self._shielded:
            await workflow.wait_condition(lambda: not self.paused)
            self.heed_cancellation()

    async def rest(self, seconds: float, *, summary: str) -> None:
        """Wait; ``hurry`` ends it."""
        before = self._hurries
        with contextlib.suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: self._hurries > before, timeout=timedelta(seconds=seconds), timeout_summary=summary
            )
        self.heed_cancellation()

    def hurry(self) -> None:
        """End every rest now."""
        self._hurries += 1

    def beat_every(self, heartbeat: timedelta) -> None:
        """From here on, silent workers are noticed after this time."""
        self._heartbeat = heartbeat

    def heed_cancellation(self) -> None:
        """Raise CancelledError if one was asked for.

        A cancelled step that ends well all the same returns its result and swallows the cancellation: after every step
        that waits for its end, ask again.
        """
        if (self._aborted or workflow.cancellation_reason() is not None) and not self._shielded:
            raise asyncio.CancelledError

    async def run(
        self,
        policy: Policy,
        method: Callable[[Any, Request], Awaitable[Result]],
        request: Request,
        *,
        summary: str | None = None,
    ) -> Result:
        """The activity's result. Raises ActivityError when its tries are used up or it failed for good.

        A cancelled activity raises CancelledError: it is no failure, and nothing may be tried instead.
        """
        if policy.queue == MODEL.queue:
            await self.clear()
        for lost in range(LOST_WORKERS + 1):
            try:
                result = await self._once(policy, method, request, summary)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise asyncio.CancelledError from error
                self.heed_cancellation()
                if lost == LOST_WORKERS or not _worker_lost(error):
                    raise
            else:
                self.heed_cancellation()
                return result
        raise AssertionError("unreachable: the last round returns or raises")

    async def last(
        self,
        policy: Policy,
        method: Callable[[Any, Request], Awaitable[Result]],
        request: Request,
        *,
        heed: bool = True,
    ) -> Result:
        """As ``run``, but to its end whatever is cancelled meanwhile; ``heed`` raises CancelledError after that."""
        shielded = Effects(heartbeat=self._heartbeat)
        shielded._priority = self._priority
        shielded.shield()
        result = await to_its_end(shielded.run(policy, method, request))
        if heed:
            self.heed_cancellation()
        return result

    async def _once(
        self, policy: Policy, method: Callable[[Any, Request], Awaitable[Result]], request: Request, summary: str | None
    ) -> Result:
        return await workflow.execute_activity_method(
            method,
            request,
            task_queue=self._base + policy.queue,
            start_to_close_timeout=timedelta(seconds=policy.seconds),
            schedule_to_close_timeout=timedelta(seconds=policy.retry_seconds) if policy.tries == 0 else None,
            heartbeat_timeout=self._heartbeat,
            retry_policy=RetryPolicy(
                maximum_attempts=policy.tries + policy.waits,
                maximum_interval=timedelta(seconds=60),
                backoff_coefficient=1.0 if policy.waits else 2.0,  # who waited long and lost its worker waits no longer
            ),
            priority=self._priority,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=summary,
        )


def _worker_lost(error: ActivityError) -> bool:
    cause = error.cause
    return isinstance(cause, TimeoutError) and cause.type == TimeoutType.HEARTBEAT
