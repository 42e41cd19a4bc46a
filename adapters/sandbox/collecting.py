"""What a run answers on the socket that its folder came through: that it is ready, and the tar that is taken out."""

from __future__ import annotations

import asyncio
import socket
from io import FileIO

from domain.ports.sandbox import Collect

_READY = b"ready\n"
_WHOLE = b"whole\n"
_CHUNK = 1 << 16


class Answers:
    """Reads ``feed`` while the run goes on. ``overfull``: there is more to take out than may be.

    Without ``collect`` only the first word counts. Raises OSError from ``finish`` when the file cannot be written.
    """

    def __init__(self, feed: socket.socket, collect: Collect | None) -> None:
        self.overfull = False
        self._feed = feed
        self._collect = collect
        self._first = bytearray()
        self._size = 0
        self._failure: OSError | None = None
        self._file: FileIO | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def ready(self) -> bool:
        """Whether the copy was complete and the command was started."""
        return self._first.startswith(_READY)

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to read. Raises OSError when the file cannot be made."""
        if self._collect:
            self._file = FileIO(str(self._collect.into), "wb+")
        self._loop = loop
        # The feeder writes to the same open socket and must block, so each read says for itself that it does not.
        loop.add_reader(self._feed.fileno(), self._read)

    def finish(self, *, keep: bool) -> bool:
        """Once nobody writes any more: whether the file holds a whole tar; there is none otherwise, nor unless
        ``keep``. May be called again."""
        while self._loop and self._read():
            pass
        self._stop()
        if not self._file or not self._collect:
            return False
        with self._file as file:
            whole = keep and not self.overfull and not self._failure and _is_whole(file, self._size)
            if whole:
                file.truncate(self._size - len(_WHOLE))
        self._file = None
        if not whole:
            self._collect.into.unlink(missing_ok=True)
        if self._failure:
            raise self._failure
        return whole

    def _read(self) -> bool:
        """Whether there may be more."""
        try:
            data = self._feed.recv(_CHUNK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        head = max(len(_READY) - len(self._first), 0)
        self._first += data[:head]
        self._keep(data[head:])
        if not data or self.overfull or self._failure:
            self._stop()
        return self._loop is not None

    def _keep(self, data: bytes) -> None:
        if not self._file or not self._collect:
            return
        self._size += len(data)
        self.overfull = self._size > self._collect.most_bytes + len(_WHOLE)
        rest = memoryview(data)
        try:
            while rest and not self.overfull:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._failure = error

    def _stop(self) -> None:
        if self._loop:
            self._loop.remove_reader(self._feed.fileno())
            self._loop = None


def _is_whole(file: FileIO, size: int) -> bool:
    if size < len(_WHOLE):
        return False
    file.seek(size - len(_WHOLE))
    return file.read() == _WHOLE
