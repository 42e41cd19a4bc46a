"""A terminal of a test's own: what is written to it can be read, and what is typed arrives line by line."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest


class Terminal:
    """The person's side. ``shown`` is everything on the screen so far, what was typed included."""

    def __init__(self, master: int) -> None:
        self._master = master
        self.shown = ""
        self._seen = 0

    async def until(self, text: str, *, within: float = 60.0) -> str:
        """Wait for ``text`` after what was waited for before; return what stood before it."""
        try:
            async with asyncio.timeout(within):
                while (at := self.shown.find(text, self._seen)) < 0:
                    self._read()
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{text!r} was not shown; shown was:\n{self.shown[self._seen :]}") from None
        before = self.shown[self._seen : at]
        self._seen = at + len(text)
        return before

    def type(self, line: str) -> None:
        """As a person does, with Enter."""
        os.write(self._master, f"{line}\n".encode())

    def close_input(self) -> None:
        """Ctrl-D."""
        os.write(self._master, b"\x04")

    def _read(self) -> None:
        try:
            self.shown += os.read(self._master, 65_536).decode().replace("\r\n", "\n")
        except BlockingIOError:
            return


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Give the command line a terminal. Only its own modules see it: pytest sets the streams of ``sys`` anew between a
    fixture and its test."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    reading = os.fdopen(slave, "r", encoding="utf-8")
    writing = os.fdopen(os.dup(slave), "w", encoding="utf-8")
    with reading, writing:
        streams = SimpleNamespace(stdin=reading, stdout=sys.stdout, stderr=writing)
        monkeypatch.setattr("adapters.cli.session.sys", streams)
        monkeypatch.setattr("adapters.cli.decide.terminal.sys", streams)
        monkeypatch.setenv("NO_COLOR", "1")
        yield Terminal(master)
    os.close(master)
