"""The writer of the log says which phases stand out: once, before the end, from what the store holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from temporalio.testing import ActivityEnvironment

from activities.accounts.baselines import Baselines
from activities.records import RecordEventsInput, Records
from adapters.store import open_store
from domain.errors import StoreUnavailable
from domain.ports.store import Event, Store
from domain.trace.usual.baseline import KIND, LATEST, LEAST, Anomaly
from domain.trace.usual.taken import Taken

SECOND = 1_000
MINUTE = 60 * SECOND


class Reading:
    """An event log that counts the rows that are read of it, and can be away or slow."""

    def __init__(self, store: Store) -> None:
        self._log = store.events
        self.rows = 0
        self.away = False
        self.slow = False

    async def read(self, build: str, *, after: int = 0) -> Sequence[tuple[int, Event]]:
        if self.away:
            raise StoreUnavailable("the store does not answer")
        if self.slow:
            await asyncio.sleep(3_600)
        found = await self._log.read(build, after=after)
        self.rows += len(found)
        return found

    append = rebuild = None


@dataclass
class Desk:
    """A project's builds as their sagas write them, phase by phase, each flush one activity."""

    store: Store
    heard: list[tuple[Taken, Anomaly | None]] = field(default_factory=list)
    built: int = 0
    at: int = 1_795_176_000_000

    def __post_init__(self) -> None:
        self.reading = Reading(self.store)
        self.records = self.writer()

    def writer(self) -> Records:
        """That of one process."""
        told = lambda taken, anomaly: self.heard.append((taken, anomaly))  # noqa: E731
        baselines = Baselines(events=self.reading, builds=self.store.builds, told=told)  # type: ignore[arg-type]
        return Records(events=self.store.events, undo=self.store.undo, baselines=baselines)

    async def record(self, *rows: Event, by: Records | None = None) -> int:
        request = RecordEventsInput(events=rows)
        new: int = await ActivityEnvironment().run((by or self.records).record_events, request)
        return new

    def saga(self, project: str = "calc") -> Telling:
        self.built += 1
        return Telling(self, f"build-{project}-{self.built}", project)

    async def usual(self, *, builds: int = LEAST, plan: int = 20 * SECOND, cost: int = 50_000) -> None:
        for _ in range(builds):
            await self.saga().build(plan=plan, cost=cost)

    async def anomalies(self, build: str) -> list[Event]:
        return [event for _, event in await self.store.events.read(build) if event.kind == KIND]


class Telling:
    """One build."""

    def __init__(self, desk: Desk, name: str, project: str) -> None:
        self.desk, self.name, self.project = desk, name, project
        self.sequence = 0

    def note(self, kind: str, /, after: int = 0, **data: object) -> Event:
        self.desk.at += after
        self.sequence += 1
        return Event(
            first_run=f"run-{self.name}",
            run=f"run-{self.name}",
            sequence=self.sequence,
            build=self.name,
            kind=kind,
            at=self.desk.at,
            data=data,
        )

    async def begin(self) -> None:
        await self.desk.record(
            self.note("build.started", project="", title="T", user="ann"),
            self.note("build.admitted", project=self.project, spec="s"),
        )
        await self.desk.record(self.note("build.phase", phase="plan"))

    def planned(self, *, plan: int, cost: int) -> tuple[Event, Event]:
        usage = {"input_tokens": 1, "output_tokens": 1, "cost_micros": cost}
        call = {"step": "plan", "turn": 1, "model": "m", "prompt": "p", "faults": [], "problems": [], "usage": usage}
        return self.note("call.answered", plan, **call), self.note("build.phase", phase="landing")

    async def build(
        self, *, plan: int = 20 * SECOND, cost: int = 50_000, landing: int = 0, status: str = "succeeded"
    ) -> list[Event]:
        await self.begin()
        await self.desk.record(*self.planned(plan=plan, cost=cost))
        await self.desk.record(self.note("build.ended", landing, status=status, sentence="there"))
        return await self.desk.anomalies(self.name)


@pytest.fixture(params=["memory:", "sqlite"])
async def desk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    folder = tmp_path_factory.mktemp("store")
    url = request.param if request.param == "memory:" else f"sqlite:///{folder}/store.db"
    async with await open_store(url) as store:
        yield Desk(store)


async def test_a_phase_that_takes_three_times_its_usual_is_in_the_log_before_what_ends_it(desk: Desk) -> None:
    await desk.usual()
    saga = desk.saga()
    (row,) = await saga.build(plan=MINUTE, cost=150_000)
    assert row.data["phase"] == "plan"
    assert row.data["measures"] == ["duration", "cost"]
    assert (row.data["seconds"], row.data["usual_seconds"]) == (60, 20)
    assert (row.data["cost_micros"], row.data["usual_cost_micros"], row.data["phases"]) == (150_000, 50_000, LEAST)
    kinds = [event.kind for _, event in await desk.store.events.read(saga.name)]
    assert kinds.index(KIND) == kinds.index("call.answered") - 1, "before the batch that ends the phase"
    found = await desk.store.builds.get(saga.name)
    assert found is not None
    assert found.status == "succeeded", "and nothing else follows from it"


