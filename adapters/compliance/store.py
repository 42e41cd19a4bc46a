"""What every store must do. Subclass with a fixture ``store`` that gives an empty one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.build.view import ENDED, PHASE, STARTED
from domain.errors import EventConflict, EventUnreadable, InvalidInput, KeyConflict
from domain.ports.store import BuildRow, Event, Store, UndoRecord

FRESH = count(1)
# One store serves all examples, each with a build of its own, and every subclass runs the same function.
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]


def event(sequence: int, kind: str = "task.started", *, build: str = "build-a-1", task: str = "", **data: Any) -> Event:
    """The ``sequence``-th fact of ``build``'s only run, one second after the one before."""
    run = f"run-{build}"
    at = sequence * 1000
    return Event(first_run=run, run=run, sequence=sequence, build=build, kind=kind, at=at, task=task, data=data)


def whole_build(build: str = "build-a-1") -> list[Event]:
    return [
        event(1, STARTED, build=build, project="a", title="Add tags"),
        event(2, PHASE, build=build, phase="plan"),
        event(3, "task.started", build=build, task="one"),
        event(4, PHASE, build=build, phase="land"),
        event(5, ENDED, build=build, status="succeeded", sentence="on branch mendwork/a"),
    ]


def row(build: str = "build-a-1", **changes: Any) -> BuildRow:
    """What ``whole_build`` folds to."""
    done = BuildRow(
        build=build, project="a", title="Add tags", phase="land", status="succeeded", started=1000, ended=5000
    )
    return replace(done, **changes)


class EventLogCompliance:
    async def test_what_was_appended_is_read_in_order_with_ascending_positions(self, store: Store) -> None:
        events = whole_build()
        assert await store.events.append(events) == 5
        read = await store.events.read("build-a-1")
        assert [e for _, e in read] == events
        assert [position for position, _ in read] == sorted({position for position, _ in read})

    async def test_a_reader_goes_on_after_a_position(self, store: Store) -> None:
        await store.events.append(whole_build()[:2])
        last = (await store.events.read("build-a-1"))[-1][0]
        await store.events.append(whole_build("build-a-2"))
        await store.events.append(whole_build())
        later = await store.events.read("build-a-1", after=last)
        assert [e.sequence for _, e in later] == [3, 4, 5]

    async def test_a_build_without_events_reads_as_empty(self, store: Store) -> None:
        assert list(await store.events.read("build-none-1")) == []

    async def test_appending_nothing_is_fine(self, store: Store) -> None:
        assert await store.events.append([]) == 0

    async def test_a_retry_after_a_lost_acknowledgement_changes_nothing(self, store: Store) -> None:
        await store.events.append(whole_build())
        before = await store.events.read("build-a-1"), await store.builds.get("build-a-1")
        assert await store.events.append(whole_build()) == 0
        assert (await store.events.read("build-a-1"), await store.builds.get("build-a-1")) == before

    async def test_a_batch_with_known_and_new_rows_adds_the_new_ones(self, store: Store) -> None:
        await store.events.append(whole_build()[:3])
        assert await store.events.append(whole_build()) == 2

    async def test_the_same_event_twice_in_one_batch_is_one_event(self, store: Store) -> None:
        assert await store.events.append([event(1), event(1)]) == 1
        assert len(await store.events.read("build-a-1")) == 1

    @pytest.mark.parametrize(
        "changes",
        [{"at": 7}, {"kind": "other"}, {"task": "other"}, {"attempt": 2}, {"build": "other"}, {"data": {"n": 2}}],
        ids=lambda changes: next(iter(changes)),
    )
    async def test_another_content_under_one_key_fails_loudly(self, store: Store, changes: dict[str, Any]) -> None:
        await store.events.append([event(1, n=1)])
        with pytest.raises(EventConflict, match="run-build-a-1/run-build-a-1/1 "):
            await store.events.append([event(2), replace(event(1, n=1), **changes)])
        assert [e for _, e in await store.events.read("build-a-1")] == [event(1, n=1)], "all or nothing"

    async def test_two_contents_for_one_key_in_one_batch_fail_loudly(self, store: Store) -> None:
        with pytest.raises(EventConflict):
            await store.events.append([event(1, n=1), event(1, n=2)])
        assert list(await store.events.read("build-a-1")) == []

    async def test_a_batch_of_thousands_is_one_append(self, store: Store) -> None:
        events = [event(n, task="one", number=n) for n in range(1, 2501)]
        assert await store.events.append(events) == 2500
        assert await store.events.append(events) == 0
        assert [e.sequence for _, e in await store.events.read("build-a-1")] == list(range(1, 2501))

    async def test_any_text_in_data_comes_back_as_it_was(self, store: Store) -> None:
        data: dict[str, Any] = {
            "text": "\0 \ud800 ü 😀 \x1b[31m",
            "list": [1, 2.5, None, True],
            "deep": {"b": 1, "a": {}},
        }
        await store.events.append([event(1, task="one", **data)])
        assert (await store.events.read("build-a-1"))[0][1].data == data

    async def test_data_that_is_not_json_is_refused_with_the_key(self, store: Store) -> None:
        with pytest.raises(InvalidInput, match="run-build-a-1/1"):
            await store.events.append([event(1, number=float("nan"))])

    async def test_racing_appends_of_the_same_rows_store_them_once(self, store: Store) -> None:
        added = await asyncio.gather(*(store.events.append(whole_build()) for _ in range(6)))
        assert sum(added) == 5
        assert await store.builds.get("build-a-1") == row()


