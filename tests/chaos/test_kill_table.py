"""kill -9 of any worker before, during and after any activity: the build comes to the end of an undisturbed one.

``make test`` plays a third of the table, drawn by MENDWORK_SEED; with MENDWORK_SOAK=1 all of it is played. Two builds
run at once, each in a Mendwork of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from temporalio import activity

import worker
from adapters.settings import Settings
from tests.chaos.again.cases import ordered as of_what_follows
from tests.chaos.cases import CASES, KILLS, LOST, UNDISTURBED, chosen, ordered
from tests.chaos.delivery.cases import ordered as of_deliveries
from tests.chaos.mortal_worker import MOMENTS, parsed
from tests.chaos.playing import BUILD, Case, Played, play
from tests.chaos.scenes import SCENES, TARGET
from tests.conftest import TemporalServer

AT_ONCE = 2
BACK_WITHIN_SECONDS = 15
RESULT = f"refs/heads/mendwork/{BUILD}"

pytestmark = pytest.mark.timeout(900)  # each waits for builds of others too: a third takes two minutes, all take five

Plays = Mapping[str, "Future[Played]"]


@pytest.fixture(scope="module")
def plays(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plays]:
    """All builds that the chosen tests ask about, two at a time, in the order of the tests."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    cases = [params["case"] for params in parameters if isinstance(params.get("case"), Case)]
    needed = {case.scene for case in cases}
    wanted = [*(case for case in UNDISTURBED if case.scene in needed), *(c for c in cases if c not in UNDISTURBED)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        folder = tmp_path_factory.mktemp("plays")
        names = enumerate(case.name for case in wanted)
        yield {name: pool.submit(play, wanted[number], folder / str(number)) for number, name in names}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", UNDISTURBED, ids=lambda case: case.name)
def test_an_undisturbed_build_tells_its_whole_story(case: Case, plays: Plays) -> None:
    played = plays[case.name].result()
    assert played.details.status == SCENES[case.scene].ends, played.details.sentence
    assert played.lost == ()
    assert set(played.asked.values()) == {1}
    if case.scene in ("take", "retry"):
        kinds = Counter(fact.split()[0] for facts in played.story.values() for fact in facts)
        assert kinds["task.sent_back"] == 2, "a conflict and a finding"
        assert kinds["ask.opened"] == kinds["ask.closed"] == 4, "two plans, a question, the change"
        assert kinds["review.ended"] == 2
        assert played.refs[f"refs/heads/{TARGET}"] == played.refs[RESULT] != played.before[f"refs/heads/{TARGET}"]
    else:
        assert played.refs == played.before


@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_a_build_that_loses_its_workers_ends_like_an_undisturbed_one(case: Case, plays: Plays) -> None:
    whole, played = plays[case.scene].result(), plays[case.name].result()

    assert set(played.died) == {parsed(order)[0] for order in case.orders}, "every ordered death happened"
    assert len(played.struck) == case.strikes
    back = [seconds for seconds in played.died.values() if seconds is not None]
    assert max(back, default=0) <= BACK_WITHIN_SECONDS, played.died

    assert (played.details.status, played.details.sentence) == (whole.details.status, whole.details.sentence)
    assert played.refs == whole.refs, "the trees of all branches"
    assert played.story == whole.story
    assert_only_attempts_are_lost(case, played, whole)


def assert_only_attempts_are_lost(case: Case, played: Played, whole: Played) -> None:
    """Each lost try is named, is one that Temporal began again, and it alone was asked of the provider twice."""
    assert set(LOST.get(case.name, ())) <= set(played.lost)
    lost = Counter(name.rpartition("#")[0] for name in played.lost)
    assert lost <= played.begun_again, "no try is lost but by a death, or a silence that was taken for one"
    assert played.asked.keys() == whole.asked.keys()
    assert played.asked <= whole.asked + lost


async def test_every_activity_has_its_case(
    temporal: TemporalServer, make_settings: Callable[..., Settings], environment: dict[str, str]
) -> None:
    settings = make_settings(temporal={"task_queue": "kill-table"})
    served = set()
    for part in worker.PARTS.values():
        async with part(settings, {**environment, **temporal.environment}) as opened:
            definitions = [activity._Definition.must_from_callable(each) for each in opened.activities]
            served |= {str(definition.name) for definition in definitions}
    assert ordered() | of_deliveries() | of_what_follows() == {
        f"{name}.{moment}" for name in served for moment in MOMENTS
    }


def test_a_third_has_a_case_of_every_kind() -> None:
    assert len(CASES) == 3 * (len(KILLS) + 1)
    assert {case.scene for case in chosen()} >= set(KILLS)