async def test_the_last_phase_is_told_of_before_the_end(desk: Desk) -> None:
    await desk.usual()
    saga = desk.saga()
    for _ in range(LEAST):
        await desk.saga().build(landing=2 * SECOND)
    (row,) = await saga.build(landing=MINUTE)
    assert row.data["phase"] == "landing"
    assert [event.kind for _, event in await desk.store.events.read(saga.name)][-2:] == [KIND, "build.ended"]


async def test_what_is_usual_is_no_anomaly_and_neither_is_anything_without_a_past(desk: Desk) -> None:
    await desk.usual(builds=LEAST - 1)
    assert await desk.saga().build(plan=10 * MINUTE) == [], "four are too few"
    assert await desk.saga().build(plan=59 * SECOND) == []
    assert await desk.saga("other").build(plan=10 * MINUTE) == [], "another project has another usual"


async def test_what_was_not_finished_and_dry_runs_are_not_the_usual(desk: Desk) -> None:
    for status in ("planned",) * LEAST:
        await desk.saga().build(status=status)
    assert await desk.saga().build(plan=10 * MINUTE) == []
    for status in ("failed",) * LEAST:
        await desk.saga("other").build(landing=SECOND, status=status)
    assert await desk.saga("other").build(landing=10 * MINUTE) == [], "nobody knows what a landing takes"


async def test_the_same_batch_twice_says_it_once_also_when_the_usual_has_changed_meanwhile(desk: Desk) -> None:
    await desk.usual()
    saga = desk.saga()
    await saga.begin()
    rows = saga.planned(plan=MINUTE, cost=50_000)
    assert await desk.record(*rows) == 2
    await desk.usual(builds=LEAST, plan=10 * SECOND)
    for by in (desk.records, desk.writer()):  # the worker that lost the answer, and another
        assert await desk.record(*rows, by=by) == 0
    assert len(await desk.anomalies(saga.name)) == 1


async def test_phases_that_end_in_one_batch_are_told_of_once_each_also_when_it_comes_again(desk: Desk) -> None:
    await desk.usual()
    saga = desk.saga()
    await saga.begin()
    rows = *saga.planned(plan=MINUTE, cost=0), saga.note("build.phase", 5 * MINUTE, phase="deliver")
    desk.heard.clear()
    for _ in range(2):
        await desk.record(*rows, by=desk.writer())
    assert [taken.phase for taken, _ in desk.heard] == ["plan", "landing"] * 2
    assert [row.data["phase"] for row in await desk.anomalies(saga.name)] == ["plan"]


async def test_a_rebuild_from_the_histories_which_know_nothing_of_it_leaves_it(desk: Desk) -> None:
    await desk.usual()
    saga = desk.saga()
    (row,) = await saga.build(plan=MINUTE)
    told = [event for _, event in await desk.store.events.read(saga.name) if event.kind != KIND]
    done = await desk.store.events.rebuild(saga.name, told)
    assert (done.changes, done.kept, done.same) == (False, (), len(told))
    assert await desk.anomalies(saga.name) == [row]


async def test_a_worker_that_dies_between_the_two_writes_leaves_nothing_unsaid(desk: Desk) -> None:
    await desk.usual()
    saga = desk.saga()
    await saga.begin()
    rows = saga.planned(plan=MINUTE, cost=50_000)
    await desk.store.events.append(rows)  # as if the log had been written by one that never compares
    await desk.record(*rows, by=desk.writer())
    assert len(await desk.anomalies(saga.name)) == 1


async def test_each_row_is_read_once(desk: Desk) -> None:
    await desk.usual(builds=LATEST)
    written = [len(await desk.store.events.read(f"build-calc-{number}")) for number in range(1, LATEST + 1)]
    assert desk.reading.rows <= sum(written)
    before = desk.reading.rows
    await desk.saga().build()
    assert desk.reading.rows - before <= 10, "its own rows, and the last ones of the build before"
    before = desk.reading.rows
    await desk.record(desk.saga().note("attempt.phase", phase="writing"))
    assert desk.reading.rows == before, "and nothing at all where no phase ends"


@pytest.mark.parametrize("trouble", ["away", "slow"])
async def test_a_past_that_cannot_be_read_stops_no_row(desk: Desk, trouble: str) -> None:
    await desk.usual()
    saga = desk.saga()
    await saga.begin()
    setattr(desk.reading, trouble, True)
    baselines = Baselines(events=desk.reading, builds=desk.store.builds)  # type: ignore[arg-type]
    rows = saga.planned(plan=MINUTE, cost=50_000)

    async def compared() -> tuple[Anomaly, ...]:
        return await baselines.anomalies(rows, seconds=0.05)

    assert await ActivityEnvironment().run(compared) == ()
    if trouble == "away":
        assert await desk.record(*rows) == 2


async def test_whoever_watches_hears_of_every_phase_and_of_what_stands_out(desk: Desk) -> None:
    await desk.usual()
    assert [(taken.phase, anomaly) for taken, anomaly in desk.heard][:3] == [
        ("intake", None),
        ("plan", None),
        ("landing", None),
    ]
    await desk.saga().build(plan=MINUTE)
    stood_out = [(taken.phase, anomaly.measures) for taken, anomaly in desk.heard if anomaly is not None]
    assert stood_out == [("plan", ("duration",))]


async def test_without_baselines_rows_are_written_as_ever(desk: Desk) -> None:
    records = Records(events=desk.store.events, undo=desk.store.undo)
    assert await desk.record(desk.saga().note("build.started", project="", title="T", user="ann"), by=records) == 1
