"""Users at a site while its releases change: promoted, bad and taken back by itself, frozen, acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e import service
from tests.e2e.projects import told
from tests.e2e.shops import (
    Shop,
    Users,
    acknowledged,
    address,
    begun,
    beside,
    delivered,
    lane_of,
    last_line,
    opened,
    sites,
    status_of,
    waited,
)
from tests.e2e.workshop import Ran, Workshop, wait_for

pytestmark = pytest.mark.timeout(300)

BOTH = '{ path = "/", contains = "price" }, { path = "/sale", contains = "price" }'
SHOP = Shop(
    name="shop",
    branches={"second": service.SECOND, "failing": service.FAILING, "mended": service.MENDED},
    delivery=service.section("shop", probes=BOTH),
)

MANY = 100
"""Of 50 requests a second over many seconds these are always answered, also where the machine has more to do."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """Releases 1 to 3 delivered, and the users of the last two switches."""

    at: Workshop
    first: Ran
    second: Ran
    failing: Ran
    queued: str
    switching: Users
    returning: Users


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with opened(tmp_path_factory.mktemp("traffic"), [SHOP]) as at:
        first = delivered(at, "shop")
        url = address(at, "shop")
        with Users(url) as switching:
            second = delivered(at, "shop", "second")
        with Users(url, paths=("/", "/sale")) as returning:
            failing, queued = beside(lambda: delivered(at, "shop", "failing"), lambda: following(at))
        stories = {"first": first, "second": second, "failing": failing, "queued": queued}
        yield Story(at=at, switching=switching, returning=returning, **stories)


def following(at: Workshop) -> str:
    """A newer delivery, begun while release 3 is on its way."""
    wait_for(lambda: told(at, "deliver-shop-3", "artifact.built"), seconds=90, why="release 3")
    return begun(at, "shop", "mended")


def test_nobody_loses_a_request_through_a_switch(story: Story) -> None:
    assert (story.first.code, story.second.code) == (0, 0), story.first.err + story.second.err
    users = story.switching
    assert users.lost() == []
    assert len(users.answers) > MANY
    assert {answer.status for answer in users.answers} == {200}
    assert users.seen(1)
    assert users.seen(2)
    assert {answer.body for answer in users.seen(2)} == {"price 40"}


def test_whoever_saw_the_new_release_never_sees_the_old_one_again(story: Story) -> None:
    """But for requests that were under way."""
    users = story.switching
    first = min(answer.at for answer in users.seen(2))
    assert [answer for answer in users.seen(1) if answer.at > first + 2.0] == []


def test_nobody_loses_a_request_through_the_rollback_of_a_failing_release(story: Story) -> None:
    users = story.returning
    assert users.lost() == []
    assert len(users.answers) > MANY
    assert {answer.status for answer in users.seen(2)} == {200}
    assert {answer.status for answer in users.seen(3)} == {200, 500}  # its own answers
    assert users.answers[-1].release == 2


def test_a_failing_release_is_rolled_back_by_itself_and_proven_so(story: Story) -> None:
    assert story.failing.code == 5, story.failing.err
    record = status_of(story.at, "shop", 3)
    assert (record["status"], record["record"]["proof"]) == ("rolled back", {"release": 2, "ok": True})
    assert record["record"]["residues"] == []
    assert sites(story.at)["shop", "production"]["live"] == 2
    assert "release 2 serves again" in story.failing.err
    assert "failed against the baseline's 0 of" in last_line(story.failing)


def test_the_rolled_back_release_is_gone_from_both_sites(story: Story) -> None:
    units = {name: {unit["release"] for unit in site["units"]} for name, site in sites(story.at).items()}
    assert 3 not in units["shop", "production"] | units["shop", "staging"]
    assert sites(story.at)["shop", "staging"]["live"] == 2


def test_what_was_queued_while_a_release_failed_goes_on_from_the_one_before_it(story: Story) -> None:
    """The breach came in the same minute as the newer delivery (F41)."""
    at, queued = story.at, story.queued
    assert waited(at, queued, "lane.joined", position=1)["reason"].startswith(
        "number 1 in the queue, behind deliver-shop-3"
    )
    assert (lane_of(at, "shop")["frozen"]["release"], lane_of(at, "shop")["frozen"]["outcome"]) == (3, "rolled back")
    wait_for(lambda: "is frozen" in told(at, queued, "lane.joined")[-1]["reason"], why="the reason")
    assert "the lane is frozen since release 3 was rolled back" in at.mendwork("status", queued).out
    shown = at.mendwork("lane", "shop").out
    assert f"waits at 1: {queued} (deliver of release 4" in shown
    assert "mendwork lane shop --acknowledge --reason" in shown

    said = acknowledged(at, "shop")
    assert (said.code, said.out) == (0, "accepted: release 3 is acknowledged; deliveries go on\n")
    assert at.mendwork("watch", queued).code == 0
    mended = status_of(at, "shop", 4)
    assert (mended["status"], mended["previous"]) == ("promoted", 2)
    assert lane_of(at, "shop")["frozen"] is None

    older = delivered(at, "shop", "main")
    assert older.code == 3, older.err
    assert "to go back, roll back" in last_line(older)
    assert status_of(at, "shop", 5)["status"] == "undelivered"
    assert sites(at)["shop", "production"]["live"] == 4
