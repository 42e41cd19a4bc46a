"""``mendwork doctor`` beside a real Temporal server, one that is silent, and none."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio import activity, workflow
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from adapters.cli.doctor import server
from adapters.cli.doctor.examine import doctor
from adapters.cli.doctor.finding import Finding, Patient
from adapters.settings import Settings
from domain.human.attributes import ATTRIBUTES
from tests.adapters.test_cli_exits import GRPC_PERMISSION_DENIED, GRPC_UNAUTHENTICATED, refusing
from tests.conftest import TemporalServer


@workflow.defn(sandboxed=False)  # it is never run, only polled for
class Nothing:
    @workflow.run
    async def run(self) -> None:
        """Ends at once."""


@activity.defn
async def nothing() -> None:
    """Does nothing."""


Make = Callable[..., Patient]


@pytest.fixture
def make(
    tmp_path: Path, make_settings: Callable[..., Settings], environment: dict[str, str], temporal: TemporalServer
) -> Make:
    """Whose server is the tests' own, on a queue of its own, unless ``address`` says otherwise ("" is none)."""

    def patient(*, address: str = temporal.address, **temporal_settings: str) -> Patient:
        queue = temporal_settings.pop("task_queue", f"doctor-{uuid.uuid4().hex[:8]}")
        sections = {"address": address, "task_queue": queue, "port": 0, "ui_port": 0, **temporal_settings}
        return Patient(start=tmp_path, environment=environment, settings=make_settings(temporal=sections))

    return patient


@pytest.fixture
def deaf() -> Iterator[str]:
    """A server that accepts (the kernel does, into its backlog) and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
async def bare(temporal: TemporalServer) -> str:
    """A namespace of somebody else: a day's retention, none of our attributes."""
    name = f"bare-{uuid.uuid4().hex[:8]}"
    client = await Client.connect(temporal.address, namespace=name)
    kept = Duration()
    kept.FromTimedelta(timedelta(days=1))
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=kept)
    )
    async with asyncio.timeout(30):
        while not await known(client, name):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.1)
    return name


async def known(client: Client, name: str) -> bool:
    try:
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=name))
    except RPCError:
        return False
    return True


def by_name(found: Sequence[Finding]) -> dict[str, Finding]:
    return {each.name: each for each in found}


async def until(holds: Callable[[dict[str, Finding]], bool], ill: Patient) -> dict[str, Finding]:
    """What the server's check finds once it ``holds``: the server's parts learn of changes one after the other."""
    async with asyncio.timeout(60):
        while True:
            found = by_name(await server.server(ill))
            if holds(found):
                return found
            await asyncio.sleep(0.1)


async def test_a_server_without_workers_is_well_but_for_them(make: Make, temporal: TemporalServer) -> None:
    ill = make(task_queue="doctor-idle")
    found = by_name(await server.server(ill))
    assert {name: each.state for name, each in found.items()} == {
        "server": "ok",
        "retention": "ok",
        "search attributes": "ok",
        "workers": "missing",
    }
    assert temporal.address in found["server"].detail
    assert found["workers"].cure == "mendwork dev"
    for queue in ("doctor-idle", "doctor-idle-workspace", "doctor-idle-model", "doctor-idle-sandbox"):
        assert queue in found["workers"].detail


async def test_the_queue_that_nobody_polls_is_named_alone(make: Make, client: Client) -> None:
    ill = make()
    assert ill.settings is not None
    queue = ill.settings.temporal.task_queue
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(Worker(client, task_queue=queue, workflows=[Nothing]))
        for worker in ("workspace", "sandbox"):
            await stack.enter_async_context(Worker(client, task_queue=f"{queue}-{worker}", activities=[nothing]))
        said = f"nobody takes work from {queue}-model"
        await until(lambda found: found["workers"].detail == said, ill)
        await stack.enter_async_context(Worker(client, task_queue=f"{queue}-model", activities=[nothing]))
        found = await until(lambda found: found["workers"].state == "ok", ill)
    assert f"{queue}-model" in found["workers"].detail


