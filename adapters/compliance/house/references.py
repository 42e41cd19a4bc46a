"""What every reference table must do. Subclass with a fixture ``store`` that gives an empty one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from domain.keeping.holders import BUILD, RELEASE, SNAPSHOT, Holder
from domain.money.budget import Budget, Payer
from domain.money.usage import Usage
from domain.ports.language_model import CallKey
from domain.ports.releases import Release
from domain.ports.store import BegunCall, Event, RecordedCall, Store, UndoRecord

SPEC, PLAN, LOG, ANSWER, STATE, PACKET, ARTIFACT, UNDO = (
    sha256(name.encode()).hexdigest() for name in ("s", "p", "l", "a", "state", "packet", "artifact", "undo")
)


def event(sequence: int, kind: str, *, build: str = "build-a-1", **data: Any) -> Event:
    """The ``sequence``-th fact of ``build``'s only run, one second after the one before."""
    run = f"run-{build}"
    return Event(first_run=run, run=run, sequence=sequence, build=build, kind=kind, at=sequence * 1000, data=data)


BEGUN = (
    event(1, "build.started", project="a", title="t"),
    event(2, "build.admitted", project="a", spec=SPEC),
    event(3, "build.planned", plan=PLAN, tasks=[]),
    event(4, "ask.opened", id="change-1", digest=PACKET),
)
TAKEN = event(5, "snapshot.taken", token="build-a-1@1", state=STATE, base="0" * 40)  # noqa: S106  no password
ENDED = event(6, "build.ended", status="succeeded", sentence="")
RELEASED = Release(
    project="a",
    number=1,
    saga="build-a-1-release",
    revision=2,
    kind="deliver",
    status="promoted",
    commit="0" * 40,
    build="build-a-1",
    artifact=ARTIFACT,
    started=1000,
    ended=2000,
)


async def answered(store: Store, build: str = "build-a-1") -> None:
    """A call whose answer is a blob."""
    key = CallKey(saga=build, step="plan", attempt=1)
    payer = Payer(user="ann", project="a", build=build, task="", phase="plan", role="reasoning")
    begun = BegunCall(request="r", model="m", payer=payer, at=3000, budget=Budget())
    number = await store.calls.begin(key, begun)
    usage = Usage(input_tokens=1, output_tokens=1, cost_micros=1)
    outcome = RecordedCall(request="r", model="m", answer=ANSWER, value="", problems=(), usage=usage)
    await store.calls.end(key, number, outcome=outcome)


async def found(store: Store) -> dict[str, Holder]:
    return {holder.name: holder for holder in await store.references.holders()}


async def named(store: Store, name: str) -> Mapping[str, str]:
    return await store.references.named((await found(store))[name])


class ReferencesCompliance:
    async def test_an_empty_store_has_no_holders(self, store: Store) -> None:
        assert list(await store.references.holders()) == []

    async def test_builds_snapshots_and_releases_hold(self, store: Store) -> None:
        await store.events.append([*BEGUN, TAKEN])
        await store.releases.record(RELEASED)
        holders = await found(store)
        assert {name: holder.kind for name, holder in holders.items()} == {
            "build-a-1": BUILD,
            "build-a-1@1": SNAPSHOT,
            "a#1": RELEASE,
        }
        assert {holder.project for holder in holders.values()} == {"a"}
        assert {holder.owner for holder in holders.values()} == {"build-a-1"}
        assert (holders["build-a-1"].started, holders["build-a-1"].ended) == (1000, 0)
        assert (holders["a#1"].number, holders["a#1"].status) == (1, "promoted")

    async def test_a_build_that_ended_says_when(self, store: Store) -> None:
        await store.events.append([*BEGUN, ENDED])
        assert (await found(store))["build-a-1"].ended == 6000

    async def test_a_reserved_release_number_holds_nothing(self, store: Store) -> None:
        await store.releases.reserve("a", saga="x")
        assert list(await store.references.holders()) == []

    async def test_a_build_names_what_its_rows_calls_and_undo_records_name(self, store: Store) -> None:
        await store.events.append(BEGUN)
        await answered(store)
        record = UndoRecord(key="build-a-1/land/1", build="build-a-1", action="retract", data={"commit": UNDO})
        await store.undo.register(record)
        await store.undo.close(record.key, outcome="final")
        assert await named(store, "build-a-1") == {
            SPEC: "spec",
            PLAN: "plan",
            PACKET: "digest",
            ANSWER: "answer",
            UNDO: "commit",
        }

    async def test_a_snapshot_and_a_release_name_their_own(self, store: Store) -> None:
        await store.events.append([*BEGUN, TAKEN])
        await store.releases.record(RELEASED)
        assert await named(store, "build-a-1@1") == {STATE: "state"}
        assert await named(store, "a#1") == {ARTIFACT: "artifact"}

    async def test_a_call_of_a_build_without_a_row_holds_too(self, store: Store) -> None:
        await answered(store, "build-b-1")
        holder = (await found(store))["build-b-1"]
        assert (holder.started, holder.ended) == (3000, 3000)
        assert await store.references.named(holder) == {ANSWER: "answer"}

    async def test_what_was_recorded_is_there_until_a_row_comes(self, store: Store) -> None:
        await store.events.append(BEGUN)
        holder = (await found(store))["build-a-1"]
        assert await store.references.recorded(holder) is None
        await store.references.record(holder, {SPEC: "spec", LOG: ""})
        assert await store.references.recorded((await found(store))["build-a-1"]) == {SPEC: "spec", LOG: ""}
        await answered(store)
        assert await store.references.recorded((await found(store))["build-a-1"]) is None, "its state is another"

    async def test_recording_again_replaces(self, store: Store) -> None:
        await store.events.append(BEGUN)
        holder = (await found(store))["build-a-1"]
        await asyncio.gather(*(store.references.record(holder, {SPEC: "spec", LOG: ""}) for _ in range(4)))
        await store.references.record(holder, {PLAN: "plan"})
        assert await store.references.recorded(holder) == {PLAN: "plan"}
        await store.references.record(holder, {})
        assert await store.references.recorded(holder) == {}

    async def test_what_is_forgotten_is_made_again(self, store: Store) -> None:
        await store.events.append([*BEGUN, TAKEN])
        holders = (await found(store)).values()
        for holder in holders:
            await store.references.record(holder, await store.references.named(holder))
        await store.references.forget(["build-a-1"])
        assert [await store.references.recorded(holder) is None for holder in holders] == [True, False]
        await store.references.forget()
        assert [await store.references.recorded(holder) for holder in holders] == [None, None]

    async def test_a_log_that_is_rebuilt_names_the_same(self, store: Store) -> None:
        await store.events.append([*BEGUN, TAKEN])
        before = await named(store, "build-a-1")
        await store.events.rebuild("build-a-1", [*BEGUN, TAKEN])
        assert await named(store, "build-a-1") == before
        assert await named(store, "build-a-1@1") == {STATE: "state"}
