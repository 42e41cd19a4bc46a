"""Two versions of the engine at once, as a worker deployment: what is pinned stays with the older one, the rest moves
on, and `mendwork upgrade` tells which is which and waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.worker import Worker

from adapters.cli.exits import DONE, OWN_FAILURE, TIMEOUT
from adapters.cli.upgrade import telling
from adapters.cli.upgrade.deploying import deployment, served, version_here
from adapters.cli.upgrade.draining import Drain
from adapters.cli.upgrade.under_way import versions_of
from adapters.settings import Settings
from domain.errors import UnknownName
from tests.conftest import TemporalServer
from tests.e2e.workshop import Workshop, wait_for
from tests.workflows.fakes import World
from tests.workflows.running import SPEC

pytestmark = pytest.mark.timeout(300)

OLD, NEW = "0.1.0-aaaa", "0.2.0-bbbb"
QUICKLY = 0.2


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """A deployment of its own on the shared server."""

    client: Client
    environment: Mapping[str, str]
    make_settings: Callable[..., Settings]
    name: str = field(default_factory=lambda: f"fleet-{uuid.uuid4().hex[:12]}")

    def settings(self, build: str) -> Settings:
        """As the workers of one version, and a person beside them, have it."""
        return self.make_settings(temporal={"task_queue": self.name, "deployment": self.name, "build_id": build})

    @contextlib.asynccontextmanager
    async def version(self, build: str, world: World) -> AsyncIterator[None]:
        """Its workers, as ``python -m worker`` would put them together; new sagas go to them from now on."""
        settings = self.settings(build)
        joins = deployment(settings, self.environment)
        everything = world.activities()
        async with contextlib.AsyncExitStack() as stack:
            for suffix in ("-workspace", "-model", "-sandbox"):
                beside = Worker(
                    self.client, task_queue=self.name + suffix, activities=everything, deployment_config=joins
                )
                await stack.enter_async_context(beside)
            sagas = Worker(
                self.client,
                task_queue=self.name,
                workflows=served(settings, self.environment),
                activities=everything,
                deployment_config=joins,
            )
            await stack.enter_async_context(sagas)
            await self.makes_current(build)
            yield

    async def makes_current(self, build: str) -> None:
        """As soon as the server has heard of the version's workers."""
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=self.client.namespace, deployment_name=self.name, build_id=build, identity="ann"
        )
        async with asyncio.timeout(90):
            while True:
                with contextlib.suppress(RPCError):
                    await self.client.workflow_service.set_worker_deployment_current_version(request)
                    return
                await asyncio.sleep(0.05)

    async def begin(self, name: str) -> WorkflowHandle[Any, Any]:
        return await self.client.start_workflow("BuildSaga", SPEC, id=f"{self.name}-{name}", task_queue=self.name)

    async def served_by(self, saga: str) -> list[str]:
        """The versions that completed the saga's workflow tasks, each once, in order."""
        history = await self.client.get_workflow_handle(saga).fetch_history()
        done = [
            event.workflow_task_completed_event_attributes.deployment_version.build_id
            for event in history.events
            if event.HasField("workflow_task_completed_event_attributes")
        ]
        return list(dict.fromkeys(done))

    def drain(self, *, version: str = "", seconds: float = 0) -> asyncio.Task[int]:
        """`mendwork upgrade drain --json`, as a person with the newer version types it."""
        settings = self.settings(NEW)
        wanted = Drain(queue=self.name, version=version, ours=version_here(settings), every=QUICKLY)
        return asyncio.create_task(telling.drain(settings, self.environment, wanted, seconds=seconds, json=True))


@pytest.fixture
def fleet(client: Client, temporal: TemporalServer, make_settings: Callable[..., Settings]) -> Fleet:
    return Fleet(client=client, environment=temporal.environment, make_settings=make_settings)


