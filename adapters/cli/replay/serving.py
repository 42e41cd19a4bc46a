"""What serves a scratch world: a Temporal server of its own, and workers that know nothing of the outside."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.cli.dev import WORKER
from adapters.cli.replay.record import Part
from adapters.cli.replay.world import World
from adapters.cli.session import say
from adapters.settings import Settings
from adapters.temporal.connect import Target, connect_to, converter_for
from adapters.temporal.environment import worker_environment
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from adapters.temporal.supervisor import Program, Supervisor

if TYPE_CHECKING:
    from temporalio.client import Client

    from adapters.cli.replay.answers import RecordedModels

SANDBOX = (sys.executable, "-P", "-m", "adapters.cli.replay.settling")
GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What is asked for: the part to run, the user's ``environment``, the answers that stand in for models (None: they
    are called) and the ``worker`` command, which gets a class name as last argument."""

    part: Part
    environment: Mapping[str, str]
    answers: RecordedModels | None
    worker: Sequence[str] = WORKER


@contextlib.asynccontextmanager
async def serving(world: World, wanted: Serving) -> AsyncIterator[tuple[Client, Settings]]:
    """A client of the world's own server, and its settings. Nothing is left of either at the end.

    Raises ServerUnavailable, InvalidInput.
    """
    program = find_server(explicit=world.original.temporal.server, environment=wanted.environment)
    async with DevServer(ServerPlan(program=program, state=world.state)) as server:
        settings = world.settings(wanted.part, address=server.address, live=wanted.answers is None)
        target = Target(address=server.address, namespace=server.plan.namespace, origin="the replay's own")
        client = await connect_to(target, patience=30, converter=converter_for(settings, target.namespace))
        supervisor = Supervisor(_programs(world, settings, wanted), say=say, changed=lambda pids: None)
        keeping = asyncio.create_task(supervisor.run())
        try:
            async with _recorded(client, settings, wanted.answers):
                yield client, settings
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await supervisor.stop(grace=GRACE_SECONDS)


def _programs(world: World, settings: Settings, wanted: Serving) -> list[Program]:
    """No worker of releases, and one of models only where they are called."""
    classes = ("saga", "workspace", "sandbox", *(("model",) if wanted.answers is None else ()))
    keys = {model.api_key_env for model in settings.models.values()} - {""}
    bare = {name: text for name, text in wanted.environment.items() if not name.startswith(("MENDWORK_", "TEMPORAL_"))}
    ours = {
        "MENDWORK_CONFIG": str(world.root / "mendwork.toml"),
        "TEMPORAL_CONFIG_FILE": str(world.root / "no-profiles.toml"),
    }
    secrets = world.original.deploy_secrets
    hidden = keys | {model.api_key_env for model in world.original.models.values()} - {""}
    return [
        Program(
            name=name,
            argv=(*(SANDBOX if name == "sandbox" else wanted.worker), name),
            environment=worker_environment(name, bare, key_names=hidden, deploy_names=secrets) | ours,
            log=world.state / "logs" / f"worker-{name}.log",
            folder=world.root,
        )
        for name in classes
    ]


@contextlib.asynccontextmanager
async def _recorded(client: Client, settings: Settings, answers: RecordedModels | None) -> AsyncIterator[None]:
    """Recorded answers come from here: that takes no key, no provider's library and no process."""
    if answers is None:
        yield
        return
    from temporalio.worker import Worker

    from activities.beating import BeatingInterceptor

    queue = f"{settings.temporal.task_queue}-model"
    async with Worker(client, task_queue=queue, activities=[answers.call_model], interceptors=[BeatingInterceptor()]):
        yield
