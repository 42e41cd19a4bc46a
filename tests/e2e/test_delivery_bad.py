"""Releases that are no good, each in its own way: what production has afterwards, and what a person reads."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e import service
from tests.e2e.projects import told
from tests.e2e.shops import Shop, address, asked, beside, delivered, lane_of, last_line, opened, sites, status_of
from tests.e2e.workshop import Ran, Workshop

pytestmark = pytest.mark.timeout(300)

NOWHERE = '{ path = "/missing", contains = "price" }'
SLOW = Shop(name="slow", branches={"bad": service.SLOW})
DYING = Shop(name="dying", branches={"bad": service.DYING})
WRONG = Shop(name="wrong", delivery=service.section("wrong", probes=NOWHERE))
STEADY = Shop(
    name="steady",
    branches={"red": service.RED, "dead": service.BORN_DEAD, "silent": service.SILENT},
    delivery=service.section("steady", start_seconds=15),
)
Bad = tuple[Workshop, dict[str, Ran]]


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bad]:
    """Everything delivered; what only reads what came of it is a test."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        taken = Shop(name="taken", delivery=service.section("taken", more=f"port = {port}"))
        with opened(tmp_path_factory.mktemp("bad"), [SLOW, DYING, WRONG, STEADY, taken]) as at:
            first = ("slow", "dying", "steady")
            good = beside(*(partial(delivered, at, name) for name in first))
            assert [ran.code for ran in good] == [0, 0, 0], "\n".join(ran.err for ran in good)
            todo = {
                **{name: partial(delivered, at, name, "bad") for name in ("slow", "dying")},
                **{name: partial(delivered, at, name) for name in ("wrong", "taken")},
                **{name: partial(delivered, at, "steady", name) for name in ("red", "dead", "silent")},
            }
            yield at, dict(zip(todo, beside(*todo.values()), strict=True))


def untouched(at: Workshop, project: str) -> None:
    """Production has release 1, and nothing else was left anywhere."""
    found = sites(at)
    for environment in ("production", "staging"):
        site = found[project, environment]
        assert (site["live"], [unit["release"] for unit in site["units"]]) == (1, [1])
    assert asked(address(at, project)).body == "price 20"
    assert lane_of(at, project)["frozen"] is None


def test_a_slow_release_is_rolled_back_by_its_p95(bad: Bad) -> None:
    at, ran = bad
    assert ran["slow"].code == 5, ran["slow"].err
    assert "p95" in last_line(ran["slow"])
    assert "times in 2 windows in a row" in last_line(ran["slow"])
    assert (status_of(at, "slow", 2)["status"], sites(at)["slow", "production"]["live"]) == ("rolled back", 1)
    assert lane_of(at, "slow")["frozen"]["release"] == 2


def test_a_release_that_dies_after_a_while_is_rolled_back(bad: Bad) -> None:
    at, ran = bad
    assert ran["dying"].code == 5, ran["dying"].err
    record = status_of(at, "dying", 2)
    assert (record["status"], record["record"]["watch"]["kind"]) == ("rolled back", "fail")
    assert asked(address(at, "dying")).release == 1


def test_a_wrong_path_is_never_a_pass(bad: Bad) -> None:
    at, ran = bad
    assert ran["wrong"].code == 5, ran["wrong"].err
    assert status_of(at, "wrong", 1)["status"] == "rolled back"
    assert "release 1 serves" not in ran["wrong"].err
    assert "the site is closed, as before" in ran["wrong"].err
    assert sites(at)["wrong", "production"]["live"] == 0
    assert asked(address(at, "wrong")).fault


def test_red_integration_tests_leave_production_untouched(bad: Bad) -> None:
    at, ran = bad
    assert ran["red"].code == 5, ran["red"].err
    assert "delivery undelivered: the integration tests against staging are red" in last_line(ran["red"])
    assert not told(at, ran["red"].out.strip(), "release.started")
    untouched(at, "steady")


def test_a_release_that_dies_at_its_start_says_so(bad: Bad) -> None:
    at, ran = bad
    assert ran["dead"].code == 5, ran["dead"].err
    assert "on staging ended by itself" in last_line(ran["dead"])
    untouched(at, "steady")


def test_a_health_check_that_never_answers_as_it_should_says_so(bad: Bad) -> None:
    at, ran = bad
    assert ran["silent"].code == 5, ran["silent"].err
    assert "on staging was not healthy within 15 s" in last_line(ran["silent"])
    untouched(at, "steady")


def test_a_port_that_another_program_holds_is_named(bad: Bad) -> None:
    at, ran = bad
    assert ran["taken"].code == 5, ran["taken"].err
    assert "is held by another program" in last_line(ran["taken"])
    assert status_of(at, "taken", 1)["status"] == "undelivered"
    assert not [unit for name, site in sites(at).items() if name[0] == "taken" for unit in site["units"]]


def test_deliveries_of_one_project_that_came_at_once_followed_each_other(bad: Bad) -> None:
    at, ran = bad
    spans = []
    for name in ("red", "dead", "silent"):
        delivery = ran[name].out.strip()
        [granted] = told(at, delivery, "lane.granted")
        spans.append((granted["waited"], delivery))
    assert len({waited for waited, _ in spans}) == 3
    records = sorted((status_of(at, "steady", number) for number in (2, 3, 4)), key=lambda each: each["ended"])
    assert [record["status"] for record in records] == ["undelivered"] * 3
