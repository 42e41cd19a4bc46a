"""The namespace: making the one that is named, on a server that was just set up and has none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from adapters.cli.doctor.finding import Patient
from adapters.cli.doctor.server import CALL, PATIENCE, server_of
from domain.errors import ServerUnavailable, UnknownName

WITHIN_SECONDS = 30.0
"""A server's parts learn of a new namespace one after the other, each within some seconds."""


async def make(patient: Patient) -> Sequence[str]:
    """A line when it was made. Raises ServerUnavailable where this client may not."""
    from adapters.temporal.attributes import missing
    from adapters.temporal.connect import connect_to

    target = server_of(patient)
    if target is None:
        return ()
    made: Sequence[str] = ()
    async with asyncio.timeout(WITHIN_SECONDS):
        while True:
            try:
                client = await connect_to(target, patience=PATIENCE)
                if made:
                    await missing(client)  # the last part to learn of it
            except UnknownName:
                made = made or await _register(target.address, target.namespace, dict(target.options))
            except ServerUnavailable:
                if not made:
                    return made  # what is looked at next tells it
            else:
                return made
            await asyncio.sleep(0.2)


async def _register(address: str, namespace: str, options: dict[str, object]) -> Sequence[str]:
    from google.protobuf.duration_pb2 import Duration
    from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
    from temporalio.client import Client
    from temporalio.service import RPCError, RPCStatusCode

    from adapters.temporal.server import RETENTION

    kept = Duration()
    kept.FromTimedelta(RETENTION)
    request = RegisterNamespaceRequest(namespace=namespace, workflow_execution_retention_period=kept)
    client = await Client.connect(address, namespace=namespace, **options)  # type: ignore[arg-type]
    try:
        await client.workflow_service.register_namespace(request, timeout=CALL)
    except RPCError as error:
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise ServerUnavailable(f"the namespace {namespace} cannot be made: {error.message}") from error
    return [f"fixed: namespace {namespace} made at {address}, which keeps histories for {RETENTION.days} days"]
