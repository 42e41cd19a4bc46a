"""Heartbeats for every activity, which carry the faults of all its tries.

The server writes no event for a try that failed; heartbeat details survive from try to try, so each try's heartbeats
carry the list on, and the result or the last failure brings it into the history.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import Busy, MendworkError, Transient
from domain.recovery.fault import Fault
from domain.recovery.retry import next_delay

_earlier: ContextVar[tuple[Fault, ...]] = ContextVar("earlier_faults", default=())


def earlier_faults() -> tuple[Fault, ...]:
    """The faults of this activity's earlier tries, oldest first."""
    return _earlier.get()


class BeatingInterceptor(Interceptor):
    """Makes every activity beat, and raise what it raises as one classified, typed failure."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Called by the worker for each activity."""
        return _Beating(next)


class _Beating(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        faults = tuple(Fault.from_mapping(raw) for raw in _recorded())
        token = _earlier.set(faults)
        try:
            async with _beats(faults):
                return await super().execute_activity(input)
        except (asyncio.CancelledError, ApplicationError):
            raise
        except Exception as error:
            if not isinstance(error, MendworkError):
                activity.logger.exception("unexpected error in %s", activity.info().activity_type)
            raise _failure(error, faults) from error
        finally:
            _earlier.reset(token)


def _recorded() -> list[Any]:
    details = activity.info().heartbeat_details
    return list(details[0]) if details and isinstance(details[0], list) else []


@contextlib.asynccontextmanager
async def _beats(faults: tuple[Fault, ...]) -> AsyncIterator[None]:
    task = asyncio.create_task(_beat([asdict(fault) for fault in faults]))
    try:
        yield
    finally:
        task.cancel()


async def _beat(details: list[dict[str, Any]]) -> None:
    timeout = activity.info().heartbeat_timeout
    while timeout is not None:
        activity.heartbeat(details)
        await asyncio.sleep(timeout.total_seconds() / 4)


def _failure(error: Exception, earlier: tuple[Fault, ...]) -> ApplicationError:
    """The failure that Temporal sees: its type is the class name, its details are the faults of all tries.

    What is not ours is tried again like a transient fault: a bounded policy ends it, and a fixed worker may heal it.
    """
    info = activity.info()
    fault = Fault.of(error, source=info.activity_type, number=info.attempt)
    faults = [asdict(f) for f in (*earlier, fault)]
    activity.heartbeat(faults)
    activity.logger.warning("try %d: %s: %s", fault.number, fault.kind, fault.sentence)
    hopeless = isinstance(error, MendworkError) and not isinstance(error, Transient)
    delay = next_delay(number=info.attempt, retry_after=fault.retry_after, jitter=random.random())  # noqa: S311 - spread
    if isinstance(error, Busy):
        delay = fault.retry_after or 1.0  # a place that becomes free is not left empty; nothing outside is asked
    return ApplicationError(
        fault.sentence,
        faults,
        type=fault.kind,
        non_retryable=hopeless,
        next_retry_delay=None if hopeless else timedelta(seconds=delay),
    )
