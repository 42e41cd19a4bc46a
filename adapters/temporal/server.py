"""Temporal's own development server, on loopback, tuned, with its database and log in the state folder."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType

from google.protobuf.duration_pb2 import Duration
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from adapters.temporal import children
from adapters.temporal.ports import LOOPBACK, pick_port
from domain.errors import ServerUnavailable
from domain.human.attributes import ATTRIBUTES

RETENTION = timedelta(hours=720)  # sagas wait for people
TUNED = {  # stock values make every step wait for a 50 ms tick, twice, and every short timer a whole second
    "history.transferProcessorMaxPollRPS": "200",
    "history.timerProcessorMaxPollRPS": "200",
    "history.timerProcessorMaxTimeShift": '"10ms"',
    "system.enableActivityEagerExecution": "true",
    "matching.enableFairness": "true",
    "matching.numTaskqueueReadPartitions": "1",  # turns are taken in each partition by itself
    "matching.numTaskqueueWritePartitions": "1",
}
TAKEN = "another program took its port"
PORT_TRIES = 4
_SAID_BYTES = 1 << 20  # it says why at first, and ends with all its stacks
_TICK = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """What to start. Ports of 0 become free ones; ``state`` gets ``temporal.db`` and ``logs/temporal.log``.

    ``patience`` is how many seconds it may take to answer, and to end when it is asked to.
    """

    program: Path
    state: Path
    namespace: str = "default"
    port: int = 0
    ui_port: int = 0
    patience: float = 30.0

    @property
    def log(self) -> Path:
        """The server's own output, of all starts."""
        return self.state / "logs" / "temporal.log"

    @property
    def database(self) -> Path:
        """Temporal's SQLite file: every history is in it."""
        return self.state / "temporal.db"


class DevServer:
    """``async with DevServer(plan) as server``: healthy inside the block, gone after it.

    Raises InvalidInput for a taken port and ServerUnavailable, with the log's path, when it does not come up.
    """

    def __init__(self, plan: ServerPlan) -> None:
        self.plan = plan
        self._port = 0
        self._ui_port = 0
        self._process: Process | None = None

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"{LOOPBACK}:{self._port}"

    @property
    def ui(self) -> str:
        """The web UI's URL."""
        return f"http://{LOOPBACK}:{self._ui_port}"

    @property
    def pid(self) -> int | None:
        """The process that serves now."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def __aenter__(self) -> DevServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start, or start again on the same ports; returns when the server is healthy and keeps histories 30 days.

        A free port may be taken between the look and the server's start: other ones are tried then.
        """
        again = self._port != 0
        for left in reversed(range(1 if again else PORT_TRIES)):
            try:
                await self._start()
            except _Ended as error:
                if error.why != TAKEN or not left:
                    raise self._failed(error.why) from error
                self._port = self._ui_port = 0
            else:
                return

    async def _start(self) -> None:
        self.plan.state.mkdir(parents=True, exist_ok=True)
        self._port = pick_port(self._port or self.plan.port, setting="[temporal].port")
        self._ui_port = pick_port(self._ui_port or self.plan.ui_port, setting="[temporal].ui_port")
        written = self.plan.log.stat().st_size if self.plan.log.exists() else 0
        self._process = await children.start(
            self._argv(), environment=self._environment(), log=self.plan.log, folder=self.plan.state
        )
        try:
            async with asyncio.timeout(self.plan.patience):
                await _keep_histories(await self._healthy(self._process), self.plan.namespace)
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                raise self._failed(f"not healthy after {self.plan.patience:g} s") from error
            if isinstance(error, _Ended):
                raise _Ended(_why(self.plan, written)) from error
            raise

    async def stop(self) -> None:
        """End it by pid; nothing happens when it has ended."""
        if self._process is not None:
            await children.stop(self._process, grace=self.plan.patience)
            self._process = None

    async def ended(self) -> int:
        """Wait until the process that serves now ends; its exit code."""
        if self._process is None:
            raise RuntimeError("the server was not started")
        return await children.reap(self._process)

    async def _healthy(self, process: Process) -> Client:
        while process.returncode is None:
            with contextlib.suppress(RuntimeError, RPCError):  # not listening yet; the deadline is the caller's
                client = await Client.connect(self.address, namespace=self.plan.namespace)
                if await client.service_client.check_health(timeout=timedelta(seconds=1)):
                    return client
            await asyncio.sleep(_TICK)
        raise _Ended

    def _argv(self) -> list[str | Path]:
        plan = self.plan
        return [
            *(plan.program, "server", "start-dev", "--disable-config-env", "--disable-config-file"),
            *("--ip", LOOPBACK, "--port", str(self._port), "--ui-ip", LOOPBACK, "--ui-port", str(self._ui_port)),
            *("--db-filename", plan.database, "--namespace", plan.namespace, "--log-level", "warn"),
            *(part for key, value in TUNED.items() for part in ("--dynamic-config-value", f"{key}={value}")),
            *(part for name, kind in ATTRIBUTES.items() for part in ("--search-attribute", f"{name}={kind}")),
        ]

    def _environment(self) -> Mapping[str, str]:
        return {"HOME": str(self.plan.state), "PATH": "/usr/bin:/bin"}

    def _failed(self, why: str) -> ServerUnavailable:
        return ServerUnavailable(f"the Temporal server did not start: {why}; its log: {self.plan.log}")


class _Ended(Exception):
    """The process ended before it served."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


def _why(plan: ServerPlan, written: int) -> str:
    said = children.tail(plan.log, start=written, limit=_SAID_BYTES)
    if "address already in use" in said:
        return TAKEN
    if "file is not a database" in said or "malformed" in said:
        return f"its database {plan.database} is damaged (move it away to start with empty histories)"
    return "it ended at once"


async def _keep_histories(client: Client, namespace: str) -> None:
    service = client.workflow_service
    kept = Duration()
    kept.FromTimedelta(RETENTION)
    described = DescribeNamespaceRequest(namespace=namespace)
    if (await service.describe_namespace(described)).config.workflow_execution_retention_ttl == kept:
        return
    config = NamespaceConfig(workflow_execution_retention_ttl=kept)
    await service.update_namespace(UpdateNamespaceRequest(namespace=namespace, config=config))
    if (await service.describe_namespace(described)).config.workflow_execution_retention_ttl != kept:
        raise ServerUnavailable(f"the Temporal server does not keep histories of {namespace} for {RETENTION}")
