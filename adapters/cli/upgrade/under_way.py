"""What is under way, and which version of the engine it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from temporalio.api.deployment.v1 import WorkerDeploymentInfo
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeWorkerDeploymentRequest
from temporalio.client import Client, WorkflowExecution
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from domain.errors import ServerUnavailable

_VERSION = SearchAttributeKey.for_keyword("TemporalWorkerDeploymentVersion")
_BEHAVIOUR = SearchAttributeKey.for_keyword("TemporalWorkflowVersioningBehavior")
_WAITS = SearchAttributeKey.for_bool("NeedsApproval")
_NO_DEPLOYMENTS = (RPCStatusCode.NOT_FOUND, RPCStatusCode.UNIMPLEMENTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """One open saga. ``version`` is the deployment's version that it was last served by, as in "mendwork:0.1.0-1f3c",
    or "" where workers are no deployment; a ``pinned`` one is served by that version alone. ``waits``: for a person."""

    name: str
    kind: str
    run: str
    events: int = 0
    version: str = ""
    pinned: bool = False
    waits: bool = False


async def under_way(client: Client, *, queue: str, kinds: Sequence[str]) -> Sequence[UnderWay]:
    """Every open saga of the queue whose type is one of ``kinds``. Raises ServerUnavailable."""
    query = f"TaskQueue = '{queue}' AND ExecutionStatus = 'Running'"
    try:
        found = [each async for each in client.list_workflows(query)]
    except RPCError as error:
        raise ServerUnavailable(f"what runs cannot be listed: {error.message}") from error
    return [_saga(each) for each in found if each.workflow_type in kinds]


async def current_versions(client: Client, deployments: Iterable[str]) -> Mapping[str, str]:
    """The version that new sagas go to, by deployment; "" for a deployment that the server does not know, or that has
    none yet. Raises ServerUnavailable."""
    current: dict[str, str] = {}
    for name in sorted(set(deployments)):
        found = await _described(client, name)
        build = found.routing_config.current_deployment_version.build_id if found else ""
        current[name] = f"{name}:{build}" if build else ""
    return current


async def versions_of(client: Client, deployment: str) -> Sequence[str]:
    """Every version of a deployment that the server knows. Raises ServerUnavailable."""
    found = await _described(client, deployment)
    summaries = found.version_summaries if found else ()
    return [f"{deployment}:{each.deployment_version.build_id}" for each in summaries]


async def versions_that_poll(client: Client, queue: str) -> frozenset[str]:
    """The versions whose workers asked for workflow tasks within the last five minutes, as long as the server remembers
    them. Raises ServerUnavailable."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    try:
        pollers = (await client.workflow_service.describe_task_queue(request)).pollers
    except RPCError as error:
        raise ServerUnavailable(f"who polls {queue} cannot be told: {error.message}") from error
    options = [poller.deployment_options for poller in pollers]
    return frozenset(f"{each.deployment_name}:{each.build_id}" for each in options if each.deployment_name)


def deployment_of(version: str) -> str:
    """The deployment of "deployment:build-id"."""
    return version.partition(":")[0]


def _saga(found: WorkflowExecution) -> UnderWay:
    told = found.typed_search_attributes
    return UnderWay(
        name=found.id,
        kind=found.workflow_type,
        run=found.run_id,
        events=found.history_length,
        version=told.get(_VERSION) or "",
        pinned=told.get(_BEHAVIOUR) == "Pinned",
        waits=bool(told.get(_WAITS)),
    )


async def _described(client: Client, deployment: str) -> WorkerDeploymentInfo | None:
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=deployment)
    try:
        return (await client.workflow_service.describe_worker_deployment(request)).worker_deployment_info
    except RPCError as error:
        if error.status in _NO_DEPLOYMENTS:
            return None
        raise ServerUnavailable(f"the deployment {deployment} cannot be looked at: {error.message}") from error
