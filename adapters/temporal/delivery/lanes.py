"""Joining a lane, whether it runs or not: one request to Temporal signals it and starts it where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.service import RPCError

from domain.errors import ServerUnavailable

PATIENCE = timedelta(seconds=10)
TASK = timedelta(seconds=5)
"""How long a workflow task of a killed worker blocks the lane."""


class TemporalLanes:
    """``domain.ports.sagas.Lanes`` on a client; lanes run on ``task_queue``."""

    def __init__(self, client: Client, *, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue

    async def join(self, lane: str, *, start: Mapping[str, Any], joining: Mapping[str, Any]) -> None:
        try:
            await self._client.start_workflow(
                "Lane",
                dict(start),
                id=lane,
                task_queue=self._task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                start_signal="join",
                start_signal_args=[dict(joining)],
                task_timeout=TASK,
                rpc_timeout=PATIENCE,
                static_summary=f"deliveries to {lane.removeprefix('lane-')}, one at a time",
            )
        except RPCError as error:
            raise ServerUnavailable(f"{lane} cannot be joined: {error.message}") from error
