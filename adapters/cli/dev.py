"""``mendwork dev``: the embedded server and one worker process per secret class, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adapters.cli.house.home import end_leftovers
from adapters.cli.serving.stored import blobs_of
from adapters.sandbox import warnings as sandbox_warnings
from adapters.settings import Settings
from adapters.temporal.connect import Target, connect_to, converter_for, external_target
from adapters.temporal.environment import DEPLOY, WORKERS, worker_environment
from adapters.temporal.finding import find_server
from adapters.temporal.server import DevServer, ServerPlan
from adapters.temporal.state import DevState, clear_state, only_instance, write_state
from adapters.temporal.supervisor import Program, Supervisor, count_death, ending, restart_delay
from domain.errors import ServerUnavailable

# -P: a worker.py beside somebody's mendwork.toml is not ours.
WORKER = (sys.executable, "-P", "-m", "worker")
_SERVER_DEATHS = 5


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class DevOptions:
    """``worker`` is the command that gets a class name as last argument; it has ``grace`` seconds to end well.

    ``classes`` are those to run; empty means every one that the configuration needs. ``say`` gets the lines for people.
    """

    worker: Sequence[str] = WORKER
    classes: Sequence[str] = ()
    grace: float = 20.0
    say: Callable[[str], None] = _to_stderr


async def run_dev(settings: Settings, *, environment: Mapping[str, str], options: DevOptions | None = None) -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP; 0 when all has ended. A second signal ends the workers hard.

    Raises AlreadyRunning, InvalidInput (a taken port), UnknownName (a namespace), CredentialsRefused or
    ServerUnavailable.
    """
    options = options or DevOptions()
    with only_instance(settings.state), _stop_signals() as stop:
        try:
            converter_for(settings, "")  # a key that cannot be used is told here, not by workers that die
            blobs_of(settings)  # and a bucket's key that is missing
            for line in sandbox_warnings(settings.sandbox.engine):
                options.say(f"sandbox   {line}")
            await asyncio.to_thread(end_leftovers, settings, say=options.say)
            async with _server(settings, environment, options) as (state, server):
                await _look_at_what_runs(settings, environment, options, state)
                await _serve(_Session(settings, environment, options, state), server, stop)
        finally:
            clear_state(settings.state)
    options.say("stopped")
    if DEPLOY in worker_classes(settings):
        from adapters.cli.release.target import still_serving

        for line in await asyncio.to_thread(still_serving, settings):
            options.say(line)
    return 0


def worker_classes(settings: Settings) -> tuple[str, ...]:
    """One process per class; that of the releases only where a project has a target."""
    delivers = any(project.delivery is not None for project in settings.allowlist().values())
    return (*WORKERS, DEPLOY) if delivers else WORKERS


class _Session:
    """What runs now, mirrored in ``dev.json``."""

    def __init__(
        self, settings: Settings, environment: Mapping[str, str], options: DevOptions, state: DevState
    ) -> None:
        self._settings = settings
        self._environment = environment
        self.options = options
        self.classes = options.classes or worker_classes(settings)
        self.state = state
        self._announced = False

    def programs(self) -> list[Program]:
        keys = {model.api_key_env for model in self._settings.models.values()} - {""}
        secrets = self._settings.deploy_secrets
        located = {"MENDWORK_CONFIG": str(self._settings.root / "mendwork.toml"), **self._environment}
        return [
            Program(
                name=name,
                argv=(*self.options.worker, name),
                environment=worker_environment(name, located, key_names=keys, deploy_names=secrets),
                log=self._settings.state / "logs" / f"worker-{name}.log",
                folder=self._settings.root,
            )
            for name in self.classes
        ]

    def workers_changed(self, pids: Mapping[str, int]) -> None:
        self._write(replace(self.state, workers=dict(pids)))
        if not self._announced and len(pids) == len(self.classes):
            self._announced = True
            listed = ", ".join(f"{name} (pid {pid})" for name, pid in pids.items())
            self.options.say(f"workers   {listed}; logs: {self._settings.state / 'logs'}")
            if self._settings.telemetry.listen:
                self.options.say(f"telemetry /readyz and /metrics of each: {self._settings.state / 'telemetry'}/*.json")

    def server_changed(self, pid: int | None) -> None:
        self._write(replace(self.state, server_pid=pid))

    def _write(self, state: DevState) -> None:
        self.state = state
        write_state(self._settings.state, state)


