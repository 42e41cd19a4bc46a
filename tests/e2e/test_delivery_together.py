"""Deliveries beside each other: of ten projects, which do not meet, and of one project, which take turns (F42)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e import service
from tests.e2e.projects import events, told
from tests.e2e.shops import (
    Shop,
    acknowledged,
    address,
    asked,
    begun,
    beside,
    lane_of,
    opened,
    sites,
    status_of,
    waited,
)
from tests.e2e.test_temporal_cli import temporal
from tests.e2e.workshop import Workshop, wait_for

pytestmark = pytest.mark.timeout(300)

LIGHT = "seconds = 2\nwindow = 2\nrate = 5\nmin_asked = 5"
LONGER = "seconds = 8\nwindow = 2\nrate = 5\nmin_asked = 5"
TEN = [
    Shop(
        name=f"shop{number}",
        files={**service.FILES, "prices.py": f"def price(count):\n    return {number} + count\n"},
        delivery=service.section(f"shop{number}", watch=LIGHT, start_seconds=60),
    )
    for number in range(10)
]
PAIR = Shop(name="pair", delivery=service.section("pair", watch=LONGER, start_seconds=60))


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """Orphans are looked for every second."""
    often = {"MENDWORK_TIMEOUTS__SWEEP": "1"}
    with opened(tmp_path_factory.mktemp("together"), [*TEN, PAIR], environment=often) as running:
        yield running


def test_ten_projects_that_deliver_at_once_do_not_meet(at: Workshop) -> None:
    names = beside(*(partial(begun, at, shop.name) for shop in TEN))
    for name in names:
        assert waited(at, name, "delivery.ended", seconds=150)["status"] == "promoted"

    found = sites(at)
    units = [unit for site in found.values() for unit in site["units"]]
    assert len(units) == 20
    assert len({unit["port"] for unit in units} | {site["url"] for site in found.values()}) == 40
    answers = [asked(found[shop.name, "production"]["url"]) for shop in TEN]
    assert [answer.body for answer in answers] == [f"price {number + 2}" for number in range(10)]

    logs = [events(at, name) for name in names]
    granted = [next(event.at for event in log if event.kind == "lane.granted") for log in logs]
    assert max(granted) < min(log[-1].at for log in logs)  # none waited for another one's end
    assert not [name for name in names if told(at, name, "lane.joined", position=1)]


def test_of_two_deliveries_of_one_project_the_second_waits_and_goes_on_after_the_first_is_lost(at: Workshop) -> None:
    """The lane looks at its holder every other second here, not every thirty."""
    request = {"project": "pair", "environment": "production", "lease": 2, "heartbeat": 2}
    lane = ["workflow", "start", "--type", "Lane", "-t", "mendwork", "--workflow-id", "lane-pair-production"]
    assert temporal(at, *lane, "--input", json.dumps(request)).returncode == 0
    first, second = begun(at, "pair"), begun(at, "pair")
    waited(at, first, "release.switched")
    reason = waited(at, second, "lane.joined", position=1)["reason"]
    assert reason == f"number 1 in the queue, behind {first}"
    assert not told(at, second, "delivery.snapshot")
    assert asked(address(at, "pair")).release == 1

    assert temporal(at, "workflow", "terminate", "-w", first).returncode == 0
    wait_for(lambda: lane_of(at, "pair")["frozen"], why="the lane's look at its holder")
    lane_is = lane_of(at, "pair")
    assert (lane_is["frozen"]["outcome"], lane_is["frozen"]["release"]) == ("unclear", 1)
    assert (lane_is["holder"], [place["saga"] for place in lane_is["queue"]]) == (None, [second])
    wait_for(lambda: is_undone(at), seconds=60, why="the sweeper's undo")
    assert asked(address(at, "pair")).fault

    assert acknowledged(at, "pair").code == 0
    assert waited(at, second, "delivery.ended")["status"] == "promoted"
    assert (status_of(at, "pair", 2)["previous"], asked(address(at, "pair")).release) == (0, 2)


def is_undone(at: Workshop) -> bool:
    """Nothing is left of the release whose delivery was terminated."""
    found = sites(at)
    live = [found["pair", name]["live"] for name in ("production", "staging") if ("pair", name) in found]
    units = [unit for name, site in found.items() if name[0] == "pair" for unit in site["units"]]
    return not any(live) and not units
