"""Spans on their way to a collector. One that is away costs nothing but its spans, and the log says so once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from adapters.telemetry.tracing import GivenIds

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT_SECONDS = 3.0
_EVERY_MILLIS = 1_000
_QUEUE = 8_192
FLUSH_SECONDS = 3.0

_log = logging.getLogger("mendwork")


class SaidOnce(SpanExporter):
    """``exporter``, whose failures are counted by ``lost``, and said when they begin and when they end."""

    def __init__(self, exporter: SpanExporter, *, lost: Callable[[int], None]) -> None:
        self._exporter = exporter
        self._lost = lost
        self._away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Called by the processor's own thread."""
        try:
            result = self._exporter.export(spans)
        except Exception:
            result = SpanExportResult.FAILURE  # an exporter that raises would take the thread with it
        failed = result is not SpanExportResult.SUCCESS
        if failed:
            self._lost(len(spans))
        if failed != self._away:
            self._away = failed
            _log.warning("the collector takes no spans: they are lost" if failed else "the collector takes spans again")
        return result

    def shutdown(self) -> None:
        """Wait for nothing more."""
        self._exporter.shutdown()


def open_provider(endpoint: str, *, about: Mapping[str, str], lost: Callable[[int], None]) -> TracerProvider:
    """Where spans of this process go: OTLP over HTTP to ``endpoint``, the collector's base address."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it repeats each failure; we say it once
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=_TIMEOUT_SECONDS)
    provider = TracerProvider(
        resource=Resource.create({"service.name": "mendwork", **about}),
        id_generator=GivenIds(),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(
        BatchSpanProcessor(SaidOnce(exporter, lost=lost), max_queue_size=_QUEUE, schedule_delay_millis=_EVERY_MILLIS)
    )
    return provider


def close_provider(provider: TracerProvider, *, seconds: float = FLUSH_SECONDS) -> None:
    """Send what waits, for so long at most: whoever ends is not kept by a collector that is away."""
    closing = threading.Thread(target=provider.shutdown, daemon=True)
    closing.start()
    closing.join(seconds)
