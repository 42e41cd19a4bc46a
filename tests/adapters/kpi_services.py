"""Real services on loopback that behave as they are told to, for a load to measure."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET, socket

from adapters.compliance.delivery.load import Manner

REASONS = {200: "OK", 302: "Found", 404: "Not Found", 500: "Internal Server Error"}


@dataclass
class Service:
    """One server; ``seen`` are the paths that were asked for, health checks aside. One that ``drips`` sends a byte now
    and then, for ever."""

    manner: Manner
    url: str = ""
    seen: list[str] = field(default_factory=list)
    checks: int = 0
    open: int = 0
    most_open: int = 0
    drips: bool = False
    sock: socket = field(default_factory=socket)
    server: asyncio.Server | None = None
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def start(self) -> None:
        # Bound in any case, so that nobody else gets the port; one that does not listen refuses.
        self.sock.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.sock.getsockname()[1]}"
        if self.manner.manner != "refused":
            self.server = await asyncio.start_server(self._serve, sock=self.sock, backlog=1_000)

    async def stop(self) -> None:
        if self.server is not None:
            self.server.close()
            for writer in list(self.writers):
                writer.transport.abort()
            while self.writers:  # noqa: ASYNC110 - each connection ends by itself now
                await asyncio.sleep(0.01)
        self.sock.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(head.split()[1].decode(), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            if self.manner.manner:
                writer.transport.abort()
            else:
                writer.close()
            self.writers.discard(writer)

    async def _answer(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        manner = self.manner
        if manner.manner == "timeout":
            await reader.read()  # until the other side gives up
            return
        if manner.manner == "reset":
            # No lingering: the kernel answers with a reset instead of an orderly end.
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
            return
        await asyncio.sleep(manner.ms / 1000)
        status = self._status(path)
        body = manner.body.encode()
        head = f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\n"
        head += "" if self.drips else f"Content-Length: {len(body)}\r\n"
        head += "Location: http://192.0.2.1/elsewhere\r\n" if status == 302 else ""
        writer.write(head.encode() + b"Connection: close\r\n\r\n")
        while self.drips and not writer.is_closing():
            writer.write(b".")
            await asyncio.sleep(0.02)
        writer.write(body)
        await writer.drain()

    def _status(self, path: str) -> int:
        if path == "/health":
            self.checks += 1
            given = self.manner.health[self.checks - 1 : self.checks]
            return given[0] if given else self.manner.status
        self.seen.append(path)
        wrong = self.manner.wrong_every and len(self.seen) % self.manner.wrong_every == 0
        return 500 if wrong else self.manner.status


@dataclass
class Town:
    """The services of one test."""

    services: dict[str, Service] = field(default_factory=dict)

    async def serve(self, manner: Manner) -> str:
        """Its base URL."""
        service = Service(manner)
        await service.start()
        self.services[service.url] = service
        return service.url

    async def close(self) -> None:
        for service in self.services.values():
            await service.stop()

    def __getitem__(self, url: str) -> Service:
        return self.services[url]
