"""The windows of a watch: each is had within its time, or is one that nobody could measure."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.policies import DEPLOY, Effects, Policy, granting, to_its_end

with workflow.unsafe.imports_passed_through():
    from activities.delivery.measuring import Measuring
    from domain.kpi.policy import WatchPolicy
    from domain.kpi.watching import WatchRequest, unmeasured
    from domain.kpi.window import Window
    from domain.ports.load import LoadOrder

MARGIN = 10.0
"""Seconds that a window's activity may take beside its requests."""


class Windows:
    """Measures on the deploy queue, until ``ended`` says that nobody wants to know any more."""

    def __init__(self, request: WatchRequest, effects: Effects, *, ended: Callable[[], bool]) -> None:
        self._request = request
        self._effects = effects
        self._ended = ended

    async def after(self, number: int) -> Window | None:
        """The next window; None when the watch ended meanwhile. One that cannot be had takes as many numbers as it
        took time: a watch does not grow longer by being blind."""
        began, policy = workflow.now(), self._request.policy
        window = await self._measured(number + 1)
        self._effects.heed_cancellation()
        if window is not None and not self._ended():
            return window
        left = policy.window - (workflow.now() - began).total_seconds()
        await self._until(self._ended, seconds=left)
        passed = (workflow.now() - began).total_seconds()
        last = number + max(1, round(passed / policy.window))
        return None if self._ended() else unmeasured(last, policy, baseline=bool(self._request.baseline))

    async def _measured(self, number: int) -> Window | None:
        patient = _patient(self._request.policy)
        order = self._order(number)
        measuring = asyncio.ensure_future(
            self._effects.run(patient, Measuring.measure_window, order, summary=f"window {number}")
        )
        try:
            await self._until(lambda: measuring.done() or self._ended(), seconds=patient.retry_seconds)
        finally:
            measuring.cancel()
            with contextlib.suppress(asyncio.CancelledError, ActivityError):
                await to_its_end(_result(measuring))
        try:
            return measuring.result()
        except (asyncio.CancelledError, ActivityError):
            return None

    async def _until(self, what: Callable[[], bool], *, seconds: float) -> None:
        if seconds > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await workflow.wait_condition(what, timeout=timedelta(seconds=seconds))

    def _order(self, number: int) -> LoadOrder:
        wanted = self._request
        return LoadOrder(
            number=number,
            candidate=wanted.candidate,
            baseline=wanted.baseline,
            health=wanted.health,
            probes=wanted.policy.probes,
            rate=wanted.policy.rate,
            seconds=wanted.policy.window,
            timeout=wanted.policy.timeout,
        )


def _patient(policy: WatchPolicy) -> Policy:
    """A worker that was lost may come back and measure the window; a watch does not wait for it much longer."""
    granted = granting(DEPLOY, policy.window + policy.timeout + MARGIN)
    return replace(granted, tries=0, retry_seconds=2 * policy.window + policy.timeout + MARGIN)


async def _result(measuring: asyncio.Future[Window]) -> Window:
    return await measuring
