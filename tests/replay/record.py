"""Records histories for the replay test: ``python -m tests.replay.record``, once a release, and when a path is new.

Each scenario runs on a real server with the faked world of ``tests.workflows``; its sagas' histories go to
``histories/``. Old files stay: they are the builds that were under way when the engine was upgraded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError
from temporalio.worker import Worker

from activities.models import CalledModel, CallModelInput
from adapters.temporal.connect import Target, connect_to
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from tests.workflows.fakes import GREEN, RED, World, fits, refuse, unfit
from workflows.build_saga import BuildSaga
from workflows.task_saga import TaskSaga

HISTORIES = Path(__file__).parent / "histories"
RELEASE = "v0.1"
TASKS = ("store", "api")
IDENTITY = re.compile(r'"identity": "[^"]*"')  # the recording machine's name means nothing to a replay


def troubled() -> World:
    """A plan that is sent back, a model that fails for good, a red attempt, a refused change; it succeeds."""
    reports = iter([GREEN, RED, GREEN, GREEN])
    refused = iter([True])

    def model(call: CallModelInput) -> CalledModel:
        if call.key.step == "plan" and call.key.turn == 1:
            return unfit(call)
        if call.model == "coder":
            raise refuse("ProviderRefused", "the key is wrong")
        return fits(call)

    def apply(request: object) -> None:
        if next(refused, False):
            raise refuse("InvalidChange", "../x: leads out of the repository")

    return World(model=model, gates=lambda _: next(reports), apply=apply)


def no_landing() -> World:
    """Everything is built, and the branch is taken."""

    def land(request: object) -> None:
        raise refuse("BranchTaken", "mendwork/x exists")

    return World(land=land)


SCENARIOS: Mapping[str, Callable[[], World]] = {
    "plain": World,
    "troubled": troubled,
    "exhausted": lambda: World(gates=lambda request: RED if request.written else GREEN),
    "taken": no_landing,
    "cancelled": lambda: World(hold=asyncio.Event()),
}


async def record(client: Client, name: str, world: World) -> None:
    """Run one scenario and write the histories of its root and its tasks."""
    build = f"build-notes-{name}"
    everything = world.activities()
    async with contextlib.AsyncExitStack() as stack:
        for suffix in ("-workspace", "-model", "-sandbox"):
            await stack.enter_async_context(Worker(client, task_queue=f"{name}{suffix}", activities=everything))
        root = Worker(client, task_queue=name, workflows=[BuildSaga, TaskSaga], activities=everything)
        await stack.enter_async_context(root)
        spec = {"spec": "# Tags", "project": "notes"}
        handle = await client.start_workflow("BuildSaga", spec, id=build, task_queue=name)
        if world.hold is not None:
            await world.holding.wait()
            await handle.cancel()
        with contextlib.suppress(WorkflowFailureError):  # the scenarios that end so
            await handle.result()
    for workflow in (build, *(f"{build}-task-{task}" for task in TASKS)):
        with contextlib.suppress(RPCError):  # a task that was never reached has no history
            history = await client.get_workflow_handle(workflow).fetch_history()
            (HISTORIES / f"{RELEASE}-{workflow}.json").write_text(
                IDENTITY.sub('"identity": "worker"', history.to_json())
            )


async def main() -> None:
    """Record every scenario."""
    HISTORIES.mkdir(exist_ok=True)
    program = find_server(explicit=None, environment=os.environ)
    with tempfile.TemporaryDirectory() as folder:
        async with DevServer(ServerPlan(program=program, state=Path(folder))) as server:
            client = await connect_to(Target(address=server.address, namespace="default", origin="recording"))
            for name, world in SCENARIOS.items():
                await record(client, name, world())
                sys.stderr.write(f"{name} recorded\n")


if __name__ == "__main__":
    asyncio.run(main())
