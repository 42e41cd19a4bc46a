"""The way to the hosts that a run may reach by name: a proxy outside, on a unix socket that is shown inside."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from adapters.sandbox.ways.connections import Connections
from adapters.sandbox.ways.hosts import Hosts, parsed
from adapters.sandbox.ways.relay import listening_on
from adapters.sandbox.ways.upstream import Upstream
from domain.ports.sandbox import Egress

_AT_ONCE = 64
_BYTES = 8_000_000_000
_CHUNK = 1 << 16
_HEAD_BYTES = 32_768
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 30.0
_MOST_NAMES = 50
_FIRST_LINE = b"\r\n"
_END_OF_HEAD = b"\r\n\r\n"
_OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_HOP_BY_HOP = ("proxy-", "connection:", "keep-alive:", "te:", "upgrade:", "content-length:", "transfer-encoding:")

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Refused(Exception):
    """``status`` and reason are the answer of HTTP."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Proxy(Connections):
    """HTTP's CONNECT, and GET or HEAD in plain HTTP for hosts that are named with their port.

    ``refused`` are the hosts that were asked for and not let through, with their ports.
    """

    def __init__(self, hosts: tuple[str, ...], *, upstream: Upstream | None = None, most_bytes: int = _BYTES) -> None:
        super().__init__(at_once=_AT_ONCE)
        self.refused: set[str] = set()
        self._hosts = Hosts(hosts)
        self._upstream = upstream
        self._left = most_bytes

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._places:
                await self._answer(reader, writer)
                with contextlib.suppress(OSError):
                    await asyncio.wait_for(writer.drain(), _HEAD_SECONDS)
            writer.close()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()  # broken off, or no request at all
        except asyncio.CancelledError:
            writer.transport.abort()
            raise

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(_END_OF_HEAD), _HEAD_SECONDS)
            method, target = _request(head)
            if method == "CONNECT":
                far = await self._reach(target, plain=False)
                writer.write(_OPENED)
            else:
                authority, rewritten = _plain(method, target, head)
                far = await self._reach(authority, plain=True)
                far[1].write(rewritten)
        except Refused as no:
            body = f"{no}\n".encode()
            sized = (
                f"Content-Length: {len(body)}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
            )
            writer.write(f"HTTP/1.1 {no.status}\r\n{sized}".encode() + body)
            return
        await self._carry((reader, writer), far, both=method == "CONNECT")

    async def _reach(self, authority: str, *, plain: bool) -> Ends:
        """A connection to a host that may be reached. Raises Refused."""
        try:
            name, port = parsed(authority, default=80 if plain else None)
        except ValueError:
            raise self._no(_printable(authority), "is no name of a host; addresses are not let through") from None
        if not self._hosts.allows(name, port, plain=plain):
            raise self._no(f"{name}:{port}", "is none of the project's registries")
        try:
            if self._upstream and self._upstream.carries(name, port):
                return await asyncio.wait_for(self._upstream.tunnel(name, port), _CONNECT_SECONDS)
            return await asyncio.wait_for(self._directly(name, port), _CONNECT_SECONDS)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise Refused("502 Bad Gateway", f"{name}:{port} cannot be reached: {error or 'no answer'}") from error

    async def _directly(self, name: str, port: int) -> Ends:
        """To the address that was looked at, and no other: a second look-up could find another."""
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        if not addresses or not all(self._hosts.opens(name, port, address) for address in addresses):
            raise self._no(f"{name}:{port}", "is in a private network: name it with its port to allow that")
        failure: OSError = OSError("no address")
        for address in addresses:
            try:
                return await asyncio.open_connection(address, port, limit=_CHUNK)
            except OSError as error:
                failure = error
        raise failure

    async def _carry(self, near: Ends, far: Ends, *, both: bool) -> None:
        orderly = False
        try:
            async with asyncio.TaskGroup() as ways:
                if both:
                    ways.create_task(self._pump(near[0], far[1]))
                ways.create_task(self._pump(far[0], near[1]))
            orderly = True
        except* OSError:
            near[1].transport.abort()  # one side broke off: the other learns it by the end of its connection
        finally:
            if orderly:
                far[1].close()
            else:
                far[1].transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(_CHUNK):
            self._left -= len(data)
            if self._left < 0:
                raise ConnectionAbortedError("the run has moved as many bytes as it may")
            sink.write(data)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()

    def _no(self, host: str, reason: str) -> Refused:
        if len(self.refused) < _MOST_NAMES:
            self.refused.add(host)
        return Refused("403 Forbidden", f"{host} {reason}")


@contextlib.asynccontextmanager
async def proxied(egress: Egress | None, upstream: Upstream | None) -> AsyncIterator[Proxy]:
    """Serve ``egress`` as long as the context is open; its socket is gone afterwards. Nothing for None.

    Raises OSError when the socket cannot be made.
    """
    if egress is None:
        yield Proxy(())
        return
    proxy = Proxy(egress.hosts, upstream=upstream)
    server = await asyncio.start_unix_server(proxy.accept, sock=listening_on(egress.socket), limit=_HEAD_BYTES)
    try:
        yield proxy
    finally:
        server.close()
        egress.socket.unlink(missing_ok=True)
        await proxy.end()


def _request(head: bytes) -> tuple[str, str]:
    words = head.partition(_FIRST_LINE)[0].decode("latin-1").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Refused("400 Bad Request", "this is no request to a proxy")
    return words[0], words[1]


def _plain(method: str, target: str, head: bytes) -> tuple[str, bytes]:
    """The host of a request in plain HTTP, and the request as that host gets it: the only one of its connection."""
    try:
        parts = urlsplit(target)
    except ValueError:
        parts = urlsplit("")
    if method not in ("GET", "HEAD") or parts.scheme != "http" or "@" in parts.netloc:
        raise Refused("405 Method Not Allowed", "only CONNECT, and GET or HEAD of http://…, are let through")
    lines = head.decode("latin-1").split("\r\n")[1:-2]
    kept = [line for line in lines if not line.lower().startswith((*_HOP_BY_HOP, "host:"))]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    first = [f"{method} {path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close"]
    return parts.netloc, "\r\n".join([*first, *kept, "", ""]).encode("latin-1")


def _printable(text: str) -> str:
    return "".join(each if each.isascii() and each.isprintable() else "?" for each in text[:80]) or "?"
