"""Search attributes of a namespace, on a real server: found missing, added once, by several at once, never bent."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import cast

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesResponse
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.temporal.attributes import ensure_attributes, missing
from domain.errors import ServerUnavailable
from domain.human.attributes import ATTRIBUTES
from tests.conftest import TemporalServer


async def a_namespace(temporal: TemporalServer) -> Client:
    """A client of a new namespace, which knows no attribute of ours."""
    name = f"bare-{uuid.uuid4().hex[:8]}"
    client = await Client.connect(temporal.address, namespace=name)
    kept = Duration()
    kept.FromTimedelta(timedelta(days=1))
    request = RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=kept)
    await client.workflow_service.register_namespace(request)
    async with asyncio.timeout(60):
        while True:  # the server's parts learn of it one after the other
            try:
                await missing(client)
            except ServerUnavailable:
                await asyncio.sleep(0.1)
            else:
                return client


async def test_the_development_server_knows_them_from_its_start(client: Client) -> None:
    assert await missing(client) == []
    assert await ensure_attributes(client) == ()


async def test_a_namespace_of_somebody_else_gets_what_it_lacks_once(temporal: TemporalServer) -> None:
    bare = await a_namespace(temporal)
    assert await missing(bare) == list(ATTRIBUTES)
    assert await ensure_attributes(bare) == list(ATTRIBUTES)
    async with asyncio.timeout(60):
        while await missing(bare):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.1)
    assert await ensure_attributes(bare) == ()


async def test_several_that_start_at_once_do_not_trip_over_each_other(temporal: TemporalServer) -> None:
    bare = await a_namespace(temporal)
    done = await asyncio.gather(*(ensure_attributes(bare) for _ in range(4)), return_exceptions=True)
    assert [each for each in done if isinstance(each, BaseException)] == []


async def test_a_name_that_somebody_uses_for_another_type_is_a_clear_sentence(temporal: TemporalServer) -> None:
    bare = await a_namespace(temporal)
    other = {"CostUsd": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD}
    await bare.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace=bare.namespace, search_attributes=other)
    )

    async def refused() -> str:
        try:
            await missing(bare)
        except ServerUnavailable as error:
            return str(error)
        return ""

    async with asyncio.timeout(60):
        while not (sentence := await refused()):  # noqa: ASYNC110 - nor for this
            await asyncio.sleep(0.1)
    assert "CostUsd" in sentence
    assert "is not of type Double" in sentence


class Closed:
    """The operator service of a server that lets nobody add anything."""

    namespace = "theirs"

    def __init__(self) -> None:
        self.operator_service = self

    async def list_search_attributes(self, _: object) -> ListSearchAttributesResponse:
        return ListSearchAttributesResponse()

    async def add_search_attributes(self, _: object) -> None:
        raise RPCError("not allowed", RPCStatusCode.PERMISSION_DENIED, b"")


async def test_who_may_not_add_them_is_told_the_command() -> None:
    with pytest.raises(ServerUnavailable, match="not allowed; add them by hand: temporal operator") as caught:
        await ensure_attributes(cast(Client, Closed()))
    assert "--namespace theirs" in str(caught.value)
    assert "--name CostUsd --type Double" in str(caught.value)


async def test_a_namespace_that_is_not_there_is_one_sentence(temporal: TemporalServer) -> None:
    nowhere = await Client.connect(temporal.address, namespace="nowhere")
    with pytest.raises(ServerUnavailable, match="cannot be listed"):
        await missing(nowhere)
