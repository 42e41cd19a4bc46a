"""kill -9 of any worker while a dry run, a build that goes on from a snapshot, or the housekeeper is at work.

``make test`` plays a third of the table, drawn by MENDWORK_SEED; with MENDWORK_SOAK=1 all of it is played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.chaos.again.cases import KILLS, UNDISTURBED, Case, chosen, ordered
from tests.chaos.again.playing import BUILT, PLANNED, RESUMED, SNAPSHOT, Played, play
from tests.chaos.mortal_worker import MOMENTS

AT_ONCE = 2
BACK_WITHIN_SECONDS = 15

pytestmark = pytest.mark.timeout(900)  # each waits for plays of others too

Plays = Mapping[str, "Future[Played]"]


@pytest.fixture(scope="module")
def plays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plays]:
    """The undisturbed play and the chosen ones, two at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        folder = tmp_path_factory.mktemp("plays")
        wanted = enumerate((UNDISTURBED, *chosen()))
        yield {case.name: pool.submit(play, case, folder / str(number)) for number, case in wanted}
        pool.shutdown(cancel_futures=True)


def test_an_undisturbed_play_goes_on_beside_the_housekeeper(plays: Plays) -> None:
    played = plays[UNDISTURBED.name].result()
    ends = {build: told.status for build, told in played.told.items()}
    assert ends == {BUILT: "succeeded", PLANNED: "planned", RESUMED: "succeeded"}
    assert played.refs[f"refs/heads/mendwork/{BUILT}"] == played.refs[f"refs/heads/mendwork/{RESUMED}"]
    assert f"refs/heads/mendwork/{PLANNED}" not in played.refs
    (restored,) = [fact for fact in played.told[RESUMED].story["build"] if fact.startswith("build.restored")]
    assert f'"token": "{SNAPSHOT}"' in restored
    assert played.house.pins == (BUILT, RESUMED), "a build's are kept as long as a snapshot of it"
    assert {token.partition("@")[0] for token in played.house.snapshots} == {BUILT, RESUMED}
    assert SNAPSHOT in played.house.snapshots


def test_the_housekeeper_takes_what_nothing_needs_and_nothing_else(plays: Plays) -> None:
    for name, played in plays.items():
        house = played.result().house
        assert (house.lost, house.extra, house.garbage, house.faults) == ((), (), (), ()), name
        assert house.environments == 1, "the open build's own"


@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_whatever_dies_the_end_is_that_of_the_undisturbed(case: Case, plays: Plays) -> None:
    whole, played = plays[UNDISTURBED.name].result(), plays[case.name].result()
    assert set(played.died) == {order for orders in case.orders.values() for order in orders}
    back = [seconds for seconds in played.died.values() if seconds is not None]
    assert max(back, default=0) <= BACK_WITHIN_SECONDS, played.died
    assert played.refs == whole.refs, "the trees of all branches"
    assert played.house == whole.house
    for build, told in played.told.items():
        expected = whole.told[build]
        assert (told.status, told.sentence) == (expected.status, expected.sentence), build
        assert told.story == expected.story, build


def test_every_activity_dies_at_every_moment() -> None:
    activities = [activity for chapter in KILLS.values() for activity in chapter]
    assert ordered() == {f"{activity}.{moment}" for activity in activities for moment in MOMENTS}
