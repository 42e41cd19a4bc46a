"""``mendwork deliver``: a delivery that no build started, followed as a build is."""

from __future__ import annotations

import json as jsonlib
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from adapters.cli.build import NewSaga, check_worker, dialogue, project_of, start_saga, words_in
from adapters.cli.decide.terminal import is_terminal
from adapters.cli.follow import follow
from adapters.cli.lines import plain
from adapters.cli.session import login, put, say
from adapters.settings import Settings
from domain.build.project import Project
from domain.delivery.requests import DeliveryRequest, decode_delivery_request, delivery_name
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from temporalio.client import Client

    from domain.ports.store import Store

LONGEST_COMMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asked for on the command line; lists are words with commas between them."""

    commit: str
    project: str
    approve: str = ""
    allow_missing: str = ""
    unattended: bool = False
    detach: bool = False
    json: bool = False
    by: str = ""


async def deliver(settings: Settings, wanted: Wanted) -> int:
    """Start a delivery of a commit; follow it unless asked to detach. Raises InvalidInput, UnknownName, Transient."""
    project = delivered_project(settings, wanted.project)
    commit = wanted.commit.strip()
    if not commit or commit.startswith("-") or len(commit) > LONGEST_COMMIT or not commit.isprintable():
        raise InvalidInput("COMMIT: a branch or a commit of the project's repository")
    request = DeliveryRequest(
        project=project.name,
        commit=commit,
        by=wanted.by or login(),
        approved=tuple(words_in(wanted.approve)),
        unattended=wanted.unattended,
        allow_missing=tuple(words_in(wanted.allow_missing)),
    )
    return await launch(settings, request, detach=wanted.detach, json=wanted.json)


async def launch(settings: Settings, request: DeliveryRequest, *, detach: bool, json: bool) -> int:
    """Start a delivery or a rollback, and follow it unless it is ``detach``ed. Raises InvalidInput, Transient."""
    from adapters.store import open_store
    from adapters.temporal.connect import connect

    decode_delivery_request(asdict(request))  # what it would fail with is told here, before anything is started
    client = await connect(settings, os.environ)
    await check_worker(client, settings)
    async with await open_store(settings.store_url) as store:
        name = await _start(client, settings, store, request)
        if detach:
            put(jsonlib.dumps({"delivery": name}) if json else name)
            return 0
        say(f"{name} started: {_title(request)}")
        on_ask = dialogue(settings, client, store, name) if is_terminal() and not json else None
        return await follow(store, name, client=client, json=json, on_ask=on_ask)


def delivered_project(settings: Settings, name: str) -> Project:
    """A project with a target; the only one for "". Raises InvalidInput, UnknownName."""
    targeted = [each for each, project in settings.allowlist().items() if project.delivery is not None]
    project = project_of(settings, name or (targeted[0] if len(targeted) == 1 else ""))
    if project.delivery is None:
        raise InvalidInput(f"project {project.name} has no target: give it a [projects.{project.name}.delivery]")
    return project


async def _start(client: Client, settings: Settings, store: Store, request: DeliveryRequest) -> str:
    async def name() -> str:
        return delivery_name(request.project, await store.builds.reserve_number(f"deliver-{request.project}"))

    words = asdict(request)
    del words["made"]  # nobody built it: what is not known of it is the saga's default
    saga = NewSaga(workflow="DeliverySaga", words=words, project=request.project, summary=_title(request), name=name)
    return await start_saga(client, settings, saga)


def _title(request: DeliveryRequest) -> str:
    if request.kind == "rollback":
        return f"roll release {request.release} of {request.project} back"
    return f"deliver {plain(request.commit)[:40]} of {request.project}"
