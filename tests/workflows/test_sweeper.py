"""Builds that were terminated: found, left alone as long as anything of them runs, undone newest first, once."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.delivery.releases import ReleaseBook
from activities.records import Records
from activities.repository.landing import CompensateInput
from activities.sweeping import ExpireHoldsInput, Sweeping, known_tasks, open_asks, open_tasks
from adapters.store.memory import MemoryEventLog, MemoryStore
from adapters.temporal.sagas import TemporalSagas
from domain.errors import EventUnreadable
from domain.ports.sagas import RUNNING, sweep_id
from domain.ports.store import Event, UndoRecord
from tests.workflows.stays import Stays
from workflows.sweeper import SweepBuild, Sweeper

QUICK = {"heartbeat": 2.0, "settle": 0.05}


@dataclass
class Outside:
    """The compensations, in the order in which they ran; ``stuck`` actions fail for good, ``foreign`` undo nothing."""

    stuck: Sequence[str] = ()
    foreign: Sequence[str] = ()
    hold: asyncio.Event | None = None
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    done: list[tuple[str, CompensateInput]] = field(default_factory=list)
    expired: list[int] = field(default_factory=list)

    def actions(self) -> list[str]:
        return [name for name, _ in self.done]

    @activity.defn(name="forget_build")
    async def forget(self, request: CompensateInput) -> bool:
        return await self._undo("forget_build", request)

    @activity.defn(name="retract_result")
    async def retract(self, request: CompensateInput) -> bool:
        return await self._undo("retract_result", request)

    @activity.defn(name="release_build")
    async def release(self, request: CompensateInput) -> bool:
        return await self._undo("release_build", request)

    @activity.defn(name="expire_holds")
    async def expire(self, request: ExpireHoldsInput) -> int:
        self.expired.append(request.before)
        return 2

    async def _undo(self, name: str, request: CompensateInput) -> bool:
        self.done.append((name, request))
        if self.hold is not None:
            self.holding.set()
            await self.hold.wait()
        if name in self.stuck:
            raise ApplicationError("the repository is read-only", type="RepositoryRefused", non_retryable=True)
        return name not in self.foreign


class DamagedLog(MemoryEventLog):
    """Cannot read one build."""

    damaged = ""

    async def read(self, build: str, *, after: int = 0) -> Sequence[tuple[int, Event]]:
        if build == self.damaged:
            raise EventUnreadable("event r/r/1 is damaged")
        return await super().read(build, after=after)


class Scene:
    """One store, one queue, and builds that are only workflows with rows and records."""

    def __init__(self, client: Client, outside: Outside) -> None:
        self.client = client
        self.outside = outside
        self.store = MemoryStore()
        self.queue = uuid.uuid4().hex
        self._sequence = 0

    async def note(self, build: str, kind: str, /, *, task: str = "", attempt: int = 0, **data: Any) -> None:
        self._sequence += 1
        event = Event(
            first_run=build,
            run=build,
            sequence=self._sequence,
            build=build,
            kind=kind,
            at=self._sequence,
            task=task,
            attempt=attempt,
            data=data,
        )
        await self.store.events.append([event])

    async def register(self, build: str, step: str, action: str, **changes: Any) -> None:
        data = asdict(CompensateInput(project="notes", build=build)) | changes
        record = UndoRecord(key=f"{build}/{step}/1", build=build, action=action, data=data)
        await self.store.undo.register(record)

    async def begin(self, name: str) -> WorkflowHandle[Any, Any]:
        return await self.client.start_workflow("Stays", id=name, task_queue=self.queue)

    async def build(self) -> tuple[str, WorkflowHandle[Any, Any]]:
        """A build that runs, with a row and two records."""
        name = f"build-notes-{uuid.uuid4().hex}"
        handle = await self.begin(name)
        await self.note(name, "build.started", project="notes", title="Tags")
        await self.register(name, "fetch", "forget_build")
        await self.register(name, "land", "retract_result", commit="c1")
        return name, handle

    async def terminated(self) -> str:
        name, handle = await self.build()
        await handle.terminate()
        return name

    async def sweep(self, **changes: Any) -> dict[str, Any]:
        """One look, and then the end of every undoing that is under way."""
        name = f"sweep-{uuid.uuid4().hex}"
        async with asyncio.timeout(90):
            swept: dict[str, Any] = await self.client.execute_workflow(
                "Sweeper", {**QUICK, **changes}, id=name, task_queue=self.queue
            )
            for build in swept["builds"]:
                await self.client.get_workflow_handle(sweep_id(build)).result()
        return swept

    async def open(self, build: str) -> list[str]:
        return [record.action for record in await self.store.undo.open() if record.build == build]

    async def kinds(self, build: str) -> list[str]:
        return [event.kind for _, event in await self.store.events.read(build)]

    async def end(self, build: str) -> Event:
        return [event for _, event in await self.store.events.read(build) if event.kind == "build.ended"][-1]


@asynccontextmanager
async def scene(
    client: Client, outside: Outside | None = None, *, store: MemoryStore | None = None
) -> AsyncIterator[Scene]:
    at = Scene(client, outside or Outside())
    at.store = store or at.store
    records = Records(events=at.store.events, undo=at.store.undo)
    sweeping = Sweeping(store=at.store, sagas=TemporalSagas(client))
    beside: list[Callable[..., Any]] = [sweeping.find_orphans, sweeping.examine_build, at.outside.expire]
    beside += [records.record_events, records.close_undo, at.outside.release]
    beside += [ReleaseBook(releases=at.store.releases).record_release]
    async with (
        Worker(client, task_queue=at.queue, workflows=[Sweeper, SweepBuild, Stays], activities=beside),
        Worker(client, task_queue=f"{at.queue}-workspace", activities=[at.outside.forget, at.outside.retract]),
    ):
        yield at


class TestATerminatedBuild:
    async def test_is_undone_newest_step_first_and_ends_in_the_log(self, client: Client) -> None:
        async with scene(client) as at:
            build = await at.terminated()
            swept = await at.sweep()
            assert swept["builds"] == [build]
            assert at.outside.actions() == ["retract_result", "forget_build"]
            assert at.outside.done[0][1] == CompensateInput(project="notes", build=build, commit="c1")
            assert await at.open(build) == []
            end = await at.end(build)
            assert end.data["status"] == "aborted"
            assert end.data["sentence"] == "it was terminated; what it had not made final is undone"
            row = await at.store.builds.get(build)
            assert row is not None
            assert (row.status, row.ended > 0) == ("aborted", True)

    async def test_is_swept_once_however_often_one_looks(self, client: Client) -> None:
        async with scene(client) as at:
            build = await at.terminated()
            await at.sweep()
            assert (await at.sweep())["builds"] == []
            assert at.outside.actions() == ["retract_result", "forget_build"]
            assert (await at.kinds(build)).count("build.ended") == 1

    async def test_is_undone_once_by_sweepers_that_look_at_the_same_time(self, client: Client) -> None:
        outside = Outside(hold=asyncio.Event())
        async with scene(client, outside) as at:
            build = await at.terminated()
            first = asyncio.create_task(at.sweep())
            await outside.holding.wait()
            second = await at.sweep()
            assert second["builds"] == []
            assert outside.hold is not None
            outside.hold.set()
            assert (await first)["builds"] == [build]
            assert outside.actions() == ["retract_result", "forget_build"]

    async def test_holds_up_no_other_when_it_cannot_be_undone_now(self, client: Client) -> None:
        outside = Outside(hold=asyncio.Event())
        async with scene(client, outside) as at:
            await at.terminated()
            held = asyncio.create_task(at.sweep())
            await outside.holding.wait()
            other = await at.terminated()
            swept = await at.client.execute_workflow("Sweeper", QUICK, id=uuid.uuid4().hex, task_queue=at.queue)
            assert swept["builds"] == [other]
            assert outside.hold is not None
            outside.hold.set()
            await held
            await at.client.get_workflow_handle(sweep_id(other)).result()
            assert await at.open(other) == []

    async def test_says_what_could_not_be_undone_and_goes_on_with_the_rest(self, client: Client) -> None:
        async with scene(client, Outside(stuck=["retract_result"])) as at:
            build = await at.terminated()
            await at.sweep()
            assert at.outside.actions() == ["retract_result", "forget_build"]
            sentence = (await at.end(build)).data["sentence"]
            assert sentence == ("it was terminated; could not be undone: retract_result: the repository is read-only")
            assert await at.open(build) == []

    async def test_says_what_is_somebody_elses_now(self, client: Client) -> None:
        async with scene(client, Outside(foreign=["retract_result"])) as at:
            build = await at.terminated()
            await at.sweep()
            assert "retract_result: it is somebody else's now" in (await at.end(build)).data["sentence"]

    @pytest.mark.parametrize(
        ("action", "data", "why"),
        [("fold_space", {}, "does not know how"), ("forget_build", {"colour": "red"}, "unknown field 'colour'")],
    )
    async def test_with_a_record_of_another_version_is_told_and_the_rest_undone(
        self, client: Client, action: str, data: dict[str, str], why: str
    ) -> None:
        async with scene(client) as at:
            build, handle = await at.build()
            await at.register(build, "later", action, **data)
            await handle.terminate()
            await at.sweep()
            assert at.outside.actions() == ["retract_result", "forget_build"]
            assert why in (await at.end(build)).data["sentence"]
            assert await at.open(build) == []

    async def test_before_its_first_step_still_ends_in_the_log(self, client: Client) -> None:
        async with scene(client) as at:
            name = f"build-notes-{uuid.uuid4().hex}"
            handle = await at.begin(name)
            await at.note(name, "build.started", project="notes", title="Tags")
            await handle.terminate()
            await at.sweep()
            assert (await at.end(name)).data["status"] == "aborted"
            assert at.outside.done == []

    async def test_leaves_no_task_running_and_no_ask_open_in_the_log(self, client: Client) -> None:
        async with scene(client) as at:
            build, handle = await at.build()
            await at.note(build, "build.planned", tasks=[{"id": "api"}, {"id": "web"}])
            for task in ("api", "web"):
                await at.note(build, "task.started", task=task, base="c0")
            await at.note(build, "attempt.started", task="web", attempt=2)
            await at.note(build, "task.ended", task="api", status="green", commit="c2")
            await at.note(build, "ask.opened", task="web", id="q1", about="task", digest="d")
            await handle.terminate()
            await at.sweep()
            log = [event for _, event in await at.store.events.read(build)]
            assert (open_tasks(log), open_asks(log)) == ((), ())
            ended = [(e.task, e.attempt, e.data["status"]) for e in log if e.kind == "task.ended"]
            assert ended == [("api", 0, "green"), ("web", 2, "aborted")]
            closed = next(event for event in log if event.kind == "ask.closed")
            assert (closed.task, closed.data["id"], closed.data["choice"]) == ("web", "q1", "superseded")

    async def test_gives_back_its_places_beside_the_store(self, client: Client) -> None:
        async with scene(client) as at:
            build, handle = await at.build()
            await at.register(build, "places", "release_build")
            await handle.terminate()
            await at.sweep()
            assert at.outside.actions() == ["release_build", "retract_result", "forget_build"]

    async def test_that_told_its_end_already_is_undone_without_a_second_end(self, client: Client) -> None:
        async with scene(client) as at:
            build, handle = await at.build()
            await at.note(build, "build.ended", status="failed", sentence="no", fault="BaseIsRed")
            await handle.terminate()
            await at.sweep()
            assert await at.open(build) == []
            assert (await at.end(build)).data["status"] == "failed"

    async def test_with_a_damaged_log_is_left_and_others_are_swept(self, client: Client) -> None:
        store = MemoryStore()
        log = DamagedLog({})
        store.events = log
        async with scene(client, store=store) as at:
            log.damaged = await at.terminated()
            other = await at.terminated()
            assert (await at.sweep())["builds"] == [other]
            assert await at.open(log.damaged) == ["forget_build", "retract_result"]


class TestWhatStillRuns:
    async def test_a_running_build_is_left_alone(self, client: Client) -> None:
        async with scene(client) as at:
            build, handle = await at.build()
            assert (await at.sweep())["builds"] == []
            assert at.outside.done == []
            assert len(await at.open(build)) == 2
            await handle.terminate()

    async def test_a_build_that_ended_well_is_left_alone_whatever_its_records_say(self, client: Client) -> None:
        async with scene(client) as at:
            build, handle = await at.build()
            await handle.signal("end")
            await handle.result()
            assert (await at.sweep())["builds"] == []
            assert len(await at.open(build)) == 2

    async def test_a_build_that_this_server_does_not_know_is_left_alone(self, client: Client) -> None:
        async with scene(client) as at:
            await at.note("build-elsewhere-1", "build.started", project="notes", title="Tags")
            await at.register("build-elsewhere-1", "fetch", "forget_build")
            assert (await at.sweep())["builds"] == []
            assert at.outside.done == []

    @pytest.mark.parametrize("told", ["by its plan", "by its own rows"])
    async def test_a_terminated_build_waits_for_its_last_task(self, client: Client, told: str) -> None:
        async with scene(client) as at:
            build, handle = await at.build()
            if told == "by its plan":
                await at.note(build, "build.planned", tasks=[{"id": "api"}])
            else:
                await at.note(build, "task.started", task="api", base="c0")
            task = await at.begin(f"{build}-task-api")
            await handle.terminate()
            assert (await at.sweep())["builds"] == []
            assert at.outside.done == []
            await task.signal("end")
            await task.result()
            assert (await at.sweep())["builds"] == [build]
            assert at.outside.actions() == ["retract_result", "forget_build"]

    async def test_a_build_that_was_reset_meanwhile_goes_on_untouched(self, client: Client) -> None:
        async with scene(client) as at:
            build = await at.terminated()
            sweeping = asyncio.create_task(at.sweep(settle=2.0))
            await _running(client, sweep_id(build))
            again = await at.begin(build)
            await sweeping
            assert at.outside.done == []
            assert len(await at.open(build)) == 2
            await again.terminate()


async def test_holds_of_lost_calls_expire_a_day_after_they_were_taken(client: Client) -> None:
    async with scene(client) as at:
        before = time.time()
        swept = await at.sweep(hold=100.0)
        assert swept["expired"] == 2
        assert (before - 101) * 1000 <= at.outside.expired[0] <= (time.time() - 99) * 1000
        assert (await at.sweep())["builds"] == []
        assert at.outside.expired[1] < at.outside.expired[0] - 80_000_000


async def _running(client: Client, name: str) -> None:
    """Wait until the workflow runs."""
    async with asyncio.timeout(60):
        while (await TemporalSagas(client).standings([name]))[name].state != RUNNING:  # noqa: ASYNC110 - it is elsewhere
            await asyncio.sleep(0.01)


def fact(kind: str, *, task: str = "", attempt: int = 0, **data: Any) -> Event:
    return Event(first_run="r", run="r", sequence=1, build="b", kind=kind, at=1, task=task, attempt=attempt, data=data)


NAMES = st.sampled_from(["api", "web", "store"])
FACTS = st.one_of(
    st.builds(lambda task, n: fact("task.started", task=task, attempt=n), NAMES, st.integers(0, 3)),
    st.builds(lambda task, n: fact("attempt.started", task=task, attempt=n), NAMES, st.integers(0, 9)),
    st.builds(lambda task: fact("task.ended", task=task), NAMES),
    st.builds(lambda name, task: fact("ask.opened", id=name, about="task", task=task), NAMES, NAMES),
    st.builds(lambda name: fact("ask.closed", id=name, choice="skip"), NAMES),
    st.builds(lambda name: fact("build.planned", tasks=[{"id": name}]), NAMES),
)


@given(st.lists(FACTS))
def test_what_is_closed_last_is_not_open(events: list[Event]) -> None:
    tasks, asks = {task.id for task in open_tasks(events)}, {ask.id for ask in open_asks(events)}
    for name in ("api", "web", "store"):
        edges = [e.kind for e in events if e.task == name and e.kind in ("task.started", "task.ended")]
        assert (name in tasks) == (edges[-1:] == ["task.started"])
        doors = [e.kind for e in events if e.data.get("id") == name]
        assert (name in asks) == (doors[-1:] == ["ask.opened"])


@given(st.lists(FACTS))
def test_every_open_task_is_a_known_one(events: list[Event]) -> None:
    assert {task.id for task in open_tasks(events)} <= set(known_tasks(events))
