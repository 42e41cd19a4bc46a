"""The schedules that start the sweeper and the housekeeper: one each per task queue, made or brought up to date by
whoever comes first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError

from adapters.settings import Settings
from domain.errors import ServerUnavailable
from domain.ports.sagas import HOUSEKEEPER, SWEEPER

SETTLE_BEATS = 3
"""After so many heartbeat times the activities of a terminated workflow have noticed it and ended."""
HOUSEKEEPING_ENDS = timedelta(hours=6)
"""A housekeeper that finds no worker for so long gives up; the next one comes."""
CATCH_UP = timedelta(seconds=10)
"""A server that was down starts one sweep, not one for each that it missed; Temporal allows no less."""


def schedule_id(task_queue: str) -> str:
    """Two installations on one server sweep apart, as they work apart."""
    return f"{SWEEPER}-{task_queue}"


async def ensure_sweeper(client: Client, settings: Settings) -> str:
    """Create the schedule, or bring it up to date, and return its id. May be repeated, and by several at once.

    A schedule that somebody paused stays paused. Raises ServerUnavailable.
    """
    return await _ensure(client, schedule_id(settings.temporal.task_queue), _schedule(settings), at_once=True)


def housekeeping_id(task_queue: str) -> str:
    """As ``schedule_id``."""
    return f"{HOUSEKEEPER}-{task_queue}"


async def ensure_housekeeper(client: Client, settings: Settings) -> str:
    """As ``ensure_sweeper``, for the housekeeper, which has time: the first one comes with its interval."""
    return await _ensure(client, housekeeping_id(settings.temporal.task_queue), _housekeeping(settings), at_once=False)


async def _ensure(client: Client, name: str, wanted: Schedule, *, at_once: bool) -> str:
    def renewed(there: ScheduleUpdateInput) -> ScheduleUpdate:
        return ScheduleUpdate(schedule=replace(wanted, state=there.description.schedule.state))

    try:
        try:
            await client.create_schedule(name, wanted, trigger_immediately=at_once)
        except ScheduleAlreadyRunningError:
            await client.get_schedule_handle(name).update(renewed)
    except RPCError as error:
        raise ServerUnavailable(f"the schedule {name} cannot be made: {error.message}") from error
    return name


def _schedule(settings: Settings) -> Schedule:
    queue, heartbeat = settings.temporal.task_queue, settings.timeouts.heartbeat
    return Schedule(
        action=ScheduleActionStartWorkflow(
            "Sweeper",
            {"heartbeat": heartbeat, "settle": SETTLE_BEATS * heartbeat},
            id=schedule_id(queue),
            task_queue=queue,
            static_summary="find terminated builds and undo them",
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=settings.timeouts.sweep))]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCH_UP),
        state=ScheduleState(note="Terminated builds are undone by this; pausing it leaves them as they are."),
    )


def _housekeeping(settings: Settings) -> Schedule:
    queue = settings.temporal.task_queue
    return Schedule(
        action=ScheduleActionStartWorkflow(
            "Housekeeper",
            {"heartbeat": settings.timeouts.heartbeat},
            id=housekeeping_id(queue),
            task_queue=queue,
            execution_timeout=HOUSEKEEPING_ENDS,
            static_summary="take away what nothing needs any more",
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=settings.timeouts.housekeeping))]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCH_UP),
        state=ScheduleState(note="What is past its retention is taken away by this; pausing it keeps everything."),
    )
