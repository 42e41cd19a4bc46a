"""The way out that a run may have: one unix socket that leads to one port of this machine's loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

from adapters.sandbox.ways.connections import Connections
from domain.ports.sandbox import Outlet

_HOST = "127.0.0.1"
_AT_ONCE = 256
_BYTES = 4_000_000_000
_CHUNK = 1 << 16
_CONNECT_SECONDS = 10.0


class Relay(Connections):
    """Carries connections. ``reached`` and ``refused`` count those that the port took, and did not."""

    def __init__(self, port: int, *, most_bytes: int = _BYTES, at_once: int = _AT_ONCE) -> None:
        super().__init__(at_once=at_once)
        self.reached = 0
        self.refused = 0
        self._port = port
        self._left = most_bytes

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        orderly = False
        try:
            async with self._places:
                orderly = await self._carry(reader, writer)
        finally:
            _close(writer, orderly=orderly)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Both ways to their ends; whether both ended by themselves."""
        try:
            connecting = asyncio.open_connection(_HOST, self._port, limit=_CHUNK)
            far_reader, far_writer = await asyncio.wait_for(connecting, _CONNECT_SECONDS)
        except (OSError, TimeoutError):
            self.refused += 1
            return False
        self.reached += 1
        orderly = False
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._pump(reader, far_writer))
                ways.create_task(self._pump(far_reader, writer))
            orderly = True
        except* OSError:
            pass  # one side broke off: the other learns it by the end of its connection
        finally:
            _close(far_writer, orderly=orderly)
        return orderly

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(_CHUNK):
            self._left -= len(data)
            if self._left < 0:
                raise ConnectionAbortedError("the run has moved as many bytes as it may")
            sink.write(data)
            await sink.drain()
        sink.write_eof()


@contextlib.asynccontextmanager
async def relayed(outlet: Outlet | None) -> AsyncIterator[Relay]:
    """Serve ``outlet`` as long as the context is open; its socket is gone afterwards. Nothing for None.

    Raises OSError when the socket cannot be made.
    """
    if outlet is None:
        yield Relay(0)
        return
    relay = Relay(outlet.port)
    # The folder of the socket is private; the run is another user where Mendwork is root.
    server = await asyncio.start_unix_server(relay.accept, sock=listening_on(outlet.socket), limit=_CHUNK)
    try:
        yield relay
    finally:
        server.close()
        outlet.socket.unlink(missing_ok=True)
        await relay.end()


def listening_on(path: Path) -> socket.socket:
    """A socket at ``path``, however long that is: the kernel takes 107 bytes. Raises OSError."""
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o666)
        listening.listen(_AT_ONCE)
    except OSError:
        listening.close()
        raise
    finally:
        os.close(folder)
    return listening


def _close(writer: asyncio.StreamWriter, *, orderly: bool) -> None:
    """What is still to be sent is sent only after an orderly end."""
    if orderly:
        writer.close()
    else:
        writer.transport.abort()
