"""Mark and sweep on real blobs and stores: what is needed stays, whatever dies, races or is damaged meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.keeping.places import (
    ClearFoldersInput,
    DropPinsInput,
    EnvironmentHouse,
    ListPinsInput,
    MirrorHouse,
    SweepEnvironmentsInput,
)
from activities.keeping.stored import NO_BUILDS, JudgePinsInput, Keeping, SweepBlobsInput
from adapters.blobs.files import FileBlobs, open_files
from adapters.blobs.memory import MemoryBlobs
from adapters.store import open_store
from adapters.store.memory import MemoryStore
from domain.errors import DigestMismatch, EventUnreadable, ResourceShort, StoreUnavailable
from domain.keeping.holders import BUILD, DAY_MS, RELEASE, SNAPSHOT, Holder
from domain.keeping.retention import Retention
from domain.ports.kept.environments import KeptEnvironment
from domain.ports.kept.keeping import Pins, Remains
from domain.ports.releases import Release
from domain.ports.store import Event
from tests.adapters.processes import pipe, start

NOW = int(time.time() * 1000)
RETENTION = {"shop": Retention(builds=10, snapshots=5, environments=3)}
AGES = st.sampled_from([0, 2, 4, 7, 12, 30])


def days_ago(days: float) -> int:
    return NOW - int(days * DAY_MS)


class Shop:
    """Builds, snapshots and releases in a store of memory, their blobs as files."""

    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()
        self.folder = folder
        self.blobs: FileBlobs = open_files(folder)
        self.names: dict[str, str] = {}
        self.sequence = 0

    @property
    def keeping(self) -> Keeping:
        return Keeping(references=self.store.references, blobs=self.blobs, retention=RETENTION)

    async def put(self, name: str, *, age: float = 20, content: str = "") -> str:
        """A blob that was written so many days ago, and is known to the test by ``name``."""
        digest = await self.blobs.put((content or name).encode())
        at = days_ago(age) / 1000
        os.utime(self.folder / "blobs" / digest[:2] / digest[2:], (at, at))
        self.names[digest] = name
        return digest

    async def note(self, build: str, kind: str, *, age: float, **data: Any) -> None:
        self.sequence += 1
        event = Event(
            first_run=build, run=build, sequence=self.sequence, build=build, kind=kind, at=days_ago(age), data=data
        )
        await self.store.events.append([event])

    async def build(self, name: str, *, ended: float | None, started: float = 20, **digests: str) -> None:
        await self.note(name, "build.started", age=started, project="shop", title="t")
        await self.note(name, "build.told", age=started, **digests)
        if ended is not None:
            await self.note(name, "build.ended", age=ended, status="succeeded", sentence="")

    async def left(self) -> set[str]:
        return {self.names[blob.digest] for blob in await self.blobs.list()}

    async def sweep(self, **words: Any) -> Any:
        return await self.keeping.sweep_blobs(SweepBlobsInput(now=NOW, **words))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


async def test_what_a_past_build_wrote_goes_and_what_a_kept_one_names_stays(shop: Shop) -> None:
    await shop.build("b-1", ended=15, log=await shop.put("old log"), spec=await shop.put("shared"))
    await shop.build("b-2", ended=2, log=await shop.put("young log", age=2), spec=await shop.put("shared"))
    done = await shop.sweep()
    assert await shop.left() == {"shared", "young log"}
    assert (done.kind, done.count, done.bytes, done.stayed) == ("blobs", 1, len("old log"), 2)
    assert (await shop.sweep()).count == 0, "nothing is left to do"


async def test_what_is_named_only_inside_a_blob_stays_through_any_depth(shop: Shop) -> None:
    deep = await shop.put("deep")
    state = await shop.put("state", content=json.dumps({"plan": deep}))
    packet = await shop.put("packet", content=f"see {state}")
    await shop.build("b-1", ended=2, digest=packet)
    await shop.put("nobody's")
    assert (await shop.sweep()).count == 1
    assert await shop.left() == {"deep", "state", "packet"}


async def test_blobs_that_name_each_other_in_a_ring_do_not_hold_themselves(shop: Shop) -> None:
    first = await shop.put("first")
    await shop.put("second", content=f"{first} {first}")
    await shop.build("b-1", ended=2, log=await shop.put("log"))
    await shop.sweep()
    assert await shop.left() == {"log"}


async def test_a_snapshot_holds_what_its_build_no_longer_does(shop: Shop) -> None:
    plan = await shop.put("plan")
    state = await shop.put("state", content=json.dumps({"plan": plan}))
    shop_retention = {"shop": Retention(builds=1, snapshots=30)}
    await shop.build("b-1", ended=15, log=await shop.put("log"))
    await shop.note("b-1", "snapshot.taken", age=15, token="b-1@1", state=state)
    keeping = Keeping(references=shop.store.references, blobs=shop.blobs, retention=shop_retention)
    await keeping.sweep_blobs(SweepBlobsInput(now=NOW))
    assert await shop.left() == {"plan", "state"}


async def test_a_release_that_can_be_gone_back_to_holds_its_artifact(shop: Shop) -> None:
    await shop.build("b-1", ended=15, log=await shop.put("log"))
    released = Release(
        project="shop", number=1, saga="b-1-release", revision=1, kind="deliver", status="promoted", commit="c",
        build="b-1", artifact=await shop.put("artifact"), started=days_ago(15), ended=days_ago(15),
    )  # fmt: skip
    await shop.store.releases.record(released)
    await shop.sweep()
    assert await shop.left() == {"artifact"}


async def test_what_was_written_since_an_open_build_began_stays_though_nothing_names_it_yet(shop: Shop) -> None:
    await shop.build("b-1", ended=None, started=12)
    await shop.put("unnamed yet", age=11)
    await shop.put("older", age=13)
    done = await shop.sweep()
    assert await shop.left() == {"unnamed yet"}
    assert "b-1 is open since 12 days" in done.why


async def test_an_old_blob_that_an_open_build_put_again_stays(shop: Shop) -> None:
    """Its content was there already, from a build that is long over: the put makes it young."""
    await shop.build("b-1", ended=15, spec=await shop.put("spec"))
    await shop.build("b-2", ended=None, started=0.5)
    await shop.blobs.put(b"spec")
    assert (await shop.sweep()).count == 0


async def test_what_was_written_today_stays_without_any_build(shop: Shop) -> None:
    await shop.build("b-1", ended=15)
    await shop.put("young", age=0.9)
    await shop.put("old", age=1.1)
    await shop.sweep()
    assert await shop.left() == {"young"}


async def test_a_dry_run_tells_the_same_and_touches_nothing(shop: Shop) -> None:
    await shop.build("b-1", ended=15, log=await shop.put("old log"))
    await shop.build("b-2", ended=2, log=await shop.put("young log"))
    would = await shop.sweep(dry_run=True)
    assert await shop.left() == {"old log", "young log"}
    holders = await shop.store.references.holders()
    assert [await shop.store.references.recorded(holder) for holder in holders] == [None, None]
    assert await shop.sweep() == would


async def test_with_a_project_only_what_its_past_builds_wrote_goes(shop: Shop) -> None:
    await shop.build("b-1", ended=15, log=await shop.put("log"))
    await shop.note("c-1", "build.started", age=200, project="cafe", title="t")
    await shop.note("c-1", "build.told", age=200, log=await shop.put("cafe's", age=200))
    await shop.note("c-1", "build.ended", age=200, status="succeeded", sentence="")
    await shop.put("nobody's")
    assert (await shop.sweep(project="shop")).count == 1
    assert await shop.left() == {"cafe's", "nobody's"}


async def test_a_store_without_builds_is_not_believed(shop: Shop) -> None:
    await shop.put("of another store")
    done = await shop.sweep()
    assert (done.count, done.why) == (0, NO_BUILDS)
    assert await shop.left() == {"of another store"}


async def test_a_damaged_table_takes_nothing_and_made_afresh_it_works_again(shop: Shop) -> None:
    await shop.build("b-1", ended=2, log=await shop.put("log"))
    await shop.put("nobody's")
    (holder,) = await shop.store.references.holders()
    await shop.store.references.record(holder, {})
    shop.store.references._table[holder.name] = (holder.state, "0" * 64, {})
    with pytest.raises(DigestMismatch, match="--afresh"):
        await shop.sweep()
    assert await shop.left() == {"log", "nobody's"}
    await shop.sweep(afresh=True)
    assert await shop.left() == {"log"}


async def test_a_damaged_document_takes_nothing(shop: Shop) -> None:
    digest = await shop.put("packet")
    await shop.build("b-1", ended=2, digest=digest)
    await shop.put("nobody's")
    (shop.folder / "blobs" / digest[:2] / digest[2:]).write_bytes(b"?")
    with pytest.raises(DigestMismatch, match=digest):
        await shop.sweep()
    assert len(await shop.blobs.list()) == 2


async def test_a_store_that_is_down_or_damaged_takes_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    await shop.build("b-1", ended=2, log=await shop.put("log"))
    await shop.put("nobody's")
    for error in (StoreUnavailable("down"), EventUnreadable("damaged")):

        async def fails(holder: Holder, error: Exception = error) -> Mapping[str, str]:
            raise error

        monkeypatch.setattr(shop.store.references, "named", fails)
        with pytest.raises(type(error)):
            await shop.sweep()
    assert await shop.left() == {"log", "nobody's"}


async def test_on_a_full_disk_the_same_goes_as_ever(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table cannot be written then; it only saves reading the rows again."""

    async def full(*_: Any) -> None:
        raise ResourceShort("no space left")

    monkeypatch.setattr(shop.store.references, "record", full)
    monkeypatch.setattr(shop.store.references, "forget", full)
    await shop.build("b-1", ended=15, log=await shop.put("old log"))
    await shop.build("b-2", ended=2, log=await shop.put("young log"))
    assert (await shop.sweep()).count == 1
    assert await shop.left() == {"young log"}


