"""The engine is upgraded while sagas are under way: those that can go on do; the others are named, wait, and go on once
the version that wrote them is back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from adapters.temporal.connect import DATA_CONVERTER
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from tests.e2e.projects import answered, started, waiting
from tests.e2e.test_temporal_cli import history, temporal
from tests.e2e.workshop import Workshop, wait_for
from workflows.build_saga import BuildSaga
from workflows.catalogue import WORKFLOWS

pytestmark = pytest.mark.timeout(300)

ASKS = 'approve = ["change"]\nreview = false'
OTHER = "build-calc-77"


@workflow.defn(name="BuildSaga", sandboxed=False)
class OfAnotherVersion:
    """A build as an engine wrote it whose steps were quite different ones."""

    def __init__(self) -> None:
        self._approved = False

    @workflow.run
    async def run(self, request: Any = None) -> str:
        """Wait for an approval, then end."""
        await workflow.sleep(1)
        await workflow.wait_condition(lambda: self._approved, timeout=86_400)
        return "done"

    @workflow.signal
    def approve(self) -> None:
        """By whoever."""
        self._approved = True


@pytest.fixture
def at(tmp_path: Path) -> Workshop:
    at = Workshop(tmp_path / "w")
    at.configure(consent=ASKS)
    return at


@contextlib.asynccontextmanager
async def the_other_version(at: Workshop) -> AsyncIterator[Client]:
    """It serves, on the same histories."""
    named = os.environ.get("MENDWORK_TEMPORAL__SERVER")
    program = find_server(explicit=Path(named) if named else None, environment=os.environ)
    async with DevServer(ServerPlan(program=program, state=at.state)) as server, asyncio.timeout(180):
        client = await Client.connect(server.address, data_converter=DATA_CONVERTER)
        others = [each for each in WORKFLOWS if each is not BuildSaga]
        async with Worker(client, task_queue="mendwork", workflows=[OfAnotherVersion, *others]):
            yield client


async def began_elsewhere(at: Workshop) -> None:
    """Start it, and let a worker of that version take it past its first step."""
    async with the_other_version(at) as client:
        handle = await client.start_workflow("BuildSaga", {"spec": "x"}, id=OTHER, task_queue="mendwork")
        while len((await handle.fetch_history()).events) < 8:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.1)


async def ends_elsewhere(at: Workshop) -> str:
    """The other version is back: what it comes to there."""
    async with the_other_version(at) as client:
        handle: WorkflowHandle[Any, str] = client.get_workflow_handle(OTHER)
        return await handle.result()


def test_what_another_version_began_is_named_and_waits_while_the_rest_goes_on(at: Workshop) -> None:
    with at.running(consent=ASKS):
        build = at.mendwork("build", "spec.md", "--detach").out.strip()
        digest = waiting(at, build)["digest"]
        fits = at.mendwork("upgrade", "status")
        assert (fits.code, f"{build}  BuildSaga" in fits.out) == (0, True), fits.err
        assert "goes on" in fits.out
    asyncio.run(began_elsewhere(at))
    with at.running(consent=ASKS):
        said = (at.root / "dev.log").read_text()
        assert f"upgrade   {OTHER} cannot go on with this version, and waits: " in said
        assert build not in [line.split()[1] for line in said.splitlines() if line.startswith("upgrade")]
        told = at.mendwork("upgrade", "status", "--json")
        stuck = {each["name"]: each["why"] for each in json.loads(told.out)["running"]}
        assert (told.code, stuck[build], bool(stuck[OTHER])) == (1, "", True)
        assert answered(at, "approve", build, digest)["outcome"] in {"accepted", "sent"}
        assert at.mendwork("watch", build).code == 0
        temporal(at, "workflow", "signal", "--workflow-id", OTHER, "--name", "approve")
        wait_for(lambda: failed_tasks(at), seconds=60, why="a try with the wrong version")
        described = temporal(at, "workflow", "describe", "--workflow-id", OTHER, "--output", "json")
        assert json.loads(described.stdout)["workflowExecutionInfo"]["status"] == "WORKFLOW_EXECUTION_STATUS_RUNNING"
        drain_waits_for_it_and_changes_nothing(at)
    assert asyncio.run(ends_elsewhere(at)) == "done"


def drain_waits_for_it_and_changes_nothing(at: Workshop) -> None:
    drained = at.mendwork("upgrade", "drain", "--timeout", "4", "--json")
    left = json.loads(drained.out)
    assert (drained.code, left["drained"], [each["name"] for each in left["left"]]) == (124, False, [OTHER])
    assert f"  {OTHER} (BuildSaga) this version cannot replay it: " in drained.err
    with started(at, "upgrade", "drain") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waits for 1:\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, "nothing was changed" in err) == (130, True)


def failed_tasks(at: Workshop) -> list[dict[str, Any]]:
    return [event for event in history(at, OTHER) if "workflowTaskFailedEventAttributes" in event]