class _Stop:
    """The first signal asks, the second one insists."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.insisted = asyncio.Event()

    def signal(self) -> None:
        (self.insisted if self.asked.is_set() else self.asked).set()


@contextlib.contextmanager
def _stop_signals() -> Iterator[_Stop]:
    stop = _Stop()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.signal)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def _server(
    settings: Settings, environment: Mapping[str, str], options: DevOptions
) -> AsyncIterator[tuple[DevState, DevServer | None]]:
    target = external_target(settings, environment)
    if target is not None:
        await connect_to(target)
        options.say(f"Temporal  {target.address} (from {target.origin}), namespace {target.namespace}")
        yield DevState(pid=os.getpid(), address=target.address, namespace=target.namespace), None
        return
    temporal = settings.temporal
    plan = ServerPlan(
        program=find_server(explicit=temporal.server, environment=environment),
        state=settings.state,
        namespace=temporal.namespace,
        port=temporal.port,
        ui_port=temporal.ui_port,
    )
    async with DevServer(plan) as server:
        options.say(f"Temporal  {server.address}, namespace {plan.namespace}; its log: {plan.log}")
        options.say(f"web UI    {server.ui}/namespaces/{plan.namespace}/workflows")
        yield _describe(server), server


async def _look_at_what_runs(
    settings: Settings, environment: Mapping[str, str], options: DevOptions, state: DevState
) -> None:
    """Before workers start: what this version of the engine could not go on with is named (F23, F24)."""
    from adapters.cli.upgrade.checking import warn

    here = Target(address=state.address, namespace=state.namespace, origin="`mendwork dev`")
    target = external_target(settings, environment) or here
    client = await connect_to(target, converter=converter_for(settings, target.namespace))
    await warn(client, queue=settings.temporal.task_queue, say=options.say)


def _describe(server: DevServer) -> DevState:
    return DevState(
        pid=os.getpid(),
        address=server.address,
        namespace=server.plan.namespace,
        ui=server.ui,
        server_pid=server.pid,
    )


async def _serve(session: _Session, server: DevServer | None, stop: _Stop) -> None:
    supervisor = Supervisor(session.programs(), say=session.options.say, changed=session.workers_changed)
    session.workers_changed({})
    tasks = [asyncio.create_task(supervisor.run()), asyncio.create_task(stop.asked.wait())]
    if server is not None:
        tasks.append(asyncio.create_task(_keep_server(server, session)))
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await _cancel(tasks)
        session.options.say("stopping the workers; once more ends them hard")
        await _stop_workers(supervisor, session.options.grace, stop)


async def _keep_server(server: DevServer, session: _Session) -> None:
    """The histories are in the database file: a server that dies is started again on the same ports."""
    deaths, log = 0, server.plan.log
    while True:
        born = time.monotonic()
        code = await server.ended()
        deaths = count_death(deaths, lived=time.monotonic() - born)
        if deaths > _SERVER_DEATHS:
            raise ServerUnavailable(f"the Temporal server died {deaths} times in a row; its log: {log}")
        delay = restart_delay(deaths)
        session.options.say(f"the Temporal server ended ({ending(code)}); again in {delay:g} s; its log: {log}")
        session.server_changed(None)
        await asyncio.sleep(delay)
        await server.start()
        session.server_changed(server.pid)


async def _stop_workers(supervisor: Supervisor, grace: float, stop: _Stop) -> None:
    gently = asyncio.create_task(supervisor.stop(grace=grace))
    insisted = asyncio.create_task(stop.insisted.wait())
    await asyncio.wait([gently, insisted], return_when=asyncio.FIRST_COMPLETED)
    if not gently.done():
        await _cancel([gently])
        await supervisor.stop(grace=0)
    await _cancel([insisted])


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
