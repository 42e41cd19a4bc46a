"""What a lane, and who joins it, needs of the outside: Temporal itself, and the record of releases."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from domain.delivery.lane import lane_id
from domain.delivery.lane_state import DELIVER
from domain.delivery.recalling import LOOKED_AT, Recalled, recall
from domain.ports import sagas as ports
from domain.ports.releases import OPEN, Releases
from domain.ports.sagas import RUNNING, Sagas


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinLaneInput:
    """``kind`` is "deliver" or "rollback", ``by`` who wants it. ``heartbeat``, ``lease`` (seconds) and
    ``history_events`` are the lane's own, and count for the one that starts it."""

    project: str
    environment: str
    saga: str
    release: int
    kind: str = DELIVER
    commit: str = ""
    by: str = ""
    heartbeat: float = 5.0
    lease: float = 30.0
    history_events: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LookInput:
    """Whom to look at."""

    saga: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallInput:
    """Whose releases to look through."""

    project: str


class Lanes:
    """Runs beside the store, in a process that may ask Temporal about other workflows."""

    def __init__(self, *, lanes: ports.Lanes, sagas: Sagas, releases: Releases) -> None:
        self._lanes = lanes
        self._sagas = sagas
        self._releases = releases

    @activity.defn
    async def join_lane(self, request: JoinLaneInput) -> None:
        """Ask to be let in; the lane answers by the signal ``lane``. May be repeated. Raises ServerUnavailable."""
        start = {
            "project": request.project,
            "environment": request.environment,
            "lease": request.lease,
            "heartbeat": request.heartbeat,
            "history_events": request.history_events,
        }
        joining = {
            "saga": request.saga,
            "release": request.release,
            "kind": request.kind,
            "commit": request.commit,
            "by": request.by,
            "run": activity.info().workflow_run_id or "",
        }
        await self._lanes.join(lane_id(request.project, request.environment), start=start, joining=joining)

    @activity.defn
    async def look_at_holder(self, request: LookInput) -> str:
        """How the saga stands now: "running", "ended", "stopped" or "unknown". Raises ServerUnavailable."""
        return (await self._sagas.standings([request.saga]))[request.saga].state

    @activity.defn
    async def recall_releases(self, request: RecallInput) -> Recalled:
        """What a lane that starts anew has to know. Raises ServerUnavailable, StoreUnavailable."""
        releases = await self._releases.list(request.project, limit=LOOKED_AT)
        standings = await self._sagas.standings([release.saga for release in releases if release.status == OPEN])
        running = {saga for saga, standing in standings.items() if standing.state == RUNNING}
        return recall(releases, running=running)
