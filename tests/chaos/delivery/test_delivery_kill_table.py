"""kill -9 of any worker before, during and after any step of a delivery: outside it looks like an undisturbed one.

``make test`` plays a third of the table, drawn by MENDWORK_SEED; with MENDWORK_SOAK=1 all of it is played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.chaos.delivery.cases import ABORTED, BREACHED, BUILT, FIRST, UNCLEAR, UNDISTURBED, Case, chosen
from tests.chaos.delivery.playing import Played, play
from tests.chaos.delivery.stage import SHOP
from tests.chaos.mortal_worker import parsed

AT_ONCE = 4
"""Each play waits most of its time: for heartbeats that do not come, and for windows."""
BACK_WITHIN_SECONDS = 20

pytestmark = pytest.mark.timeout(1_800)  # each waits for plays of others too: a third takes two minutes, all take six

Plays = Mapping[str, "Future[Played]"]


@pytest.fixture(scope="module")
def plays(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plays]:
    """The undisturbed play and those that the chosen tests ask about, four at a time."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    cases = [params["case"] for params in parameters if isinstance(params.get("case"), Case)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        folder = tmp_path_factory.mktemp("plays")
        wanted = enumerate((UNDISTURBED, *cases))
        yield {case.name: pool.submit(play, case, folder / str(number)) for number, case in wanted}
        pool.shutdown(cancel_futures=True)


def test_an_undisturbed_play_goes_both_ways(plays: Plays) -> None:
    chapters = plays[UNDISTURBED.name].result().chapters
    ends = {name: chapter.status for name, chapter in chapters.items()}
    assert ends == {
        FIRST: "promoted",
        BREACHED: "rolled back",
        ABORTED: "undelivered",
        BUILT: "promoted",
        UNCLEAR: "unclear",
    }
    assert chapters[FIRST].after.told[f"{SHOP}/production"] == (200, 1, "price 20")
    assert chapters[FIRST].after.done[f"{SHOP}/production/1"] == {"starts": 1, "migrated": 1}
    assert chapters[BUILT].after.sites[f"{SHOP}/production"][0] == 4
    assert chapters[BREACHED].lane["frozen"][:2] == (2, "rolled back")


@pytest.mark.parametrize("name", [BREACHED, ABORTED])
def test_what_is_taken_back_leaves_the_very_same_outside(name: str, plays: Plays) -> None:
    for played in plays.values():
        chapter = played.result().chapters[name]
        assert chapter.after == chapter.before
        assert chapter.after.exact == chapter.before.exact, "the same processes on the same ports, never restarted"
        assert chapter.residues == ()


def test_what_cannot_be_taken_back_is_unclear_with_every_residue_and_what_to_do(plays: Plays) -> None:
    for played in plays.values():
        chapter = played.result().chapters[UNCLEAR]
        assert chapter.status == "unclear"
        assert not [fact for fact in chapter.story["delivery"] if fact.startswith("release.rolled_back")]
        told = " ".join(chapter.residues)
        assert "restore_traffic: nothing is left of release" in told
        assert "retire_unit: " in told, "it serves still, and is left where it is"
        assert "undo_step: " in told, "what it needs is not taken away from under it"
        assert chapter.after.done[f"{SHOP}/production/5"] == {"starts": 1, "migrated": 1}
        assert f"production of {SHOP} leads to release" in told
        assert "mendwork rollback" in told
        assert chapter.after.told[f"{SHOP}/production"][1] == 5
        assert set(chapter.after.sites[f"{SHOP}/staging"][1]) == {4}, "staging was taken back all the same"
        assert chapter.lane["frozen"][:2] == (5, "unclear")


@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_a_delivery_that_loses_its_workers_ends_like_an_undisturbed_one(case: Case, plays: Plays) -> None:
    whole, played = plays[UNDISTURBED.name].result(), plays[case.name].result()
    assert len(played.struck) == case.strikes
    for name, chapter in played.chapters.items():
        expected = whole.chapters[name]
        assert set(chapter.died) == {parsed(order)[0] for order in case.orders.get(name, ())}, name
        back = [seconds for seconds in chapter.died.values() if seconds is not None]
        assert max(back, default=0) <= BACK_WITHIN_SECONDS, chapter.died
        assert (chapter.status, chapter.sentence) == (expected.status, expected.sentence), name
        assert chapter.residues == expected.residues
        assert chapter.after == expected.after, name
        assert chapter.record == expected.record
        assert chapter.lane == expected.lane
        assert chapter.story == expected.story
