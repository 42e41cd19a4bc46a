"""The model that both sides ask: it answers after a while, and remembers who asked and when."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx

KEY = "x-key"


@dataclass(slots=True)
class Asked:
    """How often each key arrived; ``url`` is where to ask, ``total`` all arrivals."""

    url: str = ""
    keys: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.keys.total()

    @property
    def again(self) -> int:
        """Arrivals beyond the first of their key."""
        return self.total - len(self.keys)


@contextlib.asynccontextmanager
async def model(seconds: float) -> AsyncIterator[Asked]:
    """Listens on loopback, one request a connection; an asker that dies meanwhile has asked all the same."""
    asked = Asked()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            headers = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
            await reader.readexactly(int(headers.get("content-length", 0)))
            asked.keys[headers[KEY]] += 1
            await asyncio.sleep(seconds)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nanswered")
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, backlog=256) as server:
        asked.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        yield asked


@contextlib.asynccontextmanager
async def asking(url: str) -> AsyncIterator[Asker]:
    """A client for as many questions at once as wanted."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:
        yield Asker(client, url)


class Asker:
    """Asks one question."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url

    async def __call__(self, key: str, question: str) -> str:
        """The answer. Raises httpx.HTTPError."""
        response = await self._client.post(self._url, content=question, headers={KEY: key})
        response.raise_for_status()
        return response.text
