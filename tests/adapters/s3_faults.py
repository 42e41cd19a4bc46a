"""A proxy on a real socket in front of an S3 server, which can be told to behave badly."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

CHUNK = 65_536


def refusal(status: int, code: str, *, headers: str = "") -> bytes:
    """An answer as S3 refuses."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code} canary-message</Message></Error>".encode()
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/xml\r\n{headers}Content-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


@dataclass(kw_only=True)
class Proxy:
    """``answer`` is given instead of the server's; with ``body`` only to a PUT, after so many bytes, read slowly.
    ``silent`` takes requests and answers none. ``up`` and ``down`` are the bytes after which a connection is ended on
    its way to the server and back, with ``stall`` held still instead. ``once`` hangs up on
    a second request of a connection. ``sent`` counts the bytes of both ways.
    """

    upstream: int
    port: int = 0
    answer: bytes = b""
    body: int = 0
    silent: bool = False
    once: bool = False
    stall: bool = False
    up: int | None = None
    down: int | None = None
    requests: int = 0
    sent: int = 0
    open: int = 0
    most_open: int = 0
    stalled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if self.answer or self.silent:
                await self._instead(reader, writer)
            else:
                await self._through(reader, writer)
        except OSError:
            """One of the two sides is gone, and so is the connection."""
        finally:
            self.open -= 1
            writer.close()

    async def _instead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        if self.body and not head.startswith(b"PUT"):
            writer.write(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            return
        read = 0
        while read < self.body:
            read += len(await reader.read(CHUNK))
            await asyncio.sleep(0.008)
        if self.silent:
            await reader.read()  # until the client gives up
            return
        writer.write(self.answer)
        await writer.drain()
        writer.write_eof()
        with contextlib.suppress(asyncio.TimeoutError):  # a client that goes on to send its body reads this first
            async with asyncio.timeout(5):
                while await reader.read(CHUNK):
                    pass

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside, out = await asyncio.open_connection("127.0.0.1", self.upstream)
        answered = asyncio.Event()
        try:
            ways = [
                asyncio.ensure_future(self._pipe(reader, out, self.up, answered)),
                asyncio.ensure_future(self._pipe(inside, writer, self.down, answered, down=True)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            out.close()

    async def _pipe(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        most: int | None,
        answered: asyncio.Event,
        *,
        down: bool = False,
    ) -> None:
        passed = 0
        while data := await reader.read(CHUNK):
            if down:
                answered.set()
            elif self.once and answered.is_set():
                return
            if most is not None and passed + len(data) > most:
                writer.write(data[: most - passed])
                await writer.drain()
                if self.stall:
                    self.stalled.set()
                    await asyncio.Event().wait()
                return
            passed += len(data)
            self.sent += len(data)
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def proxied(upstream: int) -> AsyncIterator[Proxy]:
    """One that lets everything pass, on a free port."""
    proxy = Proxy(upstream=upstream)
    connections: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        task = asyncio.ensure_future(_serve(proxy.serve, reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CHUNK)  # what it does not read yet is not sent, either
    listening.bind(("127.0.0.1", 0))
    server = await asyncio.start_server(accepted, sock=listening)
    try:
        proxy.port = server.sockets[0].getsockname()[1]
        yield proxy
    finally:
        server.close()
        await asyncio.sleep(0.01)  # what was being accepted is told now
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        for writer in writers:  # a task that was cancelled before its first step has closed nothing
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        await server.wait_closed()


async def _serve(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    try:
        await serve(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