def said(capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    shown = capsys.readouterr()
    return json.loads(shown.out), shown.err


async def nobody(client: Client, queue: str) -> frozenset[str]:
    """No worker was seen."""
    return frozenset()


async def test_old_builds_move_on_but_for_their_tasks_and_new_ones_go_to_the_new_version(
    fleet: Fleet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = World(hold=asyncio.Event()), World()
    async with fleet.version(OLD, old):
        first = await fleet.begin("first")
        await old.holding.wait()
        async with fleet.version(NEW, new):
            second = await fleet.begin("second")
            await second.result()
            assert await telling.status(fleet.settings(NEW), fleet.environment, json=True) == DONE
            seen, _ = said(capsys)
            task = next(each for each in seen["running"] if each["kind"] == "TaskSaga")
            assert (task["name"], task["pinned"]) == (f"{first.id}-task-store", True)
            assert task["version"] == f"{fleet.name}:{OLD}"
            assert "within minutes" in task["stays"]
            assert seen["current"] == {fleet.name: f"{fleet.name}:{NEW}"}

            with monkeypatch.context() as patched:
                patched.setattr(telling, "versions_that_poll", nobody)  # the server forgets a worker after five minutes
                assert await telling.status(fleet.settings(NEW), fleet.environment, json=False) == OWN_FAILURE
            assert f"no worker of {fleet.name}:{OLD} polls: 1 wait until one does" in capsys.readouterr().err

            assert await fleet.drain(version=NEW) == DONE, "nothing that is open is pinned to the newer one"
            said(capsys)
            with pytest.raises(UnknownName, match=rf"'0\.1\.0-aaab'; known: {fleet.name}:{OLD}, {fleet.name}:{NEW}"):
                await fleet.drain(version="0.1.0-aaab")
            draining = fleet.drain()
            assert await fleet.drain(version=OLD, seconds=1) == TIMEOUT
            left, err = said(capsys)
            assert [each["name"] for each in left["left"]] == [task["name"]]
            assert f"{task['name']} (TaskSaga) stays with {fleet.name}:{OLD}" in err
            assert not draining.done()

            assert old.hold is not None
            old.hold.set()
            await first.result()
            async with asyncio.timeout(90):
                assert await draining == DONE
            assert said(capsys)[0]["drained"]
    assert await fleet.served_by(second.id) == [NEW]
    assert await fleet.served_by(f"{second.id}-task-store") == [NEW]
    assert await fleet.served_by(task["name"]) == [OLD]
    assert await fleet.served_by(first.id) == [OLD, NEW]
    assert old.of("land_result") == []
    assert len(new.of("land_result")) == 2


async def test_a_deployment_without_a_current_version_is_told_with_the_command(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await telling.status(fleet.settings(NEW), fleet.environment, json=False) == DONE
    err = capsys.readouterr().err
    assert f"temporal worker deployment set-current-version --deployment-name {fleet.name}" in err


def test_a_worker_that_is_started_by_itself_joins_its_deployment(
    at: Workshop, temporal: TemporalServer, fleet: Fleet
) -> None:
    joined = asyncio.run(registered(at, temporal, fleet))
    assert list(joined) == [f"{fleet.name}:{NEW}"]


@pytest.fixture
def at(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    at = Workshop(tmp_path_factory.mktemp("joins") / "w")
    at.configure()
    return at


async def registered(at: Workshop, temporal: TemporalServer, fleet: Fleet) -> Sequence[str]:
    """The versions of the deployment once a real saga worker serves."""
    client = await temporal.connect()
    at.environment |= temporal.environment | {
        "MENDWORK_TEMPORAL__TASK_QUEUE": fleet.name,
        "MENDWORK_TEMPORAL__DEPLOYMENT": fleet.name,
        "MENDWORK_TEMPORAL__BUILD_ID": NEW,
        "MENDWORK_TELEMETRY__LISTEN": "",
    }
    log = at.root / "worker.log"
    with at.spawned([sys.executable, "-P", "-m", "worker", "saga"], log=log.name):
        await asyncio.to_thread(wait_for, lambda: "serving " in log.read_text(), seconds=60, why=f"the worker ({log})")
        async with asyncio.timeout(90):
            while not (found := await versions_of(client, fleet.name)):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.05)
    return found
