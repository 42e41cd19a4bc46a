"""A release on staging, tried by its own integration tests: from the sandbox, which reaches that port and no other."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from temporalio import activity

from activities.delivery.artifacts import delivered
from activities.gates import Ended, GateReport, Job, OnBench, judge
from domain.errors import InvalidInput
from domain.gates.verdict import Verdict
from domain.kpi.probe import Probe

TARGET_URL = "MENDWORK_TARGET_URL"
_HOSTS = ("127.0.0.1", "localhost")
_LOOK_SECONDS = 10.0
_LOOK_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIntegrationInput:
    """``url`` is staging's address on this machine's loopback, ``http://127.0.0.1:PORT``. ``environment`` is the key of
    the project's set-up, "" for none."""

    label: str
    project: str
    commit: str
    url: str
    allow_missing: tuple[str, ...] = ()
    environment: str = ""


class Integration(OnBench):
    """What a release's integration tests say of it on staging."""

    @activity.defn
    async def run_integration(self, request: RunIntegrationInput) -> GateReport:
        """The commit's integration tests on a fresh checkout, against what runs on staging.

        Raises InvalidInput for another address than loopback's or a project without such tests, IsolationMissing,
        ResourceShort.
        """
        project, delivery = delivered(self._engine, request.project)
        port = loopback_port(request.url)
        if not delivery.integration:
            raise InvalidInput(f"the project {project.name} has no integration tests to run")
        async with self._workspaces.checkout(project.name, request.commit, label=request.label) as folder:
            job = Job(
                label=request.label,
                argv=delivery.integration,
                folder=folder,
                allow_missing=request.allow_missing,
                environment={TARGET_URL: f"http://127.0.0.1:{port}"},
                reach=port,
                dependencies=request.environment,
            )
            async with self._bench.ran(project, job) as ended:
                gone = await asyncio.to_thread(look, port, delivery.health)
        # In a thread: a log of many megabytes would hold up the heartbeats of every activity here.
        judged, ran, shown = await asyncio.to_thread(judge, ended, test=delivery.integration, base_ran=None)
        judged = weighed(judged, ended, gone)
        return GateReport(
            green=judged.green,
            reason=judged.reason,
            ran=ran,
            log=await self._blobs.put(ended.output),
            report="" if judged.green else await self._blobs.put((shown or judged.reason).encode(errors="replace")),
            seconds=round(ended.result.seconds, 3),
        )


def weighed(judged: Verdict, ended: Ended, gone: str) -> Verdict:
    """The tests' verdict together with what was seen of staging meanwhile: tests prove nothing of a staging that they
    never asked, or that is not there in the end. ``gone`` says what is wrong with it then ("": nothing)."""
    result = ended.result
    if gone:
        return Verdict(green=False, reason=f"staging does not serve any more after the tests ({gone}); {judged.reason}")
    if result.refused:
        times = "one connection" if result.refused == 1 else f"{result.refused} connections"
        return Verdict(green=False, reason=f"staging did not take {times} of the tests; {judged.reason}")
    if judged.green and not result.reached:
        return Verdict(green=False, reason=f"the integration tests never asked staging ({TARGET_URL})")
    return judged


def loopback_port(url: str) -> int:
    """The port of an address on this machine's loopback. Raises InvalidInput for any other."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme != "http" or parts.hostname not in _HOSTS or not port or parts.username is not None:
        raise InvalidInput(f"integration tests reach http://127.0.0.1:PORT and nothing else, not {url[:200]!r}")
    return port


def look(port: int, health: Probe) -> str:
    """What is wrong with what answers on ``port``, "" when its health check is answered well; never raises for it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_LOOK_SECONDS)
    try:
        connection.connect()
        with _cut_off(connection.sock, _LOOK_SECONDS):
            connection.request("GET", health.path)
            with connection.getresponse() as answer:
                body = answer.read(_LOOK_BYTES).decode(errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"GET {health.path}: {type(error).__name__}"
    finally:
        connection.close()
    if answer.status != health.status:
        return f"GET {health.path}: {answer.status}"
    return "" if health.contains in body else f"GET {health.path}: without {health.contains[:50]!r}"


@contextmanager
def _cut_off(connected: socket.socket, seconds: float) -> Iterator[None]:
    """A service that sends one byte now and then would never run into the timeout of a single read."""

    def cut() -> None:
        with suppress(OSError):  # just closed
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
