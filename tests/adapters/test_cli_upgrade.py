"""What is said of a history that the code cannot replay, and which version of the engine a worker is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import VersioningBehavior

from adapters.cli.doctor import versions
from adapters.cli.upgrade import draining
from adapters.cli.upgrade.checking import LONGEST_REASON, Checked, reason
from adapters.cli.upgrade.deploying import build_id, deployment, served, version_here
from adapters.cli.upgrade.draining import Drain, Draining, sentence
from adapters.cli.upgrade.under_way import UnderWay
from adapters.settings import Settings
from adapters.temporal.state import DevState, write_state
from domain.errors import ServerUnavailable
from workflows.catalogue import IN_A_DEPLOYMENT, PINNED, WORKFLOWS

Make = Callable[..., Settings]
SAGA = UnderWay(name="build-shop-1-task-a", kind="TaskSaga", run="r", version="mendwork:0.1.0-1f3c", pinned=True)

REPLAYER = (
    'Workflow activation completion failed: Failure { failure: Some(Failure { message: "[TMPRL1100] Nondeterminism '
    'error: Activity machine does not handle this event: HistoryEvent(id: 5, TimerStarted)", source: "", encoded'
)


def test_the_replayers_own_sentence_is_taken_out_of_its_wrapping() -> None:
    assert reason(REPLAYER) == "Activity machine does not handle this event: HistoryEvent(id: 5, TimerStarted)"


def test_what_is_not_wrapped_is_told_as_it_is() -> None:
    assert reason("RuntimeError:\n  no such field") == "RuntimeError: no such field"


@given(st.text())
def test_a_reason_is_one_line_of_bounded_length(text: str) -> None:
    found = reason(text)
    assert len(found) <= LONGEST_REASON
    assert "\n" not in found


def test_what_holds_an_older_version_is_told_with_its_reason_and_who_could_end_it() -> None:
    assert sentence(Checked(saga=SAGA)) == "build-shop-1-task-a (TaskSaga) stays with mendwork:0.1.0-1f3c"
    waits = Checked(saga=replace(SAGA, name="build-shop-1", kind="BuildSaga", waits=True), why="a step\x1b[2J more")
    assert sentence(waits) == (
        "build-shop-1 (BuildSaga) this version cannot replay it: a step [2J more; "
        "it waits for an answer: mendwork pending build-shop-1"
    )


class Looking(Draining):
    """A waiting whose looks are given: what is left, or why the server did not answer."""

    looks: Iterator[Sequence[Checked] | ServerUnavailable]

    async def look(self) -> Sequence[Checked]:
        found = next(self.looks)
        if isinstance(found, ServerUnavailable):
            raise found
        return found


def looking(*looks: Sequence[Checked] | ServerUnavailable, lines: list[str]) -> Looking:
    at: Any = None  # nothing of the server is asked
    found = Looking(client=at, wanted=Drain(queue="q", every=0.001), say=lines.append)
    found.looks = iter(looks)
    return found


HELD = Checked(saga=SAGA)
AWAY = ServerUnavailable("the server is away")


async def test_a_drain_tells_each_change_once_and_outlasts_a_server_that_is_away() -> None:
    lines: list[str] = []
    await looking([HELD], [HELD], AWAY, AWAY, [HELD], [], lines=lines).wait()
    assert lines == ["waits for 1:", f"  {sentence(HELD)}", "the server is away; asking again"]


async def test_a_drain_gives_up_a_server_that_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "SERVER_PATIENCE_SECONDS", 0.0)
    with pytest.raises(ServerUnavailable):
        await looking([HELD], AWAY, AWAY, lines=[]).wait()


async def test_a_drain_names_a_few_of_many() -> None:
    many = [Checked(saga=replace(SAGA, name=f"build-shop-{number}")) for number in range(1, 8)]
    lines: list[str] = []
    await looking(many, [], lines=lines).wait()
    assert (lines[0], len(lines), lines[-1]) == ("waits for 7:", 7, "  and 2 more: mendwork upgrade status")


def deployed(make_settings: Make, **more: Any) -> Settings:
    return make_settings(temporal={"address": "temporal:7233", "deployment": "fleet", **more})


def test_a_worker_belongs_to_no_deployment_unless_one_is_configured(make_settings: Make) -> None:
    settings = make_settings(temporal={"address": "temporal:7233", "build_id": "1.0"})
    assert deployment(settings, {}) is None
    assert served(settings, {}) == WORKFLOWS
    assert version_here(settings) == ""


def defined(saga: type) -> Any:
    return workflow._Definition.must_from_class(saga)


def test_the_workers_of_a_deployment_name_their_version_and_pin_what_ends_soon(make_settings: Make) -> None:
    settings = deployed(make_settings, build_id="0.2.0-x")
    joined = deployment(settings, {})
    assert joined is not None
    assert (joined.version.deployment_name, joined.version.build_id) == ("fleet", "0.2.0-x")
    assert joined.default_versioning_behavior is VersioningBehavior.AUTO_UPGRADE
    assert version_here(settings) == "fleet:0.2.0-x"
    behaviours = {definition.name: definition.versioning_behavior for definition in map(defined, served(settings, {}))}
    pinned = {name for name, behaviour in behaviours.items() if behaviour is VersioningBehavior.PINNED}
    assert pinned == set(PINNED) == {"TaskSaga", "KpiWatch"}
    assert [defined(each).name for each in IN_A_DEPLOYMENT] == [defined(each).name for each in WORKFLOWS]


def test_an_embedded_engine_is_never_a_deployment(make_settings: Make) -> None:
    """Its workers end with it, so that nothing of an older version could stay."""
    assert deployment(make_settings(temporal={"deployment": "fleet"}), {}) is None
    settings = deployed(make_settings)
    settings.state.mkdir()
    write_state(settings.state, DevState(pid=os.getppid(), address="temporal:7233", namespace="default"))
    assert deployment(settings, {}) is None, "a worker of mendwork dev, at a server of its own choice"
    write_state(settings.state, DevState(pid=os.getpid(), address="temporal:7233", namespace="default"))
    assert deployment(settings, {}) is not None, "a worker that was started beside it"


def test_a_version_is_called_after_its_release_and_commit(make_settings: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "commit", lambda checkout: "1f3c" * 10)
    assert build_id(make_settings()) == f"{versions.release()}-1f3c1f3c1f3c"
    monkeypatch.setattr(versions, "commit", lambda checkout: None)
    assert build_id(make_settings()) == versions.release()


@pytest.mark.parametrize(("key", "value"), [("deployment", "a.b"), ("deployment", "a:b"), ("build_id", "a:b")])
def test_names_that_temporal_would_cut_in_two_are_refused(make_settings: Make, key: str, value: str) -> None:
    with pytest.raises(ValidationError, match=key):
        make_settings(temporal={key: value})


def test_the_version_is_one_line_for_programs_and_its_commit_one_for_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(versions, "commit", lambda checkout: "1f3c")
    versions.show(json=False)
    assert capsys.readouterr() == (f"{versions.release()}\n", "commit 1f3c\n")
    monkeypatch.setattr(versions, "commit", lambda checkout: None)
    versions.show(json=False)
    assert capsys.readouterr() == (f"{versions.release()}\n", "")


def test_the_number_that_is_told_is_that_of_the_project() -> None:
    from tests.replay.shelf import running_version

    assert versions.release() == running_version()


def test_the_number_is_the_checkouts_whether_it_is_installed_or_not(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mendwork"\nversion = "7.8.9"\n')
    assert versions.release(tmp_path) == "7.8.9"
    assert versions.release(tmp_path / "elsewhere") == version("mendwork")
