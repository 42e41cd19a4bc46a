"""Every recorded history of every release replays: what is under way when the engine is upgraded goes on, or this
fails first."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from tests.replay import builds, deliveries
from tests.replay.shelf import SHELF, kind_of, order, running_version
from workflows.catalogue import IN_A_DEPLOYMENT, PINNED, SINCE, WORKFLOWS

VERSIONS = SHELF.versions()
RECORDED = [path for version in VERSIONS for path in SHELF.histories(version)]
NEWEST = SHELF.histories(VERSIONS[-1])
MOST_BYTES = 4_000_000


@workflow.defn(name="BuildSaga", sandboxed=False)
class Changed:
    """What an incompatible change looks like to a history."""

    @workflow.run
    async def run(self, request: Any = None) -> None:
        """Something else than what was recorded."""
        await workflow.sleep(1)


def replayer(*workflows: type) -> Replayer:
    return Replayer(workflows=workflows, data_converter=pydantic_data_converter)


def history(path: Path) -> WorkflowHistory:
    text = path.read_text()
    started = json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]
    return WorkflowHistory.from_json(started["workflowId"], text)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_a_recorded_history_replays(path: Path) -> None:
    result = await replayer(*WORKFLOWS).replay_workflow(history(path), raise_on_replay_failure=False)
    assert result.replay_failure is None


@pytest.mark.parametrize("kind", sorted(PINNED))
async def test_what_stays_with_its_version_in_a_deployment_is_the_same_saga(kind: str) -> None:
    """So an engine may become a deployment, and be none again, while sagas are under way."""
    sagas = replayer(*IN_A_DEPLOYMENT)
    longest = max((path for path in NEWEST if kind_of(path) == kind), key=lambda path: path.stat().st_size)
    result = await sagas.replay_workflow(history(longest), raise_on_replay_failure=False)
    assert result.replay_failure is None


def test_what_stays_with_its_version_takes_gives_and_fails_as_the_saga_does() -> None:
    defined = workflow._Definition.must_from_class
    for plain, pinned in zip(WORKFLOWS, IN_A_DEPLOYMENT, strict=True):
        assert inspect.signature(defined(pinned).run_fn) == inspect.signature(defined(plain).run_fn)
        assert inspect.signature(pinned) == inspect.signature(plain)
        assert defined(pinned).failure_exception_types == defined(plain).failure_exception_types
        for handlers in ("signals", "updates", "queries"):
            assert set(getattr(defined(pinned), handlers)) == set(getattr(defined(plain), handlers))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_release_has_a_history_of_every_kind_of_saga_that_it_serves(version: str) -> None:
    wanted = {kind for kind, since in SINCE.items() if order(since) <= order(version)}
    assert wanted <= {kind_of(path) for path in SHELF.histories(version)}


def test_every_kind_of_saga_is_recorded_since_a_version_that_is_there() -> None:
    assert set(SINCE) == {each.__name__ for each in WORKFLOWS}
    assert {since for since in SINCE.values() if since not in VERSIONS} == set()


def test_no_version_is_recorded_that_is_newer_than_the_code() -> None:
    assert order(VERSIONS[-1]) <= order(running_version())


def test_the_newest_version_has_every_scenario() -> None:
    """A new one is recorded with the next version: a release is never written again."""
    names = {path.stem for path in NEWEST}
    assert {scenario for scenario in builds.SCENARIOS if f"build-notes-{scenario}" not in names} == set()
    assert {scenario for scenario in deliveries.SCENARIOS if f"deliver-shop-{scenario}" not in names} == set()
    assert deliveries.LANE in names


def test_a_release_is_as_it_was_made() -> None:
    assert list(SHELF.changes()) == []


def test_no_recorded_history_tells_the_paths_of_a_machine() -> None:
    assert not [path.name for path in RECORDED if "site-packages" in path.read_text()]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_releases_histories_stay_small(version: str) -> None:
    texts = [path.read_text() for path in SHELF.histories(version)]
    assert sum(map(len, texts)) < MOST_BYTES
    assert max(len(json.dumps(event)) for text in texts for event in json.loads(text)["events"]) < 16_000


async def test_a_saga_that_changed_without_a_patch_is_caught() -> None:
    plain = next(path for path in NEWEST if path.stem == "build-notes-plain")
    result = await replayer(Changed).replay_workflow(history(plain), raise_on_replay_failure=False)
    assert result.replay_failure is not None
