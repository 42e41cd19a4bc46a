"""The descriptors between us and one run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import FileIO

_PIPE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Our ends and theirs of each connection.

    ``feed``: the copy of the folder goes out, "ready" and what is taken out come back. ``log``: what the run prints.
    ``status``: what bubblewrap reports. ``etc``: files in the sandbox, and what holds their content.
    """

    feed: socket.socket
    stdin: socket.socket
    log_out: FileIO
    log_in: FileIO
    status_out: FileIO
    status_in: FileIO
    etc: Mapping[str, FileIO]

    def inherited(self) -> tuple[int, ...]:
        """What the run's process gets beside its standard streams; bubblewrap keeps it from the command."""
        return (self.status_in.fileno(), *(file.fileno() for file in self.etc.values()))

    def close_theirs(self) -> None:
        """Once the process is started: or we would never see the end of what it writes."""
        self.stdin.close()
        for file in (self.log_in, self.status_in, *self.etc.values()):
            file.close()

    def end_of_feed(self) -> None:
        """Says that no more of the copy comes; what the run answers can still be read."""
        with contextlib.suppress(OSError):  # the run is over already
            self.feed.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def connect(etc: Mapping[str, str]) -> Iterator[Ends]:
    """All are closed in the end. Raises OSError when this process has no descriptors left."""
    with contextlib.ExitStack() as stack:
        feed, stdin = (stack.enter_context(end) for end in socket.socketpair())
        log_out, log_in = _pipe(stack)
        status_out, status_in = _pipe(stack)
        with contextlib.suppress(OSError):  # a wish: fewer turns for a chatty run
            fcntl.fcntl(log_in, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        files = {name: _memory_file(stack, text) for name, text in etc.items()}
        yield Ends(
            feed=feed,
            stdin=stdin,
            log_out=log_out,
            log_in=log_in,
            status_out=status_out,
            status_in=status_in,
            etc=files,
        )


def _pipe(stack: contextlib.ExitStack) -> tuple[FileIO, FileIO]:
    out, into = os.pipe()
    return stack.enter_context(FileIO(out, "rb")), stack.enter_context(FileIO(into, "wb"))


def _memory_file(stack: contextlib.ExitStack, text: str) -> FileIO:
    file = stack.enter_context(FileIO(os.memfd_create("mendwork"), "r+b"))
    file.write(text.encode())
    file.seek(0)
    return file
