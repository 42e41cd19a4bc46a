"""The queue, lock and freeze of one environment: ``domain.delivery.lane``, made durable."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError

from workflows.policies import STORE, Effects

with workflow.unsafe.imports_passed_through():
    from activities.delivery.lanes import Lanes, LookInput, RecallInput
    from domain.delivery.lane import acknowledge, join, leave, looked, next_word, opened, told
    from domain.delivery.lane_signals import decode_lane_request
    from domain.delivery.lane_state import Holder, LaneState, details, view
    from domain.delivery.recalling import Recalled
    from domain.errors import MendworkError


@workflow.defn(failure_exception_types=[MendworkError])
class Lane:
    """Lives for ever. Handlers change the state at once; only the main loop speaks to sagas, one word after the other,
    and goes on in a new run between two words. What it has not said yet is in the state."""

    @workflow.init
    def __init__(self, request: Any = None, carried: LaneState | None = None) -> None:
        # The first saga joins before ``run`` has looked at the request.
        self._state = carried or LaneState()
        self._effects = Effects()

    @workflow.run
    async def run(self, request: Any = None, carried: LaneState | None = None) -> None:
        """Takes a LaneRequest as plain JSON; ``carried`` is what an earlier run hands over."""
        if not self._state.project:
            self._state = replace(self._state, **asdict(decode_lane_request(request)))
        self._effects.beat_every(timedelta(seconds=self._state.heartbeat))
        lease = asyncio.create_task(self._keep_lease())
        if not self._state.ready:
            await self._open()
        while True:
            workflow.set_current_details(details(self._state))
            await workflow.wait_condition(lambda: bool(self._state.outbox) or self._full() or lease.done())
            if lease.done():
                lease.result()
            if self._full():
                await self._continue(request)
            await self._tell()

    @workflow.signal(name="join", description='Ask to be let in: {"saga", "release", "kind", "commit", "by", "run"}.')
    def join_signal(self, raw: Any = None) -> None:
        self._state = join(self._state, raw, at=_now())

    @workflow.signal(name="leave", description='{"saga", "outcome", "sentence", "release": {…}, "current", "run"}.')
    def leave_signal(self, raw: Any = None) -> None:
        self._state = leave(self._state, raw, at=_now())

    @workflow.signal(name="acknowledge", description='End a freeze: {"by", "reason", "release"}.')
    def acknowledge_signal(self, raw: Any = None) -> None:
        self._acknowledge(raw)

    @workflow.update(name="acknowledge", description='End a freeze: {"by", "reason", "release"}.')
    def acknowledge_update(self, raw: Any = None) -> dict[str, str]:
        return self._acknowledge(raw)

    @workflow.query(description="Holder, queue, freeze, current release, history.")
    def state(self) -> Mapping[str, Any]:
        """Small and pure."""
        return view(self._state)

    def _acknowledge(self, raw: Any) -> dict[str, str]:
        self._state, ruling = acknowledge(self._state, raw, at=_now())
        return asdict(ruling)

    async def _open(self) -> None:
        request = RecallInput(project=self._state.project)
        found: Recalled = await self._effects.run(STORE, Lanes.recall_releases, request, summary="what production runs")
        self._state = opened(self._state, found, at=_now())

    async def _tell(self) -> None:
        """The oldest word, if there is one; a saga that is gone loses its place."""
        if not self._state.outbox:
            return
        self._state, word = next_word(self._state)
        gone = False
        try:
            await workflow.get_external_workflow_handle(word.saga).signal("lane", word.wire())
        except FailureError:
            gone = True
        self._state = told(self._state, word, gone=gone, at=_now())

    async def _keep_lease(self) -> None:
        """Look at the holder, again and again. Where nobody can look, nothing is known: the lease goes on."""
        while True:
            await workflow.wait_condition(lambda: self._state.holder is not None)
            if (holder := self._state.holder) is None:
                continue
            await self._until_due(holder)
            if self._holds(holder.place.saga):
                await self._look(holder.place.saga)

    async def _until_due(self, holder: Holder) -> None:
        saga, due = holder.place.saga, holder.looked / 1000 + self._state.lease
        with contextlib.suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: not self._holds(saga),
                timeout=timedelta(seconds=max(due - workflow.now().timestamp(), 0.001)),
                timeout_summary=f"look at {saga}",
            )

    async def _look(self, saga: str) -> None:
        try:
            standing = await self._effects.run(STORE, Lanes.look_at_holder, LookInput(saga=saga))
        except ActivityError:
            standing = ""
        self._state = looked(self._state, saga, standing, at=_now())

    def _holds(self, saga: str) -> bool:
        return self._state.holder is not None and self._state.holder.place.saga == saga

    def _full(self) -> bool:
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() > self._state.history_events

    async def _continue(self, request: Any) -> None:
        """A look that is under way is lost with this run; the next one looks again."""
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(args=[request, self._state])


def _now() -> int:
    return int(workflow.now().timestamp() * 1000)
