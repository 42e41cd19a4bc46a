"""Going on from a snapshot, against everything real: a fork with another model, and a build after its abort."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.projects import (
    Scene,
    answered,
    begun,
    change,
    create,
    events,
    plan,
    repository,
    result,
    serving,
    task,
    told,
    waiting,
)
from tests.e2e.workshop import Workshop, git

OTHER = """
[models.other]
model = "openai/other"
base_url = "{base_url}"
api_key_env = "SCRIPTED_API_KEY"
input_price = 1.0
output_price = 4.0

[roles]
reasoning = ["coder"]
coding = ["coder"]
"""


class Forked(Scene):
    """Its first build plans and writes; the second one, asked at the same place, writes something else."""

    def script(self) -> Iterator[dict[str, Any]]:
        yield {**plan(task("one", "one.py")), "task": f"{self.name}-1"}
        for number, content in ((1, "A = 1\n"), (2, "A = 2\n")):
            yield change(f"{self.name}-{number}-task-one", 1, create("one.py", content))


FORKED = Forked(name="forked", consent='approve = ["change"]\nreview = false\n', answers=[])


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with serving(tmp_path_factory.mktemp("resume"), (FORKED,), extra=OTHER) as at:
        yield at


def tokens(at: Workshop, build: str) -> dict[str, dict[str, Any]]:
    """The snapshots of a build by the phase that they were taken after."""
    ran = at.mendwork("snapshots", build, "--json")
    assert ran.code == 0, ran.err
    return {each["after"]: each for each in json.loads(ran.out)["snapshots"]}


def resumed(at: Workshop, token: str, *options: str) -> str:
    ran = at.mendwork("resume", token, "--detach", *options)
    assert ran.code == 0, ran.err
    return ran.out.strip()


def asked(at: Workshop, build: str) -> list[str]:
    """Which model was asked for each call of a build."""
    return [line["model"] for line in at.billed() if line["key"].startswith((f"{build}/", f"{build}-task-"))]


def collect(at: Workshop) -> str:
    """Git's own collection in the mirror, at its worst; the builds whose commits it holds."""
    mirror = at.state / "mirrors" / f"{FORKED.project}.git"
    git(mirror, "gc", "--quiet", "--prune=now")
    return git(mirror, "for-each-ref", "--format=%(refname)", "refs/mendwork/builds")


def test_forks_go_on_where_a_snapshot_was_taken(at: Workshop) -> None:
    first = begun(at, FORKED)
    waiting(at, first)
    kept = tokens(at, first)
    assert {after: each["phase"] for after, each in kept.items()} == {
        "intake": "plan",
        "plan": "tasks",
        "tasks": "approve",
    }
    assert kept["tasks"]["head"] != kept["plan"]["head"] == kept["plan"]["base"]
    assert (kept["intake"]["calls"], kept["plan"]["calls"], kept["tasks"]["calls"]) == (0, 1, 2)
    _is_refused_while_it_is_open(at, kept["plan"]["token"])
    second = _fork(at, kept["plan"])
    third = _go_on_after_an_abort(at, first, kept["tasks"])
    _compare(at, second, third)


def _is_refused_while_it_is_open(at: Workshop, token: str) -> None:
    ran = at.mendwork("resume", token)
    assert ran.code == 3, ran.err
    assert "--fork" in ran.err
    assert ran.out == ""


def _fork(at: Workshop, snapshot: dict[str, Any]) -> str:
    """Beside the first build, by another model: no planning, another change, the same base."""
    fork = resumed(at, snapshot["token"], "--fork", "--model", "other", "--yes", "--title", "By another")
    assert fork.endswith("-2"), "the refused one used up no number"
    watched = at.mendwork("watch", fork)
    assert watched.code == 0, watched.err
    assert f"goes on from {snapshot['token']}, before tasks" in watched.err
    assert asked(at, fork) == ["other"]
    assert result(at, FORKED, fork)["one.py"] == "A = 2\n"
    status = at.status(fork)
    assert (status["parent"], status["title"]) == (snapshot["token"], "By another")
    assert status["carried_micros"] == snapshot["spent"] > 0
    return fork


def _go_on_after_an_abort(at: Workshop, first: str, snapshot: dict[str, Any]) -> str:
    """What was written is not written again: nothing but the approval is to come."""
    assert answered(at, "abort", first)["code"] == 0
    assert at.mendwork("watch", first).code == 3
    assert first not in collect(at)
    third = resumed(at, snapshot["token"])
    ask = waiting(at, third)
    assert asked(at, third) == []
    assert answered(at, "approve", third, ask["digest"][:12])["outcome"] == "accepted"
    assert at.mendwork("watch", third).code == 0
    assert result(at, FORKED, third)["one.py"] == "A = 1\n"
    assert git(repository(at, FORKED), "rev-parse", f"mendwork/{third}").strip() == snapshot["head"]
    assert [event.kind for event in events(at, third)].count("build.planned") == 0
    (row,) = told(at, third, "build.restored")
    assert (row["token"], row["head"]) == (snapshot["token"], snapshot["head"])
    cost = at.mendwork("cost", third)
    assert f"carried over from {snapshot['token']}: 2 calls" in cost.out
    return third


def _compare(at: Workshop, second: str, third: str) -> None:
    ran = at.mendwork("compare", second, third, "--diff", "--json")
    assert ran.code == 0, ran.err
    read = json.loads(ran.out)
    assert [side["status"] for side in read["builds"]] == ["succeeded", "succeeded"]
    assert read["builds"][0]["base"] == read["builds"][1]["base"]
    assert read["difference"]["source"] == "commits"
    assert read["difference"]["files"] == [{"path": "one.py", "added": 1, "removed": 1}]
    assert "-A = 2\n+A = 1\n" in read["difference"]["diff"]
    table = at.mendwork("compare", second, third).out
    assert "one.py  +1 -1" in table


def test_what_stands_for_nothing_is_answered_with_what_there_is(at: Workshop) -> None:
    for token, sentence in (("nothing", "BUILD@NUMBER"), ("build-task-forked-77@1", "unknown build")):
        ran = at.mendwork("resume", token)
        assert ran.code == 2, ran.err
        assert sentence in ran.err
