"""``mendwork build``: start a saga."""

from __future__ import annotations

import asyncio
import json as jsonlib
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.cli.follow import POLL_SECONDS, follow
from adapters.cli.session import put, say
from adapters.settings import Settings
from domain.build.names import build_name
from domain.build.project import Project
from domain.build.requests import BuildRequest, decode_build_request, title_of
from domain.errors import InvalidInput, Transient, UnknownName

if TYPE_CHECKING:
    from temporalio.client import Client

    from domain.ports.store import Store

WORKER_PATIENCE_SECONDS = 4.0
"""Workers that are just starting need a moment until they answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asked for on the command line."""

    spec: str
    project: str
    title: str
    detach: bool
    json: bool
    allow_missing: str


async def start(settings: Settings, asked: Asked) -> int:
    """Start a build under the project's next number; follow it unless asked to detach."""
    from adapters.store import open_store
    from adapters.temporal.connect import connect

    project = _project(settings, asked.project)
    request = _request(asked, project)
    client = await connect(settings, os.environ)
    await _check_worker(client, settings)
    async with await open_store(settings.store_url) as store:
        name = await _start(client, settings, store, request)
        if asked.detach:
            put(jsonlib.dumps({"build": name}) if asked.json else name)
            return 0
        say(f"{name} started: {title_of(request)}")
        return await follow(store, name, client=client, json=asked.json)


def _project(settings: Settings, name: str) -> Project:
    allowed = settings.allowlist()
    if not name and len(allowed) == 1:
        return next(iter(allowed.values()))
    if not name:
        raise InvalidInput(f"--project: name one of {', '.join(sorted(allowed)) or 'none'} (mendwork.toml)")
    if name not in allowed:
        raise UnknownName.among("project", name, allowed)
    return allowed[name]


def _request(asked: Asked, project: Project) -> BuildRequest:
    missing = [word.strip() for word in asked.allow_missing.split(",") if word.strip()]
    fields = {"spec": _read(asked.spec), "project": project.name, "title": asked.title, "allow_missing": missing}
    return decode_build_request(fields)


def _read(spec: str) -> str:
    try:
        return sys.stdin.read() if spec == "-" else Path(spec).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(f"the spec {spec} cannot be read: {reason}") from error


async def _check_worker(client: Client, settings: Settings) -> None:
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

    queue = settings.temporal.task_queue
    asked = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    for _ in range(round(WORKER_PATIENCE_SECONDS / POLL_SECONDS)):
        if (await client.workflow_service.describe_task_queue(asked)).pollers:
            return
        await asyncio.sleep(POLL_SECONDS)
    raise Transient(f"no worker answers on task queue {queue!r}: start one with `mendwork dev`")


async def _start(client: Client, settings: Settings, store: Store, request: BuildRequest) -> str:
    from datetime import timedelta

    from temporalio.common import WorkflowIDReusePolicy
    from temporalio.exceptions import WorkflowAlreadyStartedError

    while True:
        name = build_name(request.project, await store.builds.reserve_number(request.project))
        try:
            await client.start_workflow(
                "BuildSaga",
                asdict(request),
                id=name,
                task_queue=settings.temporal.task_queue,
                task_timeout=timedelta(seconds=settings.timeouts.sticky),
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                static_summary=title_of(request),
                memo={"project": request.project},
            )
        except WorkflowAlreadyStartedError:
            continue  # another store numbered it, or this one was restored from a backup: take the next
        return name
