"""``mendwork build`` and ``mendwork rerun``: start a saga, and ask at the terminal while following it."""

from __future__ import annotations

import asyncio
import json as jsonlib
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from adapters.cli.decide.terminal import is_terminal
from adapters.cli.follow import POLL_SECONDS, follow
from adapters.cli.session import login, put, read_text, say
from adapters.cli.status import details_of
from adapters.settings import Settings
from domain.build.names import build_name
from domain.build.project import Project
from domain.build.requests import BuildRequest, decode_build_request, title_of
from domain.build.view import ADMITTED
from domain.errors import InvalidInput, Transient, UnknownName

if TYPE_CHECKING:
    from temporalio.client import Client

    from adapters.cli.decide.dialogue import Dialogue
    from domain.ports.store import Store

WORKER_PATIENCE_SECONDS = 4.0
STARTING_PATIENCE_SECONDS = 15.0
"""Workers that are just starting need a moment until they answer, those of a `mendwork dev` on a busy machine more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asked for on the command line; lists are words with commas between them."""

    spec: str
    project: str
    title: str
    detach: bool
    json: bool
    allow_missing: str
    approve: str = ""
    unattended: bool = False
    user: str = ""
    deliver: bool = True
    dry_run: bool = False
    tags: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSaga:
    """What is started: a workflow by its type, its input as plain JSON, and who gives it the next name."""

    workflow: str
    words: Mapping[str, Any]
    project: str
    summary: str
    name: Callable[[], Awaitable[str]]


async def start(settings: Settings, asked: Asked) -> int:
    """Start a build under the project's next number; follow it unless asked to detach."""
    request = _request(asked, project_of(settings, asked.project))
    if asked.dry_run and not asked.detach:
        from adapters.cli.forecast import rehearse

        return await rehearse(settings, request, json=asked.json)
    return await launch(settings, request, asked)


async def rerun(settings: Settings, build: str, asked: Asked) -> int:
    """Start a new build of the spec and project of an earlier one. Raises UnknownName, InvalidInput."""
    from adapters.cli.serving.stored import blobs_of
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        details = await details_of(store, build)
        events = [event for _, event in await store.events.read(build) if event.kind == ADMITTED]
    if not events:
        raise InvalidInput(f"{build} was never admitted, so its spec was not kept: start it with `mendwork build`")
    spec = (await blobs_of(settings).get(events[-1].data["spec"])).decode()
    given = replace(asked, project=details.project, title=asked.title or details.title)
    request = decode_build_request(_fields(given, spec, project_of(settings, details.project)))
    return await launch(settings, request, given)


async def launch(settings: Settings, request: BuildRequest, asked: Asked) -> int:
    """Start ``request`` and follow it as ``asked`` says. Raises Transient when no worker answers."""
    from adapters.store import open_store
    from adapters.temporal.connect import connect

    client = await connect(settings, os.environ)
    await check_worker(client, settings)
    async with await open_store(settings.store_url) as store:
        name = await start_build(client, settings, store, request)
        if asked.detach:
            put(jsonlib.dumps({"build": name}) if asked.json else name)
            return 0
        say(f"{name} started: {title_of(request)}")
        on_ask = dialogue(settings, client, store, name) if is_terminal() and not asked.json else None
        return await follow(store, name, client=client, json=asked.json, on_ask=on_ask)


def dialogue(settings: Settings, client: Client, store: Store, name: str) -> Dialogue:
    """Who asks at this terminal while ``name`` is followed."""
    from adapters.cli.decide.dialogue import Desk, Dialogue
    from adapters.cli.serving.stored import blobs_of

    desk = Desk(settings=settings, client=client, store=store, blobs=blobs_of(settings), by=login())
    return Dialogue(desk, name)


def project_of(settings: Settings, name: str) -> Project:
    """The project of that name; the only one for "". Raises InvalidInput, UnknownName."""
    allowed = settings.allowlist()
    if not name and len(allowed) == 1:
        return next(iter(allowed.values()))
    if not name:
        raise InvalidInput(f"--project: name one of {', '.join(sorted(allowed)) or 'none'} (mendwork.toml)")
    if name not in allowed:
        raise UnknownName.among("project", name, allowed)
    return allowed[name]


def _request(asked: Asked, project: Project) -> BuildRequest:
    return decode_build_request(_fields(asked, read_text(asked.spec, what="spec"), project))


def _fields(asked: Asked, spec: str, project: Project) -> dict[str, object]:
    return {
        "spec": spec,
        "project": project.name,
        "title": asked.title,
        "allow_missing": words_in(asked.allow_missing),
        "approved": words_in(asked.approve),
        "unattended": asked.unattended,
        "user": asked.user or login(),
        "deliver": asked.deliver,
        "dry_run": asked.dry_run,
        "tags": words_in(asked.tags),
    }


def words_in(text: str) -> list[str]:
    """Words with commas between them."""
    return [word.strip() for word in text.split(",") if word.strip()]


async def check_worker(client: Client, settings: Settings) -> None:
    """Raises Transient when nobody takes workflows from the queue."""
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

    from adapters.temporal.state import seconds_since_start

    queue = settings.temporal.task_queue
    asked = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    patience = max(WORKER_PATIENCE_SECONDS, STARTING_PATIENCE_SECONDS - seconds_since_start(settings.state))
    for _ in range(round(patience / POLL_SECONDS)):
        if (await client.workflow_service.describe_task_queue(asked)).pollers:
            return
        await asyncio.sleep(POLL_SECONDS)
    raise Transient(f"no worker answers on task queue {queue!r}: start one with `mendwork dev`")


async def start_build(client: Client, settings: Settings, store: Store, request: BuildRequest) -> str:
    """Start it under its project's next number, and return its name."""

    async def name() -> str:
        return build_name(request.project, await store.builds.reserve_number(request.project))

    saga = NewSaga(
        workflow="BuildSaga", words=asdict(request), project=request.project, summary=title_of(request), name=name
    )
    return await start_saga(client, settings, saga)


async def start_saga(client: Client, settings: Settings, saga: NewSaga) -> str:
    """Start it under the next free name, which is returned."""
    from datetime import timedelta

    from temporalio.common import Priority, WorkflowIDReusePolicy
    from temporalio.exceptions import WorkflowAlreadyStartedError

    while True:
        name = await saga.name()
        try:
            await client.start_workflow(
                saga.workflow,
                dict(saga.words),
                id=name,
                task_queue=settings.temporal.task_queue,
                task_timeout=timedelta(seconds=settings.timeouts.sticky),
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                static_summary=saga.summary,
                static_details=f"Follow it: `mendwork watch {name}`. What happened: `mendwork trace {name}`.",
                memo={"project": saga.project, "title": saga.summary},
                priority=Priority(fairness_key=saga.project),  # its workflow tasks too come in turn
            )
        except WorkflowAlreadyStartedError:
            continue  # another store numbered it, or this one was restored from a backup: take the next
        return name
