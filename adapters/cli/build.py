"""``mendwork build`` and ``mendwork watch``: start a saga, follow it from the store."""

from __future__ import annotations

import asyncio
import contextlib
import json as jsonlib
import os
import sys
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.cli.exits import INTERRUPTED, OWN_FAILURE, exit_code
from adapters.cli.lines import line_of
from adapters.cli.session import put, say
from adapters.settings import Settings
from domain.build.names import build_name
from domain.build.project import Project
from domain.build.requests import BuildRequest, decode_build_request, title_of
from domain.build.view import ENDED
from domain.errors import InvalidInput, Transient, UnknownName

if TYPE_CHECKING:
    from temporalio.client import Client

    from domain.ports.store import Event, Store

POLL_SECONDS = 0.2
WORKER_PATIENCE_SECONDS = 4.0
"""Workers that are just starting need a moment until they answer."""
ROUNDS_OF_SILENCE = 100
"""Twenty seconds, after which a person is told that the build goes on."""
ROUNDS_BETWEEN_LOOKS = 5
"""Events say when a build ends; the server is asked now and then, for a workflow that ended without a word."""


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
        return await _follow(store, name, client=client, json=asked.json)


async def watch(settings: Settings, build: str, *, json: bool) -> int:
    """Follow a build that runs, or tell how it ended."""
    from adapters.store import open_store
    from adapters.temporal.connect import connect

    async with await open_store(settings.store_url) as store:
        row = await store.builds.get(build)
        client = None if row is not None and row.ended else await connect(settings, os.environ)
        return await _follow(store, build, client=client, json=json)


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


async def _follow(store: Store, build: str, *, client: Client | None, json: bool) -> int:
    try:
        async with contextlib.aclosing(_events(store, build, client)) as events:
            async for event in events:
                if event is None:
                    say("  … still at it")
                    continue
                _show(event, json)
                if event.kind == ENDED:
                    return _ended(build, event.data, json)
    except asyncio.CancelledError:
        say(f"detached; {build} goes on. Come back with `mendwork watch {build}`")
        return INTERRUPTED
    say(f"mendwork: {build} is not in the store, and its workflow is over or unknown")
    return OWN_FAILURE


def _show(event: Event, json: bool) -> None:
    if json:
        put(
            jsonlib.dumps(
                {"kind": event.kind, "at": event.at, "task": event.task, "attempt": event.attempt}
                | {"data": event.data}
            )
        )
        return
    line = line_of(event)
    if line:
        say(line)


def _ended(build: str, data: Any, json: bool) -> int:
    if not json:
        put(build)
    return exit_code(data["status"], data.get("fault", ""))


async def _events(store: Store, build: str, client: Client | None) -> AsyncGenerator[Event | None, None]:
    """The build's events as they are recorded, until its workflow is over and everything was read.

    None says that nothing has happened for a while: long calls and tests are silent.
    """
    position, rounds, quiet, over = 0, 0, 0, client is None
    while True:
        quiet += 1
        for at, event in await store.events.read(build, after=position):
            position, quiet = at, 0
            yield event
        if over:
            return
        if quiet and quiet % ROUNDS_OF_SILENCE == 0:
            yield None
        rounds += 1
        if client is not None and rounds % ROUNDS_BETWEEN_LOOKS == 0:
            over = await _is_over(client, build)
        await asyncio.sleep(POLL_SECONDS)


async def _is_over(client: Client, build: str) -> bool:
    """Whether the workflow ended, however it did, or does not exist: then no more events come."""
    from temporalio.client import WorkflowExecutionStatus
    from temporalio.service import RPCError, RPCStatusCode

    try:
        description = await client.get_workflow_handle(build).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return True
        raise Transient(f"Temporal does not answer: {error.message}") from error
    return description.status is not WorkflowExecutionStatus.RUNNING