async def test_a_namespace_of_somebody_else_gets_our_attributes_by_fix(
    make: Make, bare: str, temporal: TemporalServer, tmp_path: Path, environment: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    ill = make(namespace=bare)
    found = await until(lambda found: found["search attributes"].state == "missing", ill)
    assert found["search attributes"].cure == "mendwork doctor --fix"
    assert all(name in found["search attributes"].detail for name in ATTRIBUTES)
    assert found["retention"].state == "broken"
    assert found["retention"].cure == f"temporal operator namespace update --retention 720h -n {bare}"
    (tmp_path / "mendwork.toml").write_text(
        f'[temporal]\naddress = "{temporal.address}"\nnamespace = "{bare}"\ntask_queue = "doctor-fix"\n'
    )
    await doctor(start=tmp_path, environment=environment, repair=True, json=True)
    assert "fixed: search attributes BuildPhase" in capsys.readouterr().err
    await until(lambda found: found["search attributes"].state == "ok", ill)
    await doctor(start=tmp_path, environment=environment, repair=True, json=True)
    assert "fixed" not in capsys.readouterr().err, "a second time there is nothing left to do"


async def test_a_namespace_that_does_not_exist_is_made_by_fix_with_all_that_belongs_into_it(
    make: Make, temporal: TemporalServer, tmp_path: Path, environment: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    name = f"new-{uuid.uuid4().hex[:8]}"
    ill = make(namespace=name)
    found = by_name(await server.server(ill))
    assert [(each, what.state) for each, what in found.items()] == [("namespace", "missing")]
    assert found["namespace"].cure == "mendwork doctor --fix"
    (tmp_path / "mendwork.toml").write_text(
        f'[temporal]\naddress = "{temporal.address}"\nnamespace = "{name}"\ntask_queue = "doctor-new"\n'
    )
    await doctor(start=tmp_path, environment=environment, repair=True, json=True)
    said = capsys.readouterr().err
    assert f"fixed: namespace {name} made at {temporal.address}, which keeps histories for 30 days" in said
    assert "fixed: search attributes BuildPhase" in said
    found = await until(lambda found: "retention" in found and found["search attributes"].state == "ok", ill)
    assert found["retention"].state == "ok"


@pytest.mark.parametrize("status", [GRPC_UNAUTHENTICATED, GRPC_PERMISSION_DENIED])
async def test_a_server_that_refuses_our_credentials_asks_for_others(make: Make, status: bytes) -> None:
    async with refusing(status) as address:
        found = by_name(await server.server(make(address=address)))
    assert [(name, each.state) for name, each in found.items()] == [("server", "broken")]
    assert found["server"].cure == "read -rs TEMPORAL_API_KEY && export TEMPORAL_API_KEY"


async def test_a_silent_server_and_a_closed_port_are_broken(
    make: Make, deaf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.3)
    for address in (deaf, "127.0.0.1:9"):
        found = by_name(await server.server(make(address=address)))
        assert [(name, each.state) for name, each in found.items()] == [("server", "broken")]
        assert found["server"].cure == f"temporal operator cluster health --address {address}"


async def test_without_a_server_only_the_program_is_looked_for(make: Make) -> None:
    ill = make(address="")
    assert await server.server(ill) == []
    found = by_name(await server.program(ill))
    assert found["temporal"].state == "ok"
    assert "`mendwork dev` starts it" in found["temporal"].detail


async def test_with_a_server_no_program_is_needed(make: Make) -> None:
    assert await server.program(make()) == []


async def test_a_program_that_is_none_is_broken_and_one_that_lacks_has_a_cure(
    make: Make, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = by_name(await server.program(make(address="", server=str(tmp_path / "none"))))
    assert found["temporal"].state == "broken"
    assert found["temporal"].cure == "mendwork config get temporal.server --show-origin"
    monkeypatch.setattr("adapters.temporal.finding._candidates", lambda environment, tools: iter(()))
    found = by_name(await server.program(make(address="")))
    assert found["temporal"].state == "missing"
    assert found["temporal"].cure.startswith("go install github.com/temporalio/cli/cmd/temporal@")


async def test_a_profile_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "no-profiles.toml").write_text("[profile.default\nsecret-canary")
    assert await doctor(start=tmp_path, environment=environment, repair=True, json=False) == 1
    said = capsys.readouterr()
    assert "Temporal's client configuration" in said.out
    assert "secret-canary" not in said.out + said.err
