"""What a worker process shows of itself, as the configuration has it, and what it needs to be ready."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from adapters.cli.serving.stored import blobs_check
from adapters.settings import Settings
from domain.errors import InvalidInput, ResourceShort, ServerUnavailable, TargetUnavailable

if TYPE_CHECKING:
    from temporalio.client import Client
    from temporalio.worker import Worker

    from adapters.telemetry.health import Check
    from adapters.telemetry.process import Observed
    from domain.ports.sandbox import Sandbox
    from domain.ports.store import Store

CLASSES = ("saga", "workspace", "model", "sandbox", "deploy")
"""In the order of their ports, where the configuration gives the first one."""
ROOM_BYTES = 256 << 20
"""With less on the disk, a commit or a test run is likely to end in the middle."""
_COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"


def shown(name: str, settings: Settings, environment: Mapping[str, str]) -> AbstractAsyncContextManager[Observed]:
    """The telemetry of the worker class ``name``."""
    from adapters.telemetry.process import Wanted, observed

    wanted = Wanted(
        worker=name,
        folder=settings.state / "telemetry",
        listen=settings.telemetry.listens(CLASSES.index(name)),
        models=settings.provided,
        otlp=settings.telemetry.otlp or environment.get(_COLLECTOR, ""),
    )
    return observed(wanted)


def common_checks(settings: Settings, client: Client, worker: Worker) -> dict[str, Check]:
    """What every class needs: Temporal, a worker that polls it, the state folder, room there, and blobs."""

    async def temporal() -> None:
        if not await client.service_client.check_health(timeout=timedelta(seconds=2)):
            raise ServerUnavailable("Temporal's frontend does not serve")

    async def polls() -> None:
        if not worker.is_running or worker.is_shutdown:
            raise ServerUnavailable("the worker does not poll")

    async def state() -> None:
        if not os.access(settings.state, os.R_OK | os.W_OK | os.X_OK):
            raise ResourceShort("the state folder cannot be written")

    async def disk() -> None:
        if shutil.disk_usage(settings.state).free < ROOM_BYTES:
            raise ResourceShort(f"less than {ROOM_BYTES >> 20} MiB are free where the state folder is")

    return {"temporal": temporal, "worker": polls, "state": state, "disk": disk, **blobs_check(settings)}


def store_check(store: Store) -> dict[str, Check]:
    """One row that is not there is looked for."""
    return {"store": lambda: store.builds.get("-")}


def git_check(environment: Mapping[str, str]) -> dict[str, Check]:
    """The program is looked up as those that run it do."""

    async def found() -> None:
        if not shutil.which("git", path=environment.get("PATH")):
            raise InvalidInput("git is not installed, or not on PATH")

    return {"git": found}


def sandbox_check(sandbox: Sandbox) -> dict[str, Check]:
    """Whether anything can be run at all; what isolates less is said at the start."""
    look: Callable[[], Mapping[str, str]] = sandbox.missing

    async def runs() -> None:
        if engine := (await asyncio.to_thread(look)).get("engine", ""):
            raise InvalidInput(engine)

    return {"sandbox": runs}


def target_check(settings: Settings) -> dict[str, Check]:
    """Whether releases could run on each target that a project names: its programs, and isolation, tried anew."""
    from adapters.target import open_target

    names = sorted({each.delivery.target for each in settings.projects.values() if each.delivery is not None})

    async def able(name: str) -> None:
        if lacking := await asyncio.to_thread(lambda: dict(open_target(settings.state, name=name).missing())):
            raise TargetUnavailable("; ".join(lacking.values()))

    return {f"target {name}": partial(able, name) for name in names}
