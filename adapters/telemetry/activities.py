"""Every try of an activity is timed, counted and named for what is said while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from adapters.telemetry.metrics import Metrics, Stopwatch
from adapters.telemetry.subject import Watcher, current, subject_of

_ENDED = "build.ended"


class MeasuringInterceptor(Interceptor):
    """The outermost of a worker's interceptors: it sees the classified error. ``watchers`` hear of model calls."""

    def __init__(self, metrics: Metrics, watchers: Sequence[Watcher] = ()) -> None:
        self.metrics = metrics
        self.watchers = (metrics.model_call, *watchers)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Called by the worker for each activity."""
        return _Measuring(next, self)


class _Measuring(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, root: MeasuringInterceptor) -> None:
        super().__init__(next)
        self._root = root

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info, request = activity.info(), input.args[0] if input.args else None
        root, workflow = self._root, info.workflow_id or ""
        subject = subject_of(request, workflow=workflow, watchers=root.watchers, phases=(root.metrics.phase_ended,))
        token, watch, outcome, fault = current.set(subject), Stopwatch(), "failed", ""
        try:
            result = await super().execute_activity(input)
            outcome = "completed"
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except Exception as error:
            fault = kind_of(error)
            raise
        finally:
            current.reset(token)
            self._root.metrics.activity_ended(info.activity_type, outcome, seconds=watch.seconds, fault=fault)
        self._count_builds(request, result)
        return result

    def _count_builds(self, request: Any, new: Any) -> None:
        """Rows of builds that ended; a batch that was there already counts nothing."""
        for event in getattr(request, "events", ()) if new and isinstance(new, int) else ():
            if getattr(event, "kind", "") == _ENDED:
                self._root.metrics.build_ended(str(event.data.get("status", "")))


def kind_of(error: BaseException) -> str:
    """The error's class as the wire names it."""
    return (error.type if isinstance(error, ApplicationError) else "") or type(error).__name__
