"""Production outlives Mendwork: its orderly stop, kill -9 of all of it; what a release is given goes back with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import service
from tests.e2e.shops import Shop, Users, address, asked, delivered, emptied, sites
from tests.e2e.workshop import Workshop, wait_for

pytestmark = pytest.mark.timeout(300)

ENDED = "Mendwork has been ended by then; what it did before is checked where it happened"
SHORT = "seconds = 2\nwindow = 2\nrate = 20\nmin_asked = 20"


def painted(colour: str) -> Shop:
    """The shop, with a variable that its releases tell."""
    more = f'environment = {{ COLOUR = "{colour}" }}'
    files = {**service.FILES, **service.TELLING}
    section = service.section("shop", watch=SHORT, more=more)
    return Shop(name="shop", files=files, branches={"second": service.SECOND}, delivery=section)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Workshop]:
    """Nothing runs yet."""
    shop = Workshop(tmp_path / "w", files=service.FILES)
    painted("blue").make(shop.root)
    with emptied(shop):
        yield shop


def dev(at: Workshop) -> dict[str, int]:
    """The process ids of all of Mendwork: of itself first, which would start the others again."""
    state = json.loads((at.state / "dev.json").read_text())
    return {"dev": state["pid"], "server": state["server_pid"], **state["workers"]}


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_production_goes_on_without_mendwork_and_configuration_goes_back_with_its_release(at: Workshop) -> None:
    with at.running(extra=painted("blue").section(), unchecked=ENDED):
        with at.checked():
            first = delivered(at, "shop")
            assert first.code == 0, first.err
        url = address(at, "shop")
        os.kill(dev(at)["dev"], signal.SIGINT)  # Ctrl-C
        log = at.root / "dev.log"
        wait_for(lambda: "still serving" in log.read_text(), why="its last line")
    last = log.read_text().strip().splitlines()[-1]
    assert f"shop (production) at {url}" in last
    assert last.endswith("end it with: mendwork target stop")
    assert (asked(url).status, asked(url).body) == (200, "price 20 blue")

    with at.running(extra=painted("red").section(), unchecked=ENDED):
        with at.checked():
            second = delivered(at, "shop", "second")
            assert second.code == 0, second.err
            assert asked(url).body == "price 40 red"
            back = at.mendwork("rollback", "2", "--project", "shop", "--by", "ann", seconds=120)
            assert back.code == 0, back.err
            assert asked(url).body == "price 20 blue"

        with Users(url) as users:
            killed = dev(at)
            for pid in killed.values():
                with contextlib.suppress(ProcessLookupError):  # the workers die with "dev", which is the first
                    os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not any(map(lives, killed.values())), why="the end of all of Mendwork")
            count = len(users.answers)
            wait_for(lambda: len(users.answers) > count + 50, why="users")
    assert users.lost() == []
    assert {(answer.status, answer.release, answer.body) for answer in users.answers} == {(200, 1, "price 20 blue")}

    units = [unit for site in sites(at).values() for unit in site["units"]]
    stopped = at.mendwork("target", "stop")
    assert (stopped.code, "bring them back with: mendwork target start" in stopped.err) == (0, True)
    wait_for(lambda: not any(lives(unit["pid"]) for unit in units), why="the end of the releases")
    assert asked(url).fault
    assert at.mendwork("target", "start").code == 0
    wait_for(lambda: asked(url).body == "price 20 blue", why="what served before")
