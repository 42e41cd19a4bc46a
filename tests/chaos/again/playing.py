"""One case of the table of what comes after a build, and what it left.

A build lands. A dry run plans the same again. A third build goes on from the first one's plan and waits for its
approval; meanwhile the housekeeper takes what is past its time. Then the third is approved, and lands too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.again.cases import KEEPING, PLANNING, RESUMING, Case
from tests.chaos.mortal_worker import deaths, order_death
from tests.chaos.people import LOOK_SECONDS, people
from tests.chaos.playing import PATIENCE_SECONDS, trees_of
from tests.chaos.scenes import SCENES, Stage
from tests.chaos.story import Story, story_of
from tests.e2e.workshop import git
from tests.grafting import grafted
from tests.invariants import check_invariants

BUILT, PLANNED, RESUMED = (f"build-calc-{number}" for number in (1, 2, 3))
SNAPSHOT = f"{BUILT}@2"
"""That of its plan: everything is written again."""
WEEK_AGO = time.time() - 7 * 86_400
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How one build ended."""

    status: str
    sentence: str
    story: Story


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What the housekeeper left. ``lost`` are blobs that a kept build or snapshot names and that were there before,
    ``extra`` those that nothing kept names; ``pins`` are builds and snapshots whose commits are kept, ``garbage`` what
    of nobody's is still there."""

    faults: tuple[str, ...]
    lost: tuple[str, ...]
    extra: tuple[str, ...]
    pins: tuple[str, ...]
    snapshots: tuple[str, ...]
    environments: int
    garbage: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """``refs`` are those of the user's repository, each with its tree; ``died`` as ``deaths`` gives it."""

    told: Mapping[str, Told]
    house: House
    refs: Mapping[str, str]
    died: Mapping[str, float | None]
    seconds: float


def play(case: Case, folder: Path) -> Played:
    """Run the case in a workshop of its own and check the invariants of all its builds."""
    began, at = time.monotonic(), Stage(folder, SCENES["again"])

    told = {}
    with at.running(dev=grafted("mortal"), unchecked="each build is, below"):
        told[BUILT] = begin_and_end(at, BUILT, "build", "spec.md", "--detach")
        order(at, case, PLANNING)
        told[PLANNED] = begin_and_end(at, PLANNED, "build", "spec.md", "--dry-run", "--detach")
        order(at, case, RESUMING)
        begin(at, RESUMED, "resume", SNAPSHOT, "--detach")
        asyncio.run(_asked(at, RESUMED))
        for build in (BUILT, PLANNED, RESUMED):
            check_invariants(at, build)
        house = _keep_house(at, case)
        told[RESUMED] = asyncio.run(_ended(at, RESUMED))
        check_invariants(at, RESUMED)
        return Played(
            told=told, house=house, refs=trees_of(at), died=deaths(at.state), seconds=time.monotonic() - began
        )


def order(at: Stage, case: Case, chapter: str) -> None:
    """The deaths of a chapter, when it begins."""
    for each in case.orders.get(chapter, ()):
        order_death(at.state, each)


def begin(at: Stage, build: str, *words: str) -> None:
    """Start the build that has this name."""
    started = at.mendwork(*words)
    assert (started.code, started.out.strip()) == (0, build), started.err


def begin_and_end(at: Stage, build: str, *words: str) -> Told:
    """From its start to its end."""
    begin(at, build, *words)
    return asyncio.run(_ended(at, build))


async def _asked(at: Stage, build: str) -> None:
    """Wait until the build asks for its approval, and has told so."""
    async with people(at, build) as crowd, asyncio.timeout(PATIENCE_SECONDS):
        while not (await crowd.details()).open_asks():
            assert not (details := await crowd.details()).ended, details.sentence
            await asyncio.sleep(LOOK_SECONDS)


