"""How sagas stand, on a real server and in a reference of what the port means."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from adapters.compliance.sagas import SagasCompliance, Stage
from adapters.temporal.sagas import TemporalSagas
from domain.errors import ServerUnavailable
from domain.ports.sagas import ENDED, RUNNING, STOPPED, UNKNOWN, Sagas, Standing
from tests.conftest import TemporalServer
from tests.workflows.stays import Stays


class TemporalStage:
    """Workflows of the tests' server."""

    def __init__(self, client: Client, queue: str) -> None:
        self.sagas: Sagas = TemporalSagas(client)
        self._client = client
        self._queue = queue

    async def begin(self, name: str) -> None:
        await self._client.start_workflow("Stays", id=name, task_queue=self._queue)

    async def go_on_in_a_new_run(self, name: str) -> None:
        handle = self._client.get_workflow_handle(name)
        first = (await handle.describe()).run_id
        await handle.signal("end", "again")
        async with asyncio.timeout(60):
            while (await handle.describe()).run_id == first:  # noqa: ASYNC110 - it happens on the server
                await asyncio.sleep(0.01)

    async def end(self, name: str, how: str) -> None:
        handle = self._client.get_workflow_handle(name)
        if how == "completed":
            await handle.signal("end", "")
            await handle.result()
            return
        if how == "terminated":
            await handle.terminate()
        elif how == "cancelled":
            await handle.cancel()
        else:
            await handle.signal("end", "fail")
        with pytest.raises(WorkflowFailureError):
            await handle.result()


class MemoryStage:
    """The reference: a dictionary."""

    def __init__(self) -> None:
        self._standings: dict[str, Standing] = {}
        self.sagas: Sagas = self

    async def standings(self, ids: Sequence[str]) -> Mapping[str, Standing]:
        return {name: self._standings.get(name, Standing(state=UNKNOWN)) for name in ids}

    async def begin(self, name: str) -> None:
        self._standings[name] = Standing(state=RUNNING)

    async def go_on_in_a_new_run(self, name: str) -> None:
        await self.begin(name)

    async def end(self, name: str, how: str) -> None:
        self._standings[name] = Standing(state=ENDED if how == "completed" else STOPPED, how=how)


class TestTemporal(SagasCompliance):
    @pytest.fixture
    async def stage(self, client: Client) -> AsyncIterator[Stage]:
        queue = uuid.uuid4().hex
        async with Worker(client, task_queue=queue, workflows=[Stays]):
            yield TemporalStage(client, queue)


class TestMemory(SagasCompliance):
    @pytest.fixture
    def stage(self) -> Stage:
        return MemoryStage()


async def test_a_namespace_that_is_not_there_knows_no_workflow(temporal: TemporalServer) -> None:
    elsewhere = await Client.connect(temporal.address, namespace="no-such-namespace")
    standings = await TemporalSagas(elsewhere).standings(["build-a-1"])
    assert standings["build-a-1"].state == UNKNOWN


async def test_a_server_that_went_away_is_no_verdict_about_its_workflows(temporal: TemporalServer) -> None:
    host, _, port = temporal.address.partition(":")
    server = await asyncio.start_server(lambda r, w: _forward(r, w, host, int(port)), "127.0.0.1", 0)
    far = await Client.connect(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    sagas = TemporalSagas(far, patience=1)
    assert (await sagas.standings(["build-a-1"]))["build-a-1"].state == UNKNOWN
    server.close()
    for line in list(_LINES):
        line.close()
    with pytest.raises(ServerUnavailable, match="Temporal does not answer"):
        await sagas.standings(["build-a-1"])


_LINES: set[asyncio.StreamWriter] = set()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    there, back = await asyncio.open_connection(host, port)
    _LINES.update((writer, back))
    await asyncio.gather(_pipe(reader, back), _pipe(there, writer))


async def _pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
    sink.close()