class BuildsCompliance:
    async def test_a_build_is_unknown_until_it_started(self, store: Store) -> None:
        await store.events.append(whole_build()[1:])
        assert await store.builds.get("build-a-1") is None
        await store.events.append(whole_build()[:1])
        assert await store.builds.get("build-a-1") == row()

    async def test_the_row_follows_the_events(self, store: Store) -> None:
        await store.events.append(whole_build()[:2])
        assert await store.builds.get("build-a-1") == row(phase="plan", status="running", ended=0)
        await store.events.append(whole_build()[2:])
        assert await store.builds.get("build-a-1") == row()

    @settings(max_examples=20, deadline=None, suppress_health_check=SHARED)
    @given(order=st.permutations(range(5)), again=st.lists(st.integers(0, 4), max_size=6), cut=st.integers(0, 5))
    async def test_any_order_and_any_repeats_give_the_same_row(
        self, store: Store, order: list[int], again: list[int], cut: int
    ) -> None:
        build = f"build-a-{next(FRESH)}"
        events = whole_build(build)
        for part in _split([events[n] for n in (*order, *again)], cut):
            await store.events.append(part)
        assert await store.builds.get(build) == row(build)

    async def test_an_event_without_its_data_is_refused_and_nothing_is_kept(self, store: Store) -> None:
        with pytest.raises(EventUnreadable, match="run-build-a-1/1"):
            await store.events.append([event(1, STARTED, project="a"), event(2)])
        assert list(await store.events.read("build-a-1")) == []

    async def test_builds_are_listed_newest_first_by_project_up_to_a_limit(self, store: Store) -> None:
        for number, project in enumerate(["a", "b", "a", "a"], 1):
            started = event(number, STARTED, build=f"build-{project}-{number}", project=project, title="t")
            await store.events.append([started])
        assert [r.build for r in await store.builds.list()] == ["build-a-4", "build-a-3", "build-b-2", "build-a-1"]
        assert [r.build for r in await store.builds.list(project="a", limit=2)] == ["build-a-4", "build-a-3"]
        assert list(await store.builds.list(project="none")) == []

    async def test_numbers_count_from_one_in_each_project(self, store: Store) -> None:
        assert [await store.builds.reserve_number(p) for p in ("a", "a", "b", "a")] == [1, 2, 1, 3]

    async def test_racing_reservations_are_unique_and_without_gaps(self, store: Store) -> None:
        taken = await asyncio.gather(*(store.builds.reserve_number("a") for _ in range(20)))
        assert sorted(taken) == list(range(1, 21))


class UndoCompliance:
    RECORD = UndoRecord(key="build-a-1/land/1", build="build-a-1", action="delete_branch", data={"branch": "x", "n": 1})

    async def test_a_registered_record_is_open_until_it_is_closed(self, store: Store) -> None:
        await store.undo.register(self.RECORD)
        assert list(await store.undo.open()) == [self.RECORD]
        await store.undo.close(self.RECORD.key, outcome="final")
        assert list(await store.undo.open()) == []

    async def test_open_records_come_oldest_first(self, store: Store) -> None:
        records = [replace(self.RECORD, key=f"build-a-1/land/{n}") for n in (3, 1, 2)]
        for record in records:
            await store.undo.register(record)
        assert list(await store.undo.open()) == records

    async def test_repeating_a_record_changes_nothing_while_it_is_open(self, store: Store) -> None:
        await store.undo.register(self.RECORD)
        await store.undo.register(self.RECORD)
        assert len(await store.undo.open()) == 1
        await store.undo.close(self.RECORD.key, outcome="undone")
        assert list(await store.undo.open()) == []

    @pytest.mark.parametrize("outcome", ["undone", "final", "failed: the forge is down"])
    async def test_a_step_of_a_build_that_was_reset_acts_again_and_can_be_undone_again(
        self, store: Store, outcome: str
    ) -> None:
        await store.undo.register(self.RECORD)
        await store.undo.close(self.RECORD.key, outcome=outcome)
        await store.undo.register(self.RECORD)
        assert list(await store.undo.open()) == [self.RECORD]
        await store.undo.close(self.RECORD.key, outcome="undone")
        assert list(await store.undo.open()) == []

    async def test_another_content_under_one_key_is_refused(self, store: Store) -> None:
        await store.undo.register(self.RECORD)
        with pytest.raises(KeyConflict, match="build-a-1/land/1"):
            await store.undo.register(replace(self.RECORD, data={"branch": "y"}))
        assert list(await store.undo.open()) == [self.RECORD]

    async def test_repeating_an_outcome_changes_nothing_and_another_one_is_refused(self, store: Store) -> None:
        await store.undo.register(self.RECORD)
        await store.undo.close(self.RECORD.key, outcome="undone")
        await store.undo.close(self.RECORD.key, outcome="undone")
        with pytest.raises(KeyConflict, match="undone already"):
            await store.undo.close(self.RECORD.key, outcome="final")

    async def test_what_failed_may_still_be_undone(self, store: Store) -> None:
        await store.undo.register(self.RECORD)
        await store.undo.close(self.RECORD.key, outcome="failed: the forge is down")
        assert list(await store.undo.open()) == []
        await store.undo.close(self.RECORD.key, outcome="undone")

    async def test_unknown_records_and_outcomes_are_refused(self, store: Store) -> None:
        with pytest.raises(KeyConflict, match="no undo record"):
            await store.undo.close("build-a-1/none/1", outcome="final")
        await store.undo.register(self.RECORD)
        with pytest.raises(InvalidInput, match="known: final, undone"):
            await store.undo.close(self.RECORD.key, outcome="fine")


def _split(events: Sequence[Event], cut: int) -> list[Sequence[Event]]:
    return [events[:cut], events[cut:]]
