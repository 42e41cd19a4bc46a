"""Temporal: the program, and where one runs or is named its address, namespace, search attributes and workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from adapters.cli.doctor.finding import Finding, Patient, aside
from adapters.cli.exits import AUTHENTICATION, code_of
from adapters.settings import Settings
from domain.errors import InvalidInput, MendworkError, ServerUnavailable, UnknownName

if TYPE_CHECKING:
    from temporalio.client import Client

    from adapters.temporal.connect import Target

PATIENCE = 4.0
CALL = timedelta(seconds=PATIENCE)


async def program(patient: Patient) -> Sequence[Finding]:
    """What ``mendwork dev`` would start; nothing where a server is named."""
    from adapters.temporal.connect import external_target
    from adapters.temporal.finding import MODULE, find_server

    settings, purpose = patient.settings, "durability, time and retry"
    if settings is None or external_target(settings, patient.environment) is not None:
        return []
    try:
        named = settings.temporal.server
        found = await aside(lambda: find_server(explicit=named, environment=patient.environment))
    except InvalidInput as error:
        cure = "mendwork config get temporal.server --show-origin"
        return [Finding(name="temporal", state="broken", purpose=purpose, detail=str(error), cure=cure)]
    except ServerUnavailable as error:
        told = str(error).partition(". ")[0]
        return [
            Finding(name="temporal", state="missing", purpose=purpose, detail=told, cure=f"go install {MODULE}"),
        ]
    running = "" if server_of(patient) else "; none runs, `mendwork dev` starts it"
    return [Finding(name="temporal", state="ok", purpose=purpose, detail=f"{found}{running}")]


def server_of(patient: Patient) -> Target | None:
    """The server that is named or runs. Raises InvalidInput for a profile that cannot be read."""
    from adapters.temporal.connect import resolve_target

    try:
        return resolve_target(patient.settings, patient.environment) if patient.settings else None
    except ServerUnavailable:
        return None


async def server(patient: Patient) -> Sequence[Finding]:
    """Nothing where no server is named and none runs."""
    from adapters.temporal.connect import connect_to

    target, settings = server_of(patient), patient.settings
    if target is None or settings is None:
        return []
    where, purpose = f"{target.address} ({target.origin})", "keeps every build's history"
    try:
        client = await connect_to(target, patience=PATIENCE)
    except UnknownName as error:
        cure = "mendwork doctor --fix"
        return [Finding(name="namespace", state="missing", purpose=purpose, detail=str(error), cure=cure)]
    except ServerUnavailable as error:
        return [Finding(name="server", state="broken", purpose=purpose, detail=str(error), cure=_cure(target, error))]
    told = Finding(name="server", state="ok", purpose=purpose, detail=f"{where}, namespace {target.namespace}")
    return [told, await _retention(client), await _attributes(client), *await _workers(client, settings)]


def _cure(target: Target, error: ServerUnavailable) -> str:
    if code_of(error) == AUTHENTICATION:
        return "read -rs TEMPORAL_API_KEY && export TEMPORAL_API_KEY"
    if target.origin.startswith("`"):
        return "mendwork dev"
    return f"temporal operator cluster health --address {target.address}"


async def _retention(client: Client) -> Finding:
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
    from temporalio.service import RPCError

    from adapters.temporal.server import RETENTION

    purpose = "how long ended builds can be looked at and rebuilt"
    try:
        request = DescribeNamespaceRequest(namespace=client.namespace)
        described = await client.workflow_service.describe_namespace(request, timeout=CALL)
    except RPCError as error:
        told = f"the namespace cannot be described: {error.message}"
        cure = f"temporal operator namespace describe -n {client.namespace}"
        return Finding(name="retention", state="broken", purpose=purpose, detail=told, cure=cure)
    kept = described.config.workflow_execution_retention_ttl.ToTimedelta()
    wanted = f"{RETENTION.days} days"
    if kept < RETENTION:
        hours = int(RETENTION.total_seconds() // 3600)
        cure = f"temporal operator namespace update --retention {hours}h -n {client.namespace}"
        told = f"histories are kept {kept}, less than {wanted}"
        return Finding(name="retention", state="broken", purpose=purpose, detail=told, cure=cure)
    return Finding(name="retention", state="ok", purpose=purpose, detail=f"histories are kept {kept.days} days")


async def _attributes(client: Client) -> Finding:
    from adapters.temporal.attributes import missing

    purpose = "lists of builds by phase, status and cost"
    try:
        absent = await missing(client)
    except MendworkError as error:
        cure = "mendwork config get temporal.namespace --show-origin"
        return Finding(name="search attributes", state="broken", purpose=purpose, detail=str(error), cure=cure)
    if absent:
        told = f"the namespace does not know {', '.join(absent)}"
        cure = "mendwork doctor --fix"
        return Finding(name="search attributes", state="missing", purpose=purpose, detail=told, cure=cure)
    return Finding(name="search attributes", state="ok", purpose=purpose, detail="all are registered")


async def _workers(client: Client, settings: Settings) -> Sequence[Finding]:
    """One line for all queues; workers that ended count as pollers for some minutes."""
    from adapters.cli.dev import worker_classes

    queue = settings.temporal.task_queue
    names = {worker: queue if worker == "saga" else f"{queue}-{worker}" for worker in worker_classes(settings)}
    idle = [name for worker, name in names.items() if not await _polled(client, name, flows=worker == "saga")]
    purpose = "do the work"
    if idle:
        told = f"nobody takes work from {', '.join(idle)}"
        return [Finding(name="workers", state="missing", purpose=purpose, detail=told, cure="mendwork dev")]
    return [Finding(name="workers", state="ok", purpose=purpose, detail=f"at {', '.join(names.values())}")]


async def _polled(client: Client, queue: str, *, flows: bool) -> bool:
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

    kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW if flows else TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
    )
    described = await client.workflow_service.describe_task_queue(request, timeout=CALL)
    return bool(described.pollers)
