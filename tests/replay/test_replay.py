"""Every recorded history replays: what is under way when the engine is upgraded goes on, or this fails first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from tests.replay import deliveries
from tests.replay.record import HISTORIES, SCENARIOS
from workflows.build_saga import BuildSaga
from workflows.task_saga import TaskSaga

RECORDED = sorted(HISTORIES.glob("*.json"))


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
    workflow_id = path.stem.partition("-")[2].partition("-run-")[0]
    return WorkflowHistory.from_json(workflow_id, path.read_text())


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_a_recorded_history_replays(path: Path) -> None:
    sagas = replayer(BuildSaga, TaskSaga, *deliveries.WORKFLOWS)
    result = await sagas.replay_workflow(history(path), raise_on_replay_failure=False)
    assert result.replay_failure is None


def test_every_scenario_is_recorded_with_both_sagas() -> None:
    names = [path.stem for path in RECORDED]
    assert {scenario for scenario in SCENARIOS if any(f"build-notes-{scenario}" in name for name in names)} == set(
        SCENARIOS
    )
    assert [name for name in names if "-task-" in name]


def test_every_delivery_is_recorded_with_its_watches_and_its_lane() -> None:
    names = {path.stem for path in RECORDED}
    assert {scenario for scenario in deliveries.SCENARIOS if f"v0.1-deliver-shop-{scenario}" in names} == set(
        deliveries.SCENARIOS
    )
    assert {"v0.1-deliver-shop-breached-watch", f"v0.1-{deliveries.LANE}"} <= names


def test_no_recorded_history_tells_the_paths_of_a_machine() -> None:
    assert not [path.name for path in RECORDED if "site-packages" in path.read_text()]


def test_no_recorded_payload_is_large() -> None:
    for path in RECORDED:
        events: list[Any] = json.loads(path.read_text())["events"]
        assert max(len(json.dumps(event)) for event in events) < 16_000


async def test_a_saga_that_changed_without_a_patch_is_caught() -> None:
    plain = next(path for path in RECORDED if path.stem.endswith("build-notes-plain"))
    result = await replayer(Changed).replay_workflow(history(plain), raise_on_replay_failure=False)
    assert result.replay_failure is not None