async def _ended(at: Stage, build: str) -> Told:
    """Approve what is to be approved, and wait for the end."""
    async with people(at, build) as crowd:
        crowd.moved = "nobody else works here"
        details = await crowd.ended(seconds=PATIENCE_SECONDS)
        return Told(status=details.status, sentence=details.sentence, story=story_of(await crowd.events()))


def _keep_house(at: Stage, case: Case) -> House:
    """A week later nothing but the open build and the snapshots needs anything."""
    garbage = _garbage(at)
    before = _blobs(at)
    for path in before.values():
        os.utime(path, (WEEK_AGO, WEEK_AGO))
    needed = before.keys() & _closure(before, _named(at))
    order(at, case, KEEPING)
    ran = at.mendwork("gc", "--json", seconds=PATIENCE_SECONDS)
    kinds = json.loads(ran.out)["kinds"]
    after = _blobs(at).keys()
    return House(
        faults=tuple(f"{kind['kind']}: {kind['why']}" for kind in kinds if kind["fault"] or kind["why"]),
        lost=tuple(needed - after),
        extra=tuple(after - needed),
        pins=tuple(sorted({name.split("/")[3] for name in _refs(at, "builds")})),
        snapshots=tuple(sorted({"@".join(name.split("/")[3:5]) for name in _refs(at, "snapshots")})),
        environments=sum(DIGEST.fullmatch(path.name) is not None for path in (at.state / "environments").iterdir()),
        garbage=tuple(str(path) for path in garbage if path.exists()),
    )


def _garbage(at: Stage) -> list[Path]:
    """A blob, a checkout and an environment of last week, and what the dry run would have left without its undoing."""
    head = git(at.state / "mirrors" / "calc.git", "rev-parse", f"refs/mendwork/builds/{RESUMED}/head").strip()
    git(at.state / "mirrors" / "calc.git", "update-ref", f"refs/mendwork/builds/{PLANNED}/base", head)
    content = b"nobody needs this"
    digest = hashlib.sha256(content).hexdigest()
    blob = at.state / "blobs" / digest[:2] / digest[2:]
    blob.parent.mkdir(exist_ok=True)
    blob.write_bytes(content)
    checkout = at.state / "work" / "build-calc-0-base-1-0123456789ab-01234567"
    (checkout / "src").mkdir(parents=True)
    environment = at.state / "environments" / ("0" * 64)
    (environment / "tree").mkdir(parents=True)
    record = environment / "record.json"
    record.write_text(json.dumps({"project": "calc", "bytes": 4096}))
    for path in (checkout, record):
        os.utime(path, (WEEK_AGO, WEEK_AGO))
    return [blob, checkout, environment]


def _named(at: Stage) -> set[str]:
    """What the open build tells of and was answered, and what all snapshots tell of."""
    with closing(sqlite3.connect(f"file:{at.state / 'mendwork.db'}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT data FROM events WHERE build = ?1 OR kind = 'snapshot.taken' "
            "UNION ALL SELECT answer FROM calls WHERE build = ?1 UNION ALL SELECT value FROM calls WHERE build = ?1",
            (RESUMED,),
        ).fetchall()
    return _digests(text for (text,) in rows if text)


def _blobs(at: Stage) -> dict[str, Path]:
    """Those that are there, by digest."""
    return {path.parent.name + path.name: path for path in (at.state / "blobs").glob("??/*") if path.is_file()}


def _closure(there: Mapping[str, Path], names: Iterable[str]) -> set[str]:
    """With all that the blobs of these names name in turn."""
    found, open_ends = set(names), list(names)
    while open_ends:
        path = there.get(open_ends.pop())
        more = _digests([path.read_bytes().decode("latin-1")]) - found if path else set()
        found |= more
        open_ends += more
    return found


def _digests(texts: Iterable[str]) -> set[str]:
    return {digest for text in texts for digest in DIGEST.findall(text)}


def _refs(at: Stage, below: str) -> list[str]:
    mirror = at.state / "mirrors" / "calc.git"
    return git(mirror, "for-each-ref", "--format=%(refname)", f"refs/mendwork/{below}").splitlines()
