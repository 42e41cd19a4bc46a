"""Heartbeats for every activity, which carry the faults of all its tries.

The server writes no event for a try that failed; heartbeat details survive from try to try, so each try's heartbeats
carry the list on, and the result or the last failure brings it into the history. A try that only waited for its turn
is counted beside the list, and uses up nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import Busy, Crowded, MendworkError, Transient
from domain.recovery.fault import Fault, told_after
from domain.recovery.retry import is_last, next_delay

MOST_LOST = 20
"""A request that takes its worker with it so often is not given to another."""

_earlier: ContextVar[tuple[Fault, ...]] = ContextVar("earlier_faults", default=())


def earlier_faults() -> tuple[Fault, ...]:
    """The faults of this activity's earlier tries, oldest first."""
    return _earlier.get()


class BeatingInterceptor(Interceptor):
    """Makes every activity beat, and raise what it raises as one classified, typed failure."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Called by the worker for each activity."""
        return _Beating(next)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """What this activity's earlier tries left: their faults, and how many of them only ``waited``."""

    faults: tuple[Fault, ...]
    waited: int = 0

    def details(self) -> tuple[list[dict[str, Any]], int]:
        """As heartbeats carry it."""
        return [asdict(fault) for fault in self.faults], self.waited

    @property
    def number(self) -> int:
        """Which try this is of those that count, from 1."""
        return activity.info().attempt - self.waited


class _Beating(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        before, tries = _before(), getattr(input.args[0], "tries", 0) if input.args else 0
        if tries and before.number > tries + MOST_LOST:
            raise ApplicationError(
                f"{MOST_LOST} tries were lost with their workers", type="WorkerLost", non_retryable=True
            )
        token = _earlier.set(before.faults)
        try:
            async with _beats(before):
                return await super().execute_activity(input)
        except (asyncio.CancelledError, ApplicationError):
            raise
        except Exception as error:
            if not isinstance(error, MendworkError):
                activity.logger.exception("unexpected error in %s", activity.info().activity_type)
            raise _failure(error, before, tries=tries) from error
        finally:
            _earlier.reset(token)


def _before() -> _Before:
    details = activity.info().heartbeat_details
    listed = details[0] if details and isinstance(details[0], list) else []
    waited = details[1] if len(details) > 1 and isinstance(details[1], int) else 0
    return _Before(faults=tuple(Fault.from_mapping(raw) for raw in listed), waited=waited)


@contextlib.asynccontextmanager
async def _beats(before: _Before) -> AsyncIterator[None]:
    task = asyncio.create_task(_beat(before))
    try:
        yield
    finally:
        task.cancel()


async def _beat(before: _Before) -> None:
    timeout = activity.info().heartbeat_timeout
    while timeout is not None:
        await asyncio.sleep(timeout.total_seconds() / 4)  # most are done by then; the server keeps what was told before
        activity.heartbeat(*before.details())


def _failure(error: Exception, before: _Before, *, tries: int) -> ApplicationError:
    """The failure that Temporal sees: its type is the class name, its details are the faults of all tries.

    What is not ours is tried again like a transient fault: a bounded policy ends it, and a fixed worker may heal it.
    ``tries`` is the bound of a request that may also wait for its turn, which the policy cannot count; 0 for others.
    """
    info, waits = activity.info(), isinstance(error, Crowded)
    fault = Fault.of(error, source=info.activity_type, number=before.number)
    after = _Before(faults=told_after(before.faults, fault), waited=before.waited + waits)
    activity.heartbeat(*after.details())
    activity.logger.log(
        logging.DEBUG if waits else logging.WARNING, "try %d: %s: %s", fault.number, fault.kind, fault.sentence
    )
    hopeless = isinstance(error, MendworkError) and not isinstance(error, Transient)
    hopeless = hopeless or (not waits and is_last(before.number, tries=tries))
    delay = next_delay(number=before.number, retry_after=fault.retry_after, jitter=random.random())  # noqa: S311 - spread
    if isinstance(error, Busy):
        delay = fault.retry_after or 1.0  # a place that becomes free is not left empty; nothing outside is asked
    return ApplicationError(
        fault.sentence,
        after.details()[0],
        type=fault.kind,
        non_retryable=hopeless,
        next_retry_delay=None if hopeless else timedelta(seconds=delay),
        category=ApplicationErrorCategory.BENIGN if waits else ApplicationErrorCategory.UNSPECIFIED,  # no alarm, no log
    )