async def test_housekeepers_at_once_take_each_blob_once_and_nothing_else(shop: Shop) -> None:
    for number in range(20):
        await shop.put(f"old {number}")
    await shop.build("b-1", ended=2, log=await shop.put("log"))
    done = await asyncio.gather(*(shop.sweep() for _ in range(4)))
    assert sum(each.count for each in done) == 20
    assert await shop.left() == {"log"}


async def test_a_build_that_runs_beside_many_housekeepers_finds_all_that_it_put(shop: Shop) -> None:
    """It puts old contents again and names them only afterwards."""
    for number in range(30):
        await shop.put(f"old {number}")
    await shop.build("b-1", ended=None, started=0.01)
    over = asyncio.Event()

    async def keep_house() -> None:
        while not over.is_set():
            await shop.sweep()

    houses = [asyncio.create_task(keep_house()) for _ in range(3)]
    try:
        for number in range(30):
            digest = await shop.blobs.put(f"old {number}".encode())
            await asyncio.sleep(0)
            await shop.note("b-1", "build.told", age=0, log=digest)
            assert await shop.blobs.get(digest) == f"old {number}".encode()
    finally:
        over.set()
        await asyncio.gather(*houses)
    assert {f"old {number}" for number in range(30)} <= await shop.left()


def sweep_slowly(url: str, folder: str, connection: Any) -> None:
    """A housekeeper in a process of its own, which tells of each blob that it takes."""

    class Telling(FileBlobs):
        async def remove(self, digest: str, *, before: int) -> int:
            freed = await super().remove(digest, before=before)
            connection.send(digest)
            return freed

    async def main() -> None:
        async with await open_store(url) as store:
            keeping = Keeping(references=store.references, blobs=Telling(Path(folder)), retention=RETENTION)
            await keeping.sweep_blobs(SweepBlobsInput(now=NOW))

    asyncio.run(main())


