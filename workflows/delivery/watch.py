"""The watch of a release: a window, a verdict, a row, again; until the figures, a person or the policy end it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.delivery.windows import Windows
from workflows.policies import Effects, to_its_end
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    from domain.errors import InvalidInput, MendworkError
    from domain.kpi.judging import FAIL, PASS, judge
    from domain.kpi.policy import ASK, EXTEND, ROLL_BACK
    from domain.kpi.watching import (
        CHOICES,
        PROMOTE,
        STOPPED,
        Watching,
        WatchOutcome,
        WatchRequest,
        chart_of,
        what_next,
    )
    from domain.review.weighing import one_line


CANCELLED = "cancelled"


@workflow.defn(failure_exception_types=[MendworkError])
class KpiWatch:
    """A child of its DeliverySaga, which alone speaks to it."""

    @workflow.init
    def __init__(self, request: Any = None, carried: Watching | None = None) -> None:
        # Its parent may speak to it before ``run`` has looked at its request.
        self._state = carried or Watching()
        self._effects = Effects()
        self._unheard: list[dict[str, Any]] = []

    @workflow.run
    async def run(self, request: Any = None, carried: Watching | None = None) -> WatchOutcome:
        """Takes a WatchRequest as JSON. Fails typed for one that is none; no measurement and no verdict makes it fail.

        ``carried`` is what an earlier run of the same watch hands over.
        """
        self._request = _decoded(request)
        self._effects.beat_every(timedelta(seconds=self._request.heartbeat))
        self._effects.fair_to(self._request.project)
        self._recorder = Recorder(build=self._request.case)
        self._windows = Windows(self._request, self._effects, ended=lambda: bool(self._state.ended))
        self._state.until = self._state.until or self._request.policy.windows
        try:
            while not self._state.ended:
                await self._next()
        except asyncio.CancelledError:
            self._state.end(CANCELLED, "it was cancelled")
            await to_its_end(self._end())
            raise
        await to_its_end(self._end())
        return self._state.outcome

    @workflow.query(description="The windows so far and the verdict on them.")
    def state(self) -> dict[str, Any]:
        """Small and pure."""
        state = self._state
        verdict = {"verdict": state.verdict.kind, "reason": state.verdict.reason}
        return {"windows": state.number, "until": state.until, "asked": state.asked, **verdict}

    @workflow.signal(description="From its delivery: somebody wants the release back now.")
    def stop(self, raw: Any = None) -> None:
        """Takes {"by"}; anything is enough."""
        by = _by(raw)
        self._state.end(STOPPED, f"{by or 'somebody'} wants the release back", by=by)

    @workflow.signal(
        description='From its delivery, when it was asked: {"choice": "promote"|"roll back"|"extend", "by"}.'
    )
    def decided(self, raw: Any = None) -> None:
        """What does not fit, or answers no question, is recorded and changes nothing."""
        state, by = self._state, _by(raw)
        choice = raw.get("choice") if isinstance(raw, Mapping) else None
        if choice not in CHOICES or not state.asked:
            reason = "nothing is asked" if choice in CHOICES else f"known choices: {', '.join(CHOICES)}"
            self._unheard.append({"choice": one_line(str(choice), limit=50), "by": by, "reason": reason})
        elif choice == EXTEND:
            state.asked, state.extended = False, True
        elif choice == PROMOTE:
            state.end(PASS, f"{by or 'a person'} promoted it: {state.verdict.reason}", by=by)
        else:
            state.end(STOPPED, f"{by or 'a person'} chose to roll back: {state.verdict.reason}", by=by)

    async def _next(self) -> None:
        """One window, and what follows from it."""
        if workflow.info().get_current_history_length() > self._request.history_events:
            await self._continue()
        window = await self._windows.after(self._state.number)
        if window is None:
            return
        state = self._state
        state.add(window, judge([*state.windows, window], self._request.policy))
        workflow.set_current_details(chart_of(tuple(state.points), state.verdict))
        faults = dict(window.candidate.faults)
        self._recorder.note(
            "watch.window",
            release=self._request.release,
            seconds=window.seconds,
            reason=state.verdict.reason,
            faults=faults,
            **asdict(state.points[-1]),
        )
        await self._follow()
        await self._flush()

    async def _follow(self) -> None:
        """While a person is asked, only a fail acts: a better figure does not take the question from them."""
        state, policy = self._state, self._request.policy
        if state.extended:
            state.until, state.extended = state.number + max(1, policy.extensions), False
        verdict = state.verdict
        what = what_next(verdict, policy, number=state.number, until=state.until)
        if state.asked and verdict.kind != FAIL:
            return
        if what == ROLL_BACK:
            state.end(verdict.kind, verdict.reason)
        elif what == PROMOTE:
            state.end(PASS, verdict.reason)
        elif what == ASK:
            await self._ask()

    async def _ask(self) -> None:
        """Once; measuring goes on meanwhile."""
        state = self._state
        said: dict[str, Any] = {"kind": state.verdict.kind, "reason": state.verdict.reason, "windows": state.number}
        self._recorder.note("watch.undecided", release=self._request.release, **said)
        state.asked = True
        if not await self._tell(said):
            state.end(state.verdict.kind, f"{state.verdict.reason}; nobody is there to be asked")

    async def _tell(self, said: Mapping[str, Any]) -> bool:
        """Whether its delivery heard of it."""
        parent = workflow.info().parent
        if parent is None:
            return False
        try:
            await workflow.get_external_workflow_handle(parent.workflow_id).signal("undecided", said)
        except FailureError:
            return False
        return True

    async def _continue(self) -> None:
        await self._flush()
        await workflow.wait_condition(workflow.all_handlers_finished)
        self._effects.heed_cancellation()
        if not self._state.ended:
            workflow.continue_as_new(args=[asdict(self._request), self._state])

    async def _end(self) -> None:
        self._effects.shield()
        outcome = self._state.outcome
        said: dict[str, Any] = {
            "kind": outcome.kind,
            "reason": outcome.reason,
            "by": outcome.by,
            "windows": outcome.windows,
        }
        self._recorder.note("watch.ended", release=self._request.release, verdict=outcome.verdict, **said)
        workflow.set_current_details(chart_of(outcome.series, self._state.verdict))
        await self._flush()

    async def _flush(self) -> None:
        while self._unheard:
            self._recorder.note("answer.refused", ask="watch", **self._unheard.pop(0))
        await self._recorder.flush(self._effects)


def _by(raw: Any) -> str:
    return one_line(str(raw.get("by", "")), limit=100) if isinstance(raw, Mapping) else ""


def _decoded(raw: Any) -> WatchRequest:
    if not isinstance(raw, Mapping):
        raise InvalidInput("a watch is started with one JSON object")
    converter = workflow.payload_converter()
    try:
        request: WatchRequest = converter.from_payloads(converter.to_payloads([raw]), [WatchRequest])[0]
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"this is no watch: {one_line(str(error), limit=200)}") from error
    if request.policy.window <= 0 or request.policy.rate <= 0:
        raise InvalidInput("a watch needs a window and a rate of more than 0")
    return request
