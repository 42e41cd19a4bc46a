"""People and deliveries: approvals and rejections, rollbacks that somebody wants, questions, and what is mistyped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.e2e import service
from tests.e2e.projects import answered, told, waiting
from tests.e2e.shops import (
    Shop,
    acknowledged,
    address,
    asked,
    begun,
    delivered,
    lane_of,
    last_line,
    opened,
    sites,
    status_of,
    waited,
)
from tests.e2e.test_temporal_cli import temporal
from tests.e2e.workshop import Workshop, git, wait_for

pytestmark = pytest.mark.timeout(300)

SHORT = "seconds = 2\nwindow = 2\nrate = 20\nmin_asked = 20"
LONG = "seconds = 60\nwindow = 2\nrate = 20\nmin_asked = 20"
FEW = "seconds = 2\nwindow = 2\nrate = 5\nmin_asked = 1000"
ASKING = Shop(
    name="asking",
    branches={"second": service.SECOND, "third": service.MENDED},
    consent='approve = ["release"]\nreview = false\n',
    delivery=service.section("asking", watch=SHORT),
)
WATCHED = Shop(name="watched", branches={"second": service.SECOND}, delivery=service.section("watched", watch=LONG))
CALM = Shop(
    name="calm",
    branches={"second": service.SECOND, "third": service.MENDED},
    delivery=service.section("calm", watch=SHORT),
)
UNSURE = Shop(name="unsure", branches={"second": service.SECOND}, delivery=service.section("unsure", watch=FEW))
BARE = Shop(name="bare", delivery="")


Stories = dict[str, Future[None]]


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with opened(tmp_path_factory.mktemp("people"), [ASKING, WATCHED, CALM, UNSURE, BARE]) as running:
        yield running


@pytest.fixture(scope="module")
def stories(at: Workshop) -> Iterator[Stories]:
    """A story a project, all of them at the same time: each test is the end of one."""
    with ThreadPoolExecutor() as pool:
        yield {story.__name__: pool.submit(story, at) for story in (asking, unattended_and_watched, calm, unsure)}


def asking(at: Workshop) -> None:
    name = begun(at, "asking", "main", "--by", "ann")
    ask = waiting(at, name, "release")
    assert "to production: risk" in ask["sentence"]
    assert ("asking", "production") not in sites(at)
    shown = at.mendwork("pending", name).out
    assert f"mendwork approve {name} {ask['digest'][:12]}" in shown
    assert answered(at, "approve", name, "0123456789")["code"] == 3
    assert answered(at, "approve", name, ask["digest"][:12], "--by", "bea")["outcome"] == "accepted"
    assert at.mendwork("watch", name).code == 0
    record = status_of(at, "asking", 1)
    [approved] = record["record"]["approved"]
    assert (approved["by"], approved["how"], approved["digest"]) == ("bea", "person", ask["digest"])
    assert (
        f"approved: release {ask['digest'][:12]} by bea (person)"
        in at.mendwork("release", "show", "1", "--project", "asking").out
    )

    by_signal = begun(at, "asking", "second", "--by", "ann")
    ask = waiting(at, by_signal, "release")
    assert "instead of release 1" in at.mendwork("pending", by_signal, "--packet").out or ask
    words = json.dumps({"digest": ask["digest"][:12], "by": "cleo"})
    sent = temporal(at, "workflow", "signal", "-w", by_signal, "--name", "approve", "--input", words)
    assert sent.returncode == 0, sent.stderr
    assert at.mendwork("watch", by_signal).code == 0
    assert status_of(at, "asking", 2)["record"]["approved"][0]["by"] == "cleo"

    rejected = begun(at, "asking", "third", "--by", "ann")
    ask = waiting(at, rejected, "release")
    assert answered(at, "reject", rejected, ask["digest"][:12], "--reason", "not on a Friday")["code"] == 0
    followed = at.mendwork("watch", rejected)
    assert followed.code == 3, followed.err
    assert "rejected the release: not on a Friday" in last_line(followed)
    assert status_of(at, "asking", 3)["status"] == "undelivered"
    assert sites(at)["asking", "production"]["live"] == 2
    assert {unit["release"] for unit in sites(at)["asking", "production"]["units"]} == {1, 2}
    assert lane_of(at, "asking")["frozen"] is None


def unattended_and_watched(at: Workshop) -> None:
    ran = delivered(at, "watched", "main", "--unattended")
    assert ran.code == 8, ran.err
    assert "nobody is there to approve it" in last_line(ran)
    first = begun(at, "watched")
    waited(at, first, "watch.window")
    number = told(at, first, "delivery.began")[-1]["release"]
    command = ("rollback", str(number), "--project", "watched", "--by", "ann", "--reason", "a hunch")
    assert at.mendwork(*command, "--to", "1").code == 3  # nothing is there to go back to
    back = at.mendwork(*command)
    assert (back.code, back.out) == (0, "accepted: the release is taken back\n"), back.err
    followed = at.mendwork("watch", first)
    assert followed.code == 5
    assert "ann: a hunch" in last_line(followed)
    assert status_of(at, "watched", number)["status"] == "rolled back"
    assert sites(at)["watched", "production"]["live"] == 0
    assert lane_of(at, "watched")["frozen"]["release"] == number
    again = at.mendwork("rollback", str(number), "--project", "watched")
    assert (again.code, "it is rolled back already" in again.err) == (2, True)


def calm(at: Workshop) -> None:
    for branch in ("main", "second", "third"):
        ran = delivered(at, "calm", branch)
        assert ran.code == 0, ran.err
    command = ("rollback", "3", "--project", "calm", "--to", "1", "--by", "ann", "--reason", "it is ugly")
    ran = at.mendwork(*command, seconds=120)
    assert ran.code == 0, ran.err
    assert "release 1 serves again" in ran.err
    assert asked(address(at, "calm")).body == "price 20"
    assert (lane_of(at, "calm")["current"]["number"], lane_of(at, "calm")["frozen"]["release"]) == (1, 3)
    assert acknowledged(at, "calm").code == 0
    newest = json.loads(at.mendwork("release", "list", "--project", "calm", "--json").out)
    assert [(each["number"], each["status"], each["kind"]) for each in newest] == [
        (4, "rolled back", "rollback"),
        (3, "promoted", "deliver"),
        (2, "promoted", "deliver"),
        (1, "promoted", "deliver"),
    ]
    not_live = at.mendwork("rollback", "2", "--project", "calm", seconds=120)
    assert not_live.code == 2, not_live.err
    assert "release 2 does not serve production of calm: release 1 does" in last_line(not_live)
    assert asked(address(at, "calm")).body == "price 20"


def unsure(at: Workshop) -> None:
    name = begun(at, "unsure")
    ask = waiting(at, name, "watch")
    assert "at least 1000 are needed" in ask["sentence"]
    assert at.mendwork("watch", name, "--no-wait").code == 7
    assert answered(at, "answer", name, "promote", "--by", "ann")["outcome"] == "accepted"
    followed = at.mendwork("watch", name)
    assert followed.code == 0, followed.err
    assert "ann promoted it" in followed.err
    alone = delivered(at, "unsure", "second", "--yes", "--unattended")
    assert alone.code == 5, alone.err
    assert sites(at)["unsure", "production"]["live"] == 1


def test_a_release_waits_for_its_approval_by_its_digest_and_a_rejected_one_leaves_no_trace(stories: Stories) -> None:
    stories["asking"].result()


def test_nobody_there_changes_nothing_and_a_rollback_ends_a_watch(stories: Stories) -> None:
    stories["unattended_and_watched"].result()


def test_a_promoted_release_is_rolled_back_by_a_saga_of_its_own(stories: Stories) -> None:
    stories["calm"].result()


def test_a_watch_that_cannot_tell_asks_and_a_person_promotes(stories: Stories) -> None:
    stories["unsure"].result()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("no-such-branch", "--project", "calm"), 2, "no-such-branch"),
        (("main", "--project", "bare"), 2, "project bare has no target"),
        (("main", "--project", "nobody"), 2, "nobody"),
        (("main",), 2, "--project: name one of "),
        (("--project", "calm", "--", "-x"), 2, "COMMIT"),
        (("main", "--project", "calm", "--approve", "everything"), 2, "known: release"),
    ],
)
def test_what_is_mistyped_is_told_in_one_sentence(
    at: Workshop, stories: Stories, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    before = refs(at)
    ran = at.mendwork("deliver", *arguments)
    assert (ran.code, sentence in last_line(ran)) == (code, True), ran.err
    assert "Traceback" not in ran.err
    assert refs(at) == before


def refs(at: Workshop) -> str:
    """What is pinned for calm's deliveries."""
    wait_for(lambda: not lane_of(at, "calm")["holder"], why="the end of the stories")
    return git(at.state / "mirrors" / "calm.git", "for-each-ref")
