"""The three pages of a worker: /livez, /readyz, /metrics. Served by the loop that does the work, so that a loop which
hangs does not say that it lives."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from adapters.telemetry.health import Check, examine

_LIMIT = 16_384
_PATIENCE_SECONDS = 5.0
_TEXT = "text/plain; charset=utf-8"
_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
_JSON = "application/json"
_TORN = (asyncio.IncompleteReadError, asyncio.LimitOverrunError)
_ABOUT = "/livez, /readyz, /metrics\n"

_log = logging.getLogger("mendwork")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A page."""

    status: HTTPStatus
    kind: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """What is shown: ``checks`` may grow while it is served, ``exposition`` is called for each scrape."""

    checks: Mapping[str, Check]
    exposition: Callable[[], bytes]

    async def answer(self, method: str, target: str) -> Answer:
        """The page that a request asks for."""
        if method not in ("GET", "HEAD"):
            return Answer(status=HTTPStatus.METHOD_NOT_ALLOWED, kind=_TEXT, body=b"GET only\n")
        match target.partition("?")[0]:
            case "/livez":
                return Answer(status=HTTPStatus.OK, kind=_TEXT, body=b"alive\n")
            case "/readyz":
                return await self._readiness()
            case "/metrics":
                return Answer(status=HTTPStatus.OK, kind=_EXPOSITION, body=self.exposition())
        return Answer(status=HTTPStatus.NOT_FOUND, kind=_TEXT, body=_ABOUT.encode())

    async def _readiness(self) -> Answer:
        wrong = await examine(self.checks)
        ready = not any(wrong.values())
        entries = {name: {"ready": not why, **({"why": why} if why else {})} for name, why in wrong.items()}
        body = json.dumps({"ready": ready, "subsystems": entries}, indent=2) + "\n"
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        return Answer(status=status, kind=_JSON, body=body.encode())


@contextlib.asynccontextmanager
async def serving(pages: Pages, *, host: str, port: int) -> AsyncIterator[str]:
    """Serve as long as the context is open; the URL. A port that is taken is said, and a free one taken instead:
    nobody's work stops for it. Raises OSError for a host that is not this machine's."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, TimeoutError, ValueError, *_TORN):
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await _exchange(pages, reader, writer)
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(connected, host, port, limit=_LIMIT)
    except OSError as error:
        if not port:
            raise
        _log.warning("telemetry cannot listen on port %d (%s): a free one is taken instead", port, error.strerror)
        server = await asyncio.start_server(connected, host, 0, limit=_LIMIT)
    async with server:
        name, number = server.sockets[0].getsockname()[:2]
        yield f"http://{f'[{name}]' if ':' in name else name}:{number}"


async def _exchange(pages: Pages, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request and its answer; raises ValueError for what is no HTTP or too long."""
    method, target, _ = (await reader.readuntil(b"\n")).decode("latin-1").split()
    for _ in range(100):
        if not (await reader.readuntil(b"\n")).strip():
            break
    answer = await pages.answer(method, target)
    head = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        *(f"Content-Type: {answer.kind}", f"Content-Length: {len(answer.body)}"),
        *("Cache-Control: no-store", "Connection: close", "", ""),
    ]
    writer.write("\r\n".join(head).encode() + (b"" if method == "HEAD" else answer.body))
    await writer.drain()
