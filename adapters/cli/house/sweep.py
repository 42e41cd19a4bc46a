"""``mendwork gc``: the housekeeper, now."""

from __future__ import annotations

import json as jsonlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from adapters.cli.exits import DONE, OWN_FAILURE
from adapters.cli.house.sizes import readable
from adapters.cli.lines import plain
from adapters.cli.session import put, say
from adapters.settings import Settings
from domain.errors import MendworkError, UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class GcWanted:
    """``project`` "" is all of them."""

    dry_run: bool = False
    project: str = ""
    afresh: bool = False
    json: bool = False


async def collect(settings: Settings, wanted: GcWanted) -> int:
    """Start a housekeeper, wait for it and print a line for each kind of thing; 1 when one of them was stopped.

    Raises Transient when no worker answers, UnknownName for a project that neither is configured nor has a mirror.
    """
    from adapters.cli.build import check_worker
    from adapters.temporal.connect import connect

    _check_project(settings, wanted.project)
    client = await connect(settings, os.environ)
    await check_worker(client, settings)
    kinds = await _keep_house(client, settings, wanted)
    if wanted.json:
        put(jsonlib.dumps({"dry_run": wanted.dry_run, "project": wanted.project, "kinds": list(kinds)}))
    for kind in () if wanted.json else kinds:
        if not kind["fault"]:
            put(_line(kind, dry_run=wanted.dry_run))
    for kind in kinds:
        if kind["why"]:
            say(f"  {kind['kind']}: {plain(kind['why'])}")
    return OWN_FAILURE if any(kind["fault"] for kind in kinds) else DONE


async def _keep_house(client: Any, settings: Settings, wanted: GcWanted) -> Sequence[Mapping[str, Any]]:
    from temporalio.client import WorkflowFailureError

    from adapters.temporal.namespace.schedule import HOUSEKEEPING_ENDS, housekeeping_id

    queue = settings.temporal.task_queue
    request = {
        "heartbeat": settings.timeouts.heartbeat,
        "dry_run": wanted.dry_run,
        "project": wanted.project,
        "afresh": wanted.afresh,
    }
    try:
        kinds: Sequence[Mapping[str, Any]] = await client.execute_workflow(
            "Housekeeper",
            request,
            id=f"{housekeeping_id(queue)}-{secrets.token_hex(4)}",
            task_queue=queue,
            task_timeout=timedelta(seconds=settings.timeouts.sticky),
            execution_timeout=HOUSEKEEPING_ENDS,
            static_summary="take away what nothing needs any more",
        )
    except WorkflowFailureError as error:
        raise MendworkError(f"the housekeeper was stopped: {error.cause or error}") from error
    return kinds


def _check_project(settings: Settings, project: str) -> None:
    known = {*settings.projects, *(path.stem for path in (settings.common / "mirrors").glob("*.git"))}
    if project and project not in known:
        raise UnknownName.among("project", project, known)


def _line(kind: Mapping[str, Any], *, dry_run: bool) -> str:
    verb = "would go" if dry_run else "gone"
    size = f", {readable(kind['bytes'])}" if kind["bytes"] else ""
    stayed = f"; {kind['stayed']} stay" if kind["stayed"] else ""
    return f"{kind['kind']}: {kind['count']} {verb}{size}{stayed}"