@pytest.mark.parametrize("after", [1, 7])
async def test_a_housekeeper_that_is_killed_has_taken_nothing_needed_and_the_next_one_ends_it(
    shop: Shop, after: int
) -> None:
    url = f"sqlite:///{shop.folder / 'mendwork.db'}"
    old = [await shop.put(f"old {number}") for number in range(12)]
    log = await shop.put("log")
    async with await open_store(url) as store:
        shop.store = store  # type: ignore[assignment]
        await shop.build("b-1", ended=15, log=" ".join(old))
        await shop.build("b-2", ended=2, log=log)
        receiver, sender = pipe()
        process = start(sweep_slowly, url, str(shop.folder), sender)
        for _ in range(after):
            assert await asyncio.to_thread(receiver.poll, 60)
            receiver.recv()
        process.kill()
        await asyncio.to_thread(process.join, 30)
        receiver.close()
        sender.close()
        assert "log" in await shop.left()
        await shop.sweep()
        assert await shop.left() == {"log"}


@dataclass(frozen=True)
class Told:
    """A holder as the property draws it: ages in days, what it names by number of blob."""

    kind: str
    age: int
    open: bool
    blobs: frozenset[int]


HOLDERS = st.builds(
    Told,
    kind=st.sampled_from([BUILD, SNAPSHOT, RELEASE]),
    age=AGES,
    open=st.booleans(),
    blobs=st.frozensets(st.integers(0, 7), max_size=4),
)


