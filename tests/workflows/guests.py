"""A workflow that stands for a delivery: it joins its lane, works when it is let in, and leaves as it was told to."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from activities.delivery.lanes import JoinLaneInput, Lanes
    from domain.delivery.lane import lane_id


@workflow.defn(name="Guest")
class Guest:
    """Takes fields of JoinLaneInput as a mapping, and ``outcome``: how it leaves by itself ("": when it is told to).
    Returns the last word of its lane."""

    def __init__(self) -> None:
        self._heard: list[dict[str, Any]] = []
        self._told: list[dict[str, Any]] = []

    @workflow.run
    async def run(self, request: Any) -> dict[str, Any]:
        """Join, be let in, work, leave."""
        outcome = request.pop("outcome", "")
        joining = JoinLaneInput(environment="production", saga=workflow.info().workflow_id, **request)
        await self._do(Lanes.join_lane, joining)
        await workflow.wait_condition(lambda: self._decided() or bool(self._told))
        if self._last().get("refused"):
            return self._last()
        if self._last().get("granted") and outcome:
            await self._do("work", asdict(joining))
            self._told.append({"outcome": outcome})
        await workflow.wait_condition(lambda: bool(self._told))
        lane = workflow.get_external_workflow_handle(lane_id(joining.project, joining.environment))
        release = {"number": joining.release, "commit": joining.commit}
        await lane.signal("leave", {"saga": joining.saga, "release": release, **self._told[0]})
        return self._last()

    @workflow.signal
    def lane(self, word: dict[str, Any]) -> None:
        """What the lane says."""
        self._heard.append(word)

    @workflow.signal
    def go(self, leaving: dict[str, Any]) -> None:
        """Leave so."""
        self._told.append(leaving)

    @workflow.query
    def heard(self) -> list[dict[str, Any]]:
        """Everything that the lane said."""
        return self._heard

    def _last(self) -> dict[str, Any]:
        return self._heard[-1] if self._heard else {}

    def _decided(self) -> bool:
        return bool(self._last().get("granted") or self._last().get("refused"))

    async def _do(self, activity: Any, request: Any) -> None:
        await workflow.execute_activity(
            activity,
            request,
            start_to_close_timeout=timedelta(seconds=60),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=100)),
        )
