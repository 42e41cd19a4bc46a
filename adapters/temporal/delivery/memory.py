"""Lanes without a server: the pure machine of ``domain.delivery.lane`` for each, for tests of what joins them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from domain.delivery.lane import join, opened
from domain.delivery.lane_signals import decode_lane_request
from domain.delivery.lane_state import LaneState
from domain.delivery.recalling import Recalled


class MemoryLanes:
    """``domain.ports.sagas.Lanes``. ``states`` are the lanes by their id; ``at`` is the time that they see."""

    def __init__(self) -> None:
        self.states: dict[str, LaneState] = {}
        self.at = 0

    async def join(self, lane: str, *, start: Mapping[str, Any], joining: Mapping[str, Any]) -> None:
        if lane not in self.states:
            wanted = decode_lane_request(start)
            state = LaneState(project=wanted.project, environment=wanted.environment, lease=wanted.lease)
            self.states[lane] = opened(replace(state, heartbeat=wanted.heartbeat), Recalled(), at=self.at)
        self.states[lane] = join(self.states[lane], dict(joining), at=self.at)