class Drawn:
    """``References`` of what the property drew."""

    def __init__(self, told: Sequence[Told], digests: Sequence[str]) -> None:
        self.told = {f"{each.kind}-{number}": each for number, each in enumerate(told)}
        self.digests = digests

    async def holders(self) -> Sequence[Holder]:
        return [self._holder(name, told) for name, told in self.told.items()]

    async def named(self, holder: Holder) -> Mapping[str, str]:
        return {self.digests[number]: "" for number in self.told[holder.name].blobs}

    async def recorded(self, holder: Holder) -> Mapping[str, str] | None:
        return None

    async def record(self, holder: Holder, names: Mapping[str, str]) -> None: ...

    async def forget(self, holders: Sequence[str] = ()) -> None: ...

    def _holder(self, name: str, told: Told) -> Holder:
        at, number = days_ago(told.age), int(name.split("-")[1]) + 1
        over = 0 if told.open and told.kind != SNAPSHOT else at
        status = "open" if told.open else "undelivered"
        return Holder(
            name=name, kind=told.kind, project="shop", started=at, ended=over, number=number, status=status, owner=name
        )


@settings(max_examples=150, deadline=None)
@given(told=st.lists(HOLDERS, min_size=1, max_size=8), written=st.lists(AGES, min_size=8, max_size=8))
async def test_nothing_needed_goes_and_everything_else_does(told: list[Told], written: list[int]) -> None:
    blobs = MemoryBlobs()
    digests = [await blobs.put(str(number).encode()) for number in range(8)]
    for digest, age in zip(digests, written, strict=True):
        blobs._written[digest] = days_ago(age)
    keeping = Keeping(references=Drawn(told, digests), blobs=blobs, retention=RETENTION)
    await keeping.sweep_blobs(SweepBlobsInput(now=NOW))

    days = {BUILD: 10, SNAPSHOT: 6, RELEASE: 10_000}  # fewer than eleven releases: all of them
    lives = [each for each in told if (each.open and each.kind != SNAPSHOT) or each.age < days[each.kind]]
    needed = {number for each in lives for number in each.blobs}
    oldest = max((each.age for each in told if each.open and each.kind != SNAPSHOT), default=0)
    left = {digests.index(blob.digest) for blob in await blobs.list()}
    assert left == {number for number in range(8) if number in needed or written[number] <= max(oldest, 1)}


async def test_pins_of_past_builds_and_snapshots_are_judged_and_unknown_ones_stay(shop: Shop) -> None:
    await shop.build("b-1", ended=15)
    await shop.build("b-2", ended=2)
    await shop.note("b-2", "snapshot.taken", age=15, token="b-2@1", state="")
    await shop.note("b-2", "snapshot.taken", age=2, token="b-2@2", state="")
    await shop.build("b-3", ended=15)
    await shop.note("b-3", "snapshot.taken", age=2, token="b-3@1", state="")
    mirror = Pins(project="shop", builds=("b-1", "b-2", "b-3", "alien"), snapshots=("b-2@1", "b-2@2", "b-9@1"), bytes=5)
    judged = await shop.keeping.judge_pins(JudgePinsInput(now=NOW, pins=(mirror,)))
    assert judged.pins == (Pins(project="shop", builds=("b-1",), snapshots=("b-2@1",), bytes=0),)
    assert (judged.stayed, judged.began, judged.before) == (5, 0, NOW - DAY_MS)
    await shop.build("b-4", ended=None, started=3)
    judged = await shop.keeping.judge_pins(JudgePinsInput(now=NOW, pins=(mirror,)))
    assert (judged.oldest, judged.began) == ("b-4", days_ago(3))
    assert judged.before < days_ago(3)


