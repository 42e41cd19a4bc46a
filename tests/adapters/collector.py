"""A collector on a real socket: it decodes what exporters of OpenTelemetry send."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, kw_only=True)
class Span:
    """One span as it came; ids in hexadecimal, ``parent`` "" for a root. ``worker`` is the class that sent it."""

    name: str
    trace: str
    id: str
    parent: str
    worker: str
    attributes: dict[str, Any]
    events: int
    status: str


@dataclass(kw_only=True)
class Collector:
    """``url`` is what exporters get; ``raw`` is all bytes that came, ``answer`` the status that they are told."""

    url: str = ""
    raw: list[bytes] = field(default_factory=list)
    answer: int = 200

    def spans(self) -> list[Span]:
        """All that came, each once: a batch may be sent twice."""
        found: dict[str, Span] = {}
        for body in self.raw:
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                worker = _attributes(group.resource.attributes).get("mendwork.worker", "")
                for scope in group.scope_spans:
                    found |= {span.span_id.hex(): _span(span, worker) for span in scope.spans}
        return list(found.values())


def _span(span: Any, worker: str) -> Span:
    return Span(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        worker=worker,
        attributes=_attributes(span.attributes),
        events=len(span.events),
        status=span.status.message,
    )


def _attributes(pairs: Sequence[Any]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    """It listens as long as the context is open."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if collector.answer == 200 and self.path == "/v1/traces":
                collector.raw.append(body)
            self.send_response(collector.answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
