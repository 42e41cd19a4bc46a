"""Keeping house beside a real build: nothing that it needs is taken, and what is past its time goes."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from tests.e2e.workshop import ANSWERS, Workshop, wait_for

pytestmark = pytest.mark.timeout(300)  # whole builds, also on a busy machine

WEEK_AGO = time.time() - 7 * 86_400
ASKS = 'approve = ["change"]\nreview = false\nretention = { builds = 0, snapshots = 0, environments = 0 }\n'


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Workshop]:
    made = Workshop(tmp_path / "w", answers=ANSWERS)
    with made.running(consent=ASKS):
        yield made


def kinds(at: Workshop, *words: str) -> dict[str, int]:
    ran = at.mendwork("gc", "--json", *words)
    assert ran.code == 0, ran.err
    return {kind["kind"]: kind["count"] for kind in json.loads(ran.out)["kinds"]}


def blobs(at: Workshop) -> int:
    return sum(1 for path in (at.state / "blobs").glob("??/*") if path.is_file())


def garbage(at: Workshop) -> Path:
    """A blob of last week that nothing names."""
    content = b"nobody needs this"
    digest = sha256(content).hexdigest()
    path = at.state / "blobs" / digest[:2] / digest[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (WEEK_AGO, WEEK_AGO))
    return path


def snapshots(at: Workshop) -> list[Path]:
    """Where the states of all snapshots lie."""
    with closing(sqlite3.connect(f"file:{at.state / 'mendwork.db'}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT data FROM events WHERE kind = 'snapshot.taken'").fetchall()
    digests = [json.loads(data)["state"] for (data,) in rows]
    return [at.state / "blobs" / digest[:2] / digest[2:] for digest in digests]


def test_a_build_goes_on_beside_it_and_what_its_snapshots_need_outlives_it(at: Workshop) -> None:
    name = at.mendwork("build", "--detach", str(at.spec)).out.strip()
    wait_for(lambda: at.status(name)["asks"], seconds=120, why="the approval")
    unneeded, before = garbage(at), blobs(at)
    at.kill("workspace")
    assert kinds(at, "--dry-run")["blobs"] == 1
    assert kinds(at)["blobs"] == 1
    assert (unneeded.exists(), blobs(at)) == (False, before - 1), "all that it wrote is there"
    (ask,) = at.status(name)["asks"]
    assert at.mendwork("approve", name, ask["digest"][:12]).code == 0
    assert at.mendwork("watch", name, seconds=150).code == 0
    (build,) = json.loads(at.mendwork("disk", "--json").out)["builds"]
    assert (build["build"], build["own"] > 0, build["commits"] > 0) == (name, True, True)
    for path in (at.state / "blobs").glob("??/*"):
        os.utime(path, (WEEK_AGO, WEEK_AGO))
    would = kinds(at, "--dry-run")
    assert would["blobs"] > 0, "its retention is over"
    assert kinds(at) == would
    assert sum(kinds(at).values()) == 0, "a second one finds nothing"
    assert at.status(name)["status"] == "succeeded", "the log itself stays"
    assert [path for path in snapshots(at) if not path.exists()] == []