@dataclass
class Mirrors:
    """``MirrorKeeping`` that remembers."""

    there: dict[str, Pins] = field(default_factory=dict)
    done: list[tuple[str, ...]] = field(default_factory=list)

    async def projects(self) -> Sequence[str]:
        return sorted(self.there)

    async def pins(self, project: str) -> Pins:
        return self.there[project]

    async def commits(self, project: str, *, build: str) -> int:
        return 0

    async def drop(self, project: str, *, builds: Sequence[str], snapshots: Sequence[str]) -> int:
        self.done.append(("drop", project, *builds, *snapshots))
        return len(builds)

    async def tidy(self, project: str, *, before: int) -> int:
        self.done.append(("tidy", project, str(before)))
        return 7


@dataclass
class Work:
    """``Folders`` that remembers."""

    asked: list[tuple[int, bool]] = field(default_factory=list)

    def abandoned(self, *, before: int, remove: bool) -> Remains:
        self.asked.append((before, remove))
        return Remains(count=2, bytes=9)

    def sizes(self) -> Mapping[str, int]:
        return {}


async def test_mirrors_are_tidied_after_the_refs_are_gone_and_a_dry_run_does_neither() -> None:
    pins = Pins(project="shop", builds=("b-1",), snapshots=("b-2@1",), bytes=1)
    mirrors, work = Mirrors(there={"cafe": pins, "shop": pins}), Work()
    house = MirrorHouse(keeping=mirrors, folders=work)
    assert [each.project for each in await house.list_pins(ListPinsInput(project="shop"))] == ["shop"]
    asked = DropPinsInput(pins=(pins,), projects=("cafe", "shop"), before=5)
    would = await house.drop_pins(DropPinsInput(pins=(pins,), projects=("shop",), before=5, dry_run=True))
    assert (would.count, mirrors.done) == (2, [])
    done = await house.drop_pins(asked)
    assert (done.count, done.bytes) == (2, 14)
    assert mirrors.done == [("drop", "shop", "b-1", "b-2@1"), ("tidy", "cafe", "5"), ("tidy", "shop", "5")]
    await house.clear_folders(ClearFoldersInput(before=3, dry_run=True))
    assert work.asked == [(3, False)]


async def test_a_list_of_pins_stays_small_however_many_there_are() -> None:
    many = Pins(project="shop", builds=tuple(f"b-{n}" for n in range(3_999)), snapshots=("b-1@1", "b-1@2"), bytes=0)
    house = MirrorHouse(keeping=Mirrors(there={"a": many, "b": many}), folders=Work())
    first, second = await house.list_pins(ListPinsInput())
    assert (len(first.builds), len(first.snapshots), len(second.builds)) == (3_999, 1, 0)


@dataclass
class Environments:
    """``KeptEnvironments`` of which "busy" is in use."""

    there: list[KeptEnvironment]

    async def list(self) -> Sequence[KeptEnvironment]:
        return list(self.there)

    async def remove(self, key: str) -> bool:
        if key == "busy":
            return False
        self.there = [each for each in self.there if each.key != key]
        return True

    using: Callable[..., Any] = NotImplemented
    making: Callable[..., Any] = NotImplemented


def environment(key: str, *, used: float, project: str = "shop") -> KeptEnvironment:
    return KeptEnvironment(key=key, project=project, bytes=10, used_at=days_ago(used) / 1000)


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        ({}, {"old", "cafe's"}),
        ({"project": "cafe"}, {"cafe's"}),
        ({"began": days_ago(6)}, {"cafe's"}),
        ({"dry_run": True}, set()),
    ],
    ids=["all", "one project", "an open build may have used it", "dry run"],
)
async def test_environments_that_nothing_used_for_long_go(words: dict[str, Any], gone: set[str]) -> None:
    listed = [environment("old", used=5), environment("young", used=2), environment("busy", used=30)]
    there = Environments([*listed, environment("cafe's", used=20, project="cafe")])
    house = EnvironmentHouse(environments=there, retention=RETENTION)
    done = await house.sweep_environments(SweepEnvironmentsInput(now=NOW, **words))
    assert {each.key for each in there.there} == {"old", "young", "busy", "cafe's"} - gone
    assert done.count == (len(gone) or 3)
