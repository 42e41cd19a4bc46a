"""A whole build whose blobs lie in an S3 store: on this disk there are none, and every command finds them."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.projects import events
from tests.e2e.test_temporal_cli import content_of
from tests.e2e.workshop import MUL, Ran, Workshop, planned, wait_for
from tests.s3 import S3, SECRET, serving_s3
from tests.trees import files_below

pytestmark = pytest.mark.timeout(300)  # whole builds, also on a busy machine

PREFIX = "builds/all"
CLASSES = ("saga", "workspace", "model", "sandbox")
LONG_AGO = 1_000_000_000
ONE_TASK: list[dict[str, Any]] = [
    {"role": "Plan", "answer": {"summary": "one", "tasks": [planned("mul")]}},
    {"role": "Change", "task": "mul", "attempt": 1, "answer": MUL},
]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serving_s3() as server:
        yield server


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, s3: S3) -> Iterator[Workshop]:
    at = Workshop(tmp_path_factory.mktemp("bucket") / "w", answers=ONE_TASK)
    at.environment |= s3.environment
    with at.running(extra=s3.settings(PREFIX)):
        yield at


@pytest.fixture(scope="module")
def build(shop: Workshop) -> str:
    ran = shop.mendwork("build", "spec.md", "--detach")
    assert ran.code == 0, ran.err
    watched = shop.mendwork("watch", ran.out.strip())
    assert watched.code == 0, watched.err
    return ran.out.strip()


def readiness(at: Workshop, worker: str) -> tuple[int, dict[str, Any]]:
    url = json.loads((at.state / "telemetry" / f"{worker}.json").read_text())["url"]
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=20) as answer:  # noqa: S310 - our own
            return answer.status, json.load(answer)["subsystems"]["blobs"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["subsystems"]["blobs"]


def doctored(at: Workshop) -> dict[str, Any]:
    """What the doctor finds of blobs."""
    ran = at.mendwork("doctor", "--json")
    found: dict[str, Any] = next(each for each in json.loads(ran.out)["checks"] if each["name"] == "blobs")
    return found


class TestABuild:
    def test_its_blobs_are_in_the_bucket_whole_and_nowhere_else(self, shop: Workshop, s3: S3, build: str) -> None:
        named = {
            row.data[key] for row in events(shop, build) for key in ("spec", "prompt", "answer") if key in row.data
        }
        assert len(named) > 4
        assert named <= s3.blobs(PREFIX)
        assert not (shop.state / "blobs").exists()

    def test_its_contents_are_shown(self, shop: Workshop, build: str) -> None:
        shown = shop.mendwork("show", build, "--task", "mul", "--diff")
        assert (shown.code, "+def mul(a, b):" in shown.out) == (0, True), shown.err

    def test_its_key_is_in_no_file_and_no_process_list(self, shop: Workshop, build: str) -> None:
        assert [path for path in files_below(shop.root) if SECRET.encode() in content_of(path)] == []
        assert not [pid for pid in shop.pids().values() if SECRET.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def test_the_disk_command_counts_the_bucket(self, shop: Workshop, s3: S3, build: str) -> None:
        told = json.loads(shop.mendwork("disk", "--json").out)
        assert told["kinds"]["blobs"] == sum(map(len, s3.listing(PREFIX).values()))
        assert next(each for each in told["builds"] if each["build"] == build)["own"] > 1_000

    def test_the_housekeeper_takes_what_nothing_needs_and_leaves_the_rest(
        self, shop: Workshop, s3: S3, build: str
    ) -> None:
        orphan = s3.put(PREFIX, b"nobody names this")
        for digest in s3.blobs(PREFIX):
            os.utime(s3.path(PREFIX, digest), (LONG_AGO, LONG_AGO))
        before = s3.blobs(PREFIX)
        ran = shop.mendwork("gc", "--json")
        assert ran.code == 0, ran.err
        swept = next(kind for kind in json.loads(ran.out)["kinds"] if kind["kind"] == "blobs")
        gone = before - s3.blobs(PREFIX)
        assert orphan in gone
        assert (swept["count"], swept["stayed"]) == (len(gone), len(before) - len(gone))
        shown = shop.mendwork("show", build, "--task", "mul", "--diff")
        assert shown.code == 0, shown.err


class TestAway:
    def test_a_store_that_is_away_is_seen_from_everywhere_and_a_build_outlives_it(
        self, shop: Workshop, s3: S3, build: str
    ) -> None:
        assert {readiness(shop, name)[0] for name in CLASSES} == {200}
        s3.kill()
        for name in CLASSES:
            status, told = readiness(shop, name)
            assert (status, "cannot be reached" in told["why"]) == (503, True)
        found = doctored(shop)
        assert (found["state"], "cannot be reached" in found["detail"]) == ("broken", True)
        begun = shop.mendwork("build", "spec.md", "--detach")
        assert begun.code == 0, begun.err
        wait_for(lambda: "cannot be reached" in self.log(shop), why="a worker that misses its blobs")
        s3.start()
        watched: Ran = shop.mendwork("watch", begun.out.strip(), seconds=200)
        assert watched.code == 0, watched.err
        wait_for(lambda: {readiness(shop, name)[0] for name in CLASSES} == {200}, why="all classes to be ready again")

    def log(self, at: Workshop) -> str:
        return (at.state / "logs" / "worker-workspace.log").read_text()
