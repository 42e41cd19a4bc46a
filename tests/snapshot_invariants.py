"""What the log promises of what is kept: each snapshot can be gone on from, each set-up was whole.

I8 once more: a build that goes on from a snapshot counts what had been spent by then.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Sequence

from adapters.cli.serving.stored import blobs_of
from adapters.store import open_store
from domain.errors import BlobMissing, DigestMismatch
from domain.ports.store import Event
from tests.e2e.workshop import git
from tests.observed import Seen

DAY_MS = 86_400_000


def check_snapshots(seen: Seen) -> None:
    """Each is a state that can be read, as its row tells it, and its commits are in the mirror under its pins."""
    project = seen.settings.allowlist().get(seen.details.project)
    mirror = seen.at.state / "mirrors" / f"{seen.details.project}.git"
    if project is None or not mirror.exists():
        return
    taken = [event for event in seen.events if event.kind == "snapshot.taken"]
    twice = [key for key, times in Counter((e.run, e.data["token"]) for e in taken).items() if times > 1]
    assert not twice, f"two snapshots have one name: {twice}"
    kept_since = time.time() * 1000 - project.retention.snapshots * DAY_MS
    for event in taken:
        data, name = event.data, f"snapshot {event.data['token']}"
        assert data["token"] == f"{seen.build}@{data['number']}"
        assert data["spent"] <= seen.spent.lasting + seen.details.carried.cost_micros, f"{name} tells of too much money"
        assert data["calls"] <= len(seen.tries) + seen.details.carried.calls, f"{name} tells of too many calls"
        if event.at < kept_since:
            continue
        state = json.loads(blob(seen, data["state"]))
        told = (data["phase"], data["plan"], data["base"], data["head"])
        assert (state["phase"], state["plan"], state["base"]["commit"], state["head"]["commit"]) == told, name
        pins = f"refs/mendwork/snapshots/{seen.build}/{data['number']}/"
        pinned = git(mirror, "for-each-ref", "--format=%(objectname)", pins).split()
        assert {data["base"], data["head"]} <= set(pinned), f"nothing keeps the commits of {name}"


def check_parents(seen: Seen) -> None:
    """Where it goes on from is a row of its parent, and what was spent by then counts as its own."""
    for event in seen.events:
        if event.kind == "build.restored":
            check_parent(seen, event, asyncio.run(events_of(seen, event.data["parent"])))


def check_parent(seen: Seen, restored: Event, parent: Sequence[Event]) -> None:
    """``parent`` are the rows of the build that the token names."""
    data = restored.data
    rows = [e.data for e in parent if e.kind == "snapshot.taken" and e.data["token"] == data["token"]]
    assert rows, f"{data['token']} is in no log"
    told = ("phase", "head", "base", "plan", "spent", "calls")
    assert [data[name] for name in told] in [[row[name] for name in told] for row in rows], (dict(data), rows)
    assert seen.details.parent == data["token"] == f"{data['parent']}@{data['token'].rpartition('@')[2]}"
    carried = seen.details.carried
    assert (carried.cost_micros, carried.calls) == (data["spent"], data["calls"]), "what was spent is not counted"
    for event in seen.events:
        if event.kind == "snapshot.taken":
            assert event.data["spent"] >= data["spent"], f"{event.data['token']} has forgotten what was carried over"


def check_environments(seen: Seen) -> None:
    """What a row says was set up is there, whole, and the project's own."""
    project = seen.settings.allowlist().get(seen.details.project)
    if project is None or not project.retention.environments:
        return
    for event in seen.events:
        if event.kind == "environment.built":
            place = seen.at.state / "environments" / event.data["key"]
            assert (place / "tree").is_dir(), f"the environment {place.name} is not there"
            record = json.loads((place / "record.json").read_text())
            assert (record["project"], record["bytes"]) == (seen.details.project, event.data["bytes"])


def blob(seen: Seen, digest: str) -> bytes:
    """Its content, which is what its name says, in files or in a bucket."""
    try:
        content = asyncio.run(blobs_of(seen.settings).get(digest))
    except (BlobMissing, DigestMismatch) as error:
        raise AssertionError(f"blob {digest} of {seen.build}: {error}") from error
    assert hashlib.sha256(content).hexdigest() == digest
    return content


async def events_of(seen: Seen, build: str) -> list[Event]:
    """Another build's rows; none of one that nobody knows."""
    async with await open_store(seen.settings.store_url) as store:
        return [event for _, event in await store.events.read(build)]
