"""One worker process, seen from outside: put together here, and taken apart at its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.telemetry.activities import MeasuringInterceptor
from adapters.telemetry.health import Check
from adapters.telemetry.metrics import Metrics
from domain.errors import InvalidInput, ServerUnavailable

if TYPE_CHECKING:
    from temporalio.worker import Interceptor

    from adapters.telemetry.sdk import SdkMetrics
    from adapters.telemetry.tracing import Tracing

DRAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the process ``worker`` shows. ``listen`` is a host and a port, or None for no pages; ``folder`` is where the
    address of the pages is written; ``models`` are litellm's names by the configuration's; ``otlp`` is the collector's
    address, "" for no traces."""

    worker: str
    folder: Path
    listen: tuple[str, int] | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    otlp: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """``interceptors`` are for the worker, outermost first; ``checks`` are those of /readyz, see ``ready``. ``url`` is
    the address of the pages, "" where there are none."""

    interceptors: Sequence[Interceptor]
    checks: dict[str, Check]
    url: str = ""

    def ready(self, checks: Mapping[str, Check]) -> None:
        """All has started; from now on ``checks`` say whether it goes on."""
        self.checks.clear()
        self.checks.update(checks)


@contextlib.asynccontextmanager
async def observed(wanted: Wanted) -> AsyncIterator[Observed]:
    """Show the process as long as the context is open. To be entered before any client is made: the SDK's figures are
    those of its default runtime. Raises InvalidInput for a host that cannot be listened on."""
    metrics = Metrics(worker=wanted.worker, models=wanted.models)
    checks: dict[str, Check] = {"worker": _starting}
    async with contextlib.AsyncExitStack() as stack:
        tracing = stack.enter_context(_traced(wanted, metrics)) if wanted.otlp else None
        measuring = MeasuringInterceptor(metrics, [tracing.model_call] if tracing else [])
        interceptors: list[Interceptor] = [measuring, tracing] if tracing else [measuring]
        url = ""
        if wanted.listen:
            await stack.enter_async_context(_drained(_sdk_metrics(metrics)))
            url = await stack.enter_async_context(_pages(wanted, metrics, checks))
            stack.enter_context(_told(wanted, url))
        yield Observed(interceptors=interceptors, checks=checks, url=url)


async def _starting() -> None:
    raise ServerUnavailable("the worker is still starting")


@contextlib.asynccontextmanager
async def _pages(wanted: Wanted, metrics: Metrics, checks: dict[str, Check]) -> AsyncIterator[str]:
    from adapters.telemetry.endpoint import Pages, serving

    host, port = wanted.listen or ("", 0)
    async with contextlib.AsyncExitStack() as stack:
        try:
            pages = Pages(checks=checks, exposition=metrics.exposition)
            url = await stack.enter_async_context(serving(pages, host=host, port=port))
        except OSError as error:
            raise InvalidInput(f"telemetry.listen: {host} cannot be listened on: {error.strerror}") from error
        yield url


def _sdk_metrics(metrics: Metrics) -> SdkMetrics:
    from temporalio.runtime import Runtime

    from adapters.telemetry.sdk import measured_runtime

    runtime, figures = measured_runtime()
    Runtime.set_default(runtime, error_if_already_set=False)
    metrics.registry.register(figures)
    return figures


@contextlib.asynccontextmanager
async def _drained(figures: SdkMetrics) -> AsyncIterator[None]:
    async def regularly() -> None:
        while True:
            figures.drain()
            await asyncio.sleep(DRAIN_SECONDS)

    task = asyncio.create_task(regularly())
    try:
        yield
    finally:
        task.cancel()


@contextlib.contextmanager
def _traced(wanted: Wanted, metrics: Metrics) -> Iterator[Tracing]:
    from adapters.telemetry.export import close_provider, open_provider
    from adapters.telemetry.tracing import Tracing

    about = {"mendwork.worker": wanted.worker, "process.pid": str(os.getpid())}
    provider = open_provider(wanted.otlp, about=about, lost=metrics.spans_lost)
    try:
        yield Tracing(provider)
    finally:
        close_provider(provider)


@contextlib.contextmanager
def _told(wanted: Wanted, url: str) -> Iterator[None]:
    """``FOLDER/WORKER.json`` says where the pages are, for as long as they are there; a killed worker's successor
    replaces it."""
    wanted.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = wanted.folder / f"{wanted.worker}.json"
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({"worker": wanted.worker, "pid": os.getpid(), "url": url}) + "\n", encoding="utf-8")
    draft.replace(file)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            if json.loads(file.read_text(encoding="utf-8"))["pid"] == os.getpid():
                file.unlink()
