"""The composition root: settings → adapters → activities → one Temporal worker of one secret class.

``python -m worker saga|workspace|model|sandbox|deploy``. One process per class: the model worker holds provider keys
and sees no repository, the sandbox worker runs model-written code and holds no secret, the workspace worker renders
prompts, the deploy worker alone touches targets and holds the secrets of releases.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.cli.serving.deploy import deploy_part
from adapters.cli.serving.model import model_part
from adapters.cli.serving.part import Part
from adapters.cli.serving.saga import saga_part
from adapters.cli.serving.sandbox import sandbox_part
from adapters.cli.serving.workspace import workspace_part
from adapters.settings import Settings, load_settings
from domain.errors import InvalidInput, MendworkError, UnknownName

if TYPE_CHECKING:
    from temporalio.worker import Interceptor

GRACE_SECONDS = 5
BEATS = 4  # in the time that a silence may take; the library's own four fifths of it leave a busy machine no slack
WORKFLOW_TASKS = 6  # they share one interpreter: more would wait for each other past the time that each may take

PARTS: Mapping[str, Callable[[Settings, Mapping[str, str]], AbstractAsyncContextManager[Part]]] = {
    "saga": saga_part,
    "workspace": workspace_part,
    "model": model_part,
    "sandbox": sandbox_part,
    "deploy": deploy_part,
}


async def run_worker(
    name: str, settings: Settings, *, environment: Mapping[str, str], interceptors: Sequence[Interceptor] = ()
) -> None:
    """Serve one part until SIGTERM or SIGINT, then let running activities end within the grace."""
    from temporalio.worker import Worker

    from activities.beating import BeatingInterceptor
    from adapters.cli.serving.seen import common_checks, shown
    from adapters.cli.upgrade.deploying import deployment
    from adapters.temporal.connect import connect

    if name not in PARTS:
        raise UnknownName.among("worker", name, PARTS)
    async with AsyncExitStack() as stack:
        seen = await stack.enter_async_context(shown(name, settings, environment))
        part = await stack.enter_async_context(PARTS[name](settings, environment))
        client = await connect(settings, environment)
        worker = Worker(
            client,
            task_queue=settings.temporal.task_queue + part.suffix,
            activities=part.activities,
            workflows=part.workflows,
            max_concurrent_workflow_tasks=WORKFLOW_TASKS,
            max_concurrent_activities=settings.workers.slots(name) + part.waiting,
            interceptors=[*seen.interceptors, BeatingInterceptor(), *interceptors],
            max_heartbeat_throttle_interval=timedelta(seconds=settings.timeouts.heartbeat / BEATS),
            graceful_shutdown_timeout=timedelta(seconds=GRACE_SECONDS),
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=settings.timeouts.sticky),
            deployment_config=deployment(settings, environment),
        )
        async with worker:
            seen.ready({**part.checks, **common_checks(settings, client, worker)})
            logging.getLogger("mendwork").info("serving %s", worker.task_queue)
            await _stop_signal()


def _configured(name: str) -> tuple[Settings, Mapping[str, str]]:
    """The settings and the environment with the secrets of the class; read twice, since the settings name them."""
    from adapters.cli.serving.secrets import class_environment

    environment = class_environment(name, load_settings(start=Path.cwd(), environment=os.environ), os.environ)
    return load_settings(start=Path.cwd(), environment=environment), environment


async def _stop_signal() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def main(interceptors: Sequence[Interceptor] = ()) -> None:
    """Run the worker that the one argument names."""
    from adapters.telemetry.logs import configure_logs

    try:
        if len(sys.argv) != 2:
            raise InvalidInput(f"usage: python -m worker {'|'.join(PARTS)}")
        settings, environment = _configured(sys.argv[1])
        configure_logs(settings.telemetry.logs)
        asyncio.run(run_worker(sys.argv[1], settings, environment=environment, interceptors=interceptors))
    except MendworkError as error:
        sys.exit(f"mendwork worker: {error}")
    logging.shutdown()
    os._exit(0)  # the threads of Temporal's client may abort an interpreter that shuts down under them


if __name__ == "__main__":
    main()
