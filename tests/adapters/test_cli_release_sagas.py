"""``deliver``, ``rollback``, ``lane`` and the decisions about a release, against a real server: what is started, and
who is told what."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from adapters.cli.decide import answers
from adapters.cli.decide.answers import Decision, Reply
from adapters.cli.release.deliver import Wanted, deliver
from adapters.cli.release.lane import LaneWanted, lane, lane_lines
from adapters.cli.release.rollback import Back, rollback
from adapters.settings import Settings
from adapters.store import open_store
from domain.errors import InvalidInput, UnknownName
from tests.adapters.heard_saga import Heard
from tests.adapters.released import EVIL, PROJECTS, keep, release
from tests.conftest import TemporalServer
from tests.domain.delivery_stories import OF_BUILD, of_build, rolled_back, until_asked
from tests.domain.trace_stories import Saga


@pytest.fixture
def project() -> str:
    """A name that no other test has: it is in the ids of workflows."""
    return f"p{uuid.uuid4().hex[:12]}"


@pytest.fixture
def settings(
    make_settings: Callable[..., Settings],
    temporal: TemporalServer,
    monkeypatch: pytest.MonkeyPatch,
    project: str,
) -> Settings:
    for name, value in temporal.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    projects = {project: PROJECTS["calc"], "plain": PROJECTS["plain"]}
    return make_settings(projects=projects, temporal={"task_queue": uuid.uuid4().hex})


@asynccontextmanager
async def served(client: Client, settings: Settings) -> AsyncIterator[Worker]:
    async with Worker(client, task_queue=settings.temporal.task_queue, workflows=[Heard]) as worker:
        yield worker


async def running(client: Client, settings: Settings, name: str, words: Any = None) -> Any:
    return await client.start_workflow("DeliverySaga", words, id=name, task_queue=settings.temporal.task_queue)


class TestDelivering:
    async def test_starts_the_saga_under_the_next_name_with_plain_json(
        self, client: Client, settings: Settings, project: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with served(client, settings):
            wanted = Wanted(commit="main", project=project, approve="release", detach=True, by="ann")
            assert await deliver(settings, wanted) == 0
            assert await deliver(settings, Wanted(commit="main", project="", detach=True, json=True)) == 0
            first, second = capsys.readouterr().out.splitlines()
            assert (first, json.loads(second)) == (f"deliver-{project}-1", {"delivery": f"deliver-{project}-2"})
            handle = client.get_workflow_handle(first)
            (words,) = await handle.query("heard")
            await handle.signal("end")
            await client.get_workflow_handle(f"deliver-{project}-2").signal("end")
        given = {name: value for name, value in words.items() if value}
        assert given == {"project": project, "kind": "deliver", "commit": "main", "by": "ann", "approved": ["release"]}

    async def test_is_refused_before_anything_is_started(self, settings: Settings, project: str) -> None:
        with pytest.raises(InvalidInput, match="project plain has no target: give it a"):
            await deliver(settings, Wanted(commit="main", project="plain"))
        with pytest.raises(UnknownName, match="unknown approval 'change'; known: release"):
            await deliver(settings, Wanted(commit="main", project=project, approve="change"))
        for commit in ("", "  ", "-x", "a\nb", "c" * 201):
            with pytest.raises(InvalidInput, match="COMMIT: a branch or a commit"):
                await deliver(settings, Wanted(commit=commit, project=project))


class TestRollingBack:
    async def test_tells_the_releases_own_saga_while_it_runs(
        self, client: Client, settings: Settings, project: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        saga = f"deliver-{project}-8"
        await keep(settings, release(1, project=project, saga=saga, status="open", previous=0))
        async with served(client, settings):
            handle = await running(client, settings, saga)
            back = Back(release=1, project=project, reason="slow", by="ann")
            assert await rollback(settings, back) == 0
            heard = await handle.query("heard")
            await handle.signal("end")
        assert heard[1] == ["roll_back", {"by": "ann", "reason": "slow", "to": 0}]
        assert capsys.readouterr().out == "accepted: roll_back is heard\n"

    async def test_starts_a_saga_of_its_own_where_that_one_has_ended(
        self, client: Client, settings: Settings, project: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        older = release(1, project=project, saga=f"deliver-{project}-21", status="promoted")
        await keep(settings, older)
        async with await open_store(settings.store_url) as store:
            assert await store.releases.reserve(project, saga=f"deliver-{project}-22") == 2
            await store.releases.record(release(2, project=project, saga=f"deliver-{project}-22", status="promoted"))
        async with served(client, settings):
            back = Back(release=2, project=project, to=1, reason="slow", by="ann", detach=True)
            assert await rollback(settings, back) == 0
            handle = client.get_workflow_handle(capsys.readouterr().out.strip())
            (words,) = await handle.query("heard")
            await handle.signal("end")
        given = {name: value for name, value in words.items() if value}
        assert given == {
            "project": project,
            "kind": "rollback",
            "release": 2,
            "to": 1,
            "by": "ann",
            "reason": "slow",
        }

    async def test_of_what_production_does_not_have_is_refused(self, settings: Settings, project: str) -> None:
        await keep(settings, release(1, project=project, saga="s", status="undelivered"))
        with pytest.raises(InvalidInput, match="cannot be rolled back: production never had it"):
            await rollback(settings, Back(release=1, project=project))
        with pytest.raises(UnknownName, match="'7'; known: 1"):
            await rollback(settings, Back(release=7, project=project))

    async def test_goes_to_an_older_release_only(self, settings: Settings, project: str) -> None:
        await keep(settings, release(1, project=project, saga="s", status="promoted"))
        with pytest.raises(InvalidInput, match="--to 1: a release before 1"):
            await rollback(settings, Back(release=1, project=project, to=1))


FROZEN: dict[str, Any] = {
    "current": {"number": 2, "commit": "b" * 40},
    "frozen": {
        "release": 3,
        "outcome": "rolled back",
        "sentence": f"180 of 600 failed {EVIL}",
        "at": 1_700_000_000_000,
    },
    "holder": {"place": {"saga": "deliver-calc-4", "kind": "rollback", "release": 4, "by": "ann", "at": 0}},
    "queue": [{"saga": "deliver-calc-5", "kind": "deliver", "release": 5}],
    "history": [{"number": 2, "outcome": "promoted", "commit": "b" * 40, "at": 1_700_000_000_000}],
}


class TestALane:
    def test_is_told_to_a_person_with_the_way_out_of_a_freeze(self) -> None:
        lines = list(lane_lines("calc", FROZEN))
        assert lines[0] == "production of calc: release 2, bbbbbbbbbbbb"
        assert lines[1].strip() == "frozen since 2023-11-14 22:13 UTC: release 3 is rolled back"
        assert "    mendwork lane calc --acknowledge --reason '…'" in lines
        assert any("deliver-calc-4 (rollback of release 4, by ann)" in line for line in lines)
        assert any("waits at 1: deliver-calc-5" in line for line in lines)
        assert all(line.isprintable() for line in lines)

    @pytest.mark.parametrize("state", [{}, {"holder": None, "frozen": None, "queue": None, "history": 7}])
    def test_of_which_nothing_is_known_is_told_all_the_same(self, state: dict[str, Any]) -> None:
        lines = [line.strip() for line in lane_lines("calc", state)]
        assert lines == ["production of calc: no release is known", "delivers: nobody"]

    async def test_is_asked_and_its_freeze_ended(
        self, client: Client, settings: Settings, project: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with served(client, settings):
            handle = await running(client, settings, f"lane-{project}-production", FROZEN)
            assert await lane(settings, LaneWanted(project=project, json=True)) == 0
            assert json.loads(capsys.readouterr().out) == FROZEN
            ending = LaneWanted(project=project, acknowledge=True, reason="fixed", by="ann")
            assert await lane(settings, ending) == 0
            heard = await handle.query("heard")
            await handle.signal("end")
        assert heard[1] == ["acknowledge", {"by": "ann", "reason": "fixed"}]

    async def test_that_is_not_there_is_no_failure(
        self, settings: Settings, project: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert await lane(settings, LaneWanted(project=project)) == 0
        assert "nothing of" in capsys.readouterr().err
        with pytest.raises(InvalidInput, match="--acknowledge needs a --reason"):
            await lane(settings, LaneWanted(project=project, acknowledge=True))


class TestDeciding:
    @pytest.fixture
    async def names(self, settings: Settings) -> tuple[str, str]:
        """A build whose delivery asks, and that delivery; nobody else's workflows have these names."""
        build = f"build-calc-{uuid.uuid4().hex[:12]}"
        delivery = f"{build}-release"
        story = of_build(until_asked(Saga("r"), delivery), "")[:-1]
        async with await open_store(settings.store_url) as store:
            await store.events.append([replace(event, build=build) for event in story])
        return build, delivery

    @pytest.mark.parametrize("named", [0, 1], ids=["by its build", "by its own name"])
    async def test_an_approval_reaches_the_delivery(
        self, client: Client, settings: Settings, names: tuple[str, str], named: int
    ) -> None:
        async with served(client, settings):
            handle = await running(client, settings, names[1])
            decision = Decision(
                build=names[named], choice="approve", digest="fedcba98", reason="", by="ann", json=False
            )
            assert await answers.decide(settings, decision) == 0
            heard = await handle.query("heard")
            await handle.signal("end")
        assert heard[1] == ["approve", {"digest": "fedcba98", "by": "ann", "reason": ""}]

    async def test_an_answer_about_the_watch_reaches_the_delivery(
        self, client: Client, settings: Settings, names: tuple[str, str]
    ) -> None:
        asked: dict[str, Any] = {"id": "watch-2", "about": "watch", "kind": "question", "digest": "d", "sentence": "s"}
        asked |= {"choices": ["promote", "extend", "roll_back"], "saga": names[1]}
        event = Saga("w").note(9000, "ask.opened", **asked)
        async with await open_store(settings.store_url) as store:
            await store.events.append([replace(event, build=names[0])])
        async with served(client, settings):
            handle = await running(client, settings, names[1])
            given = Reply(build=names[0], ask="", choice="roll_back", by="ann", json=False, hint="slow")
            assert await answers.reply(settings, given) == 0
            heard = await handle.query("heard")
            await handle.signal("end")
        told = {name: value for name, value in heard[1][1].items() if value}
        assert told == {"ask": "watch-2", "choice": "roll_back", "by": "ann", "reason": "slow"}

    async def test_too_late_says_how_the_delivery_ended(
        self, client: Client, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async with await open_store(settings.store_url) as store:
            await store.events.append(of_build(rolled_back(OF_BUILD), "rolled back"))
        decision = Decision(build=OF_BUILD, choice="approve", digest="0" * 8, reason="", by="ann", json=False)
        assert await answers.decide(settings, decision) == 3
        assert f"refused: {OF_BUILD} has ended (rolled back): this comes too late" in capsys.readouterr().out
