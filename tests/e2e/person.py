"""A person at a terminal of their own, on which a program runs: what is shown can be waited for, lines can be typed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LINES, COLUMNS = 50, 200
_STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Person:
    """``shown`` is everything that was on the screen so far, what was typed included, without colours.

    With ``all_of_it`` the program's standard output is on the terminal too, else ``leaves`` returns it.
    """

    def __init__(
        self, argv: Sequence[str], *, folder: Path, environment: Mapping[str, str], all_of_it: bool = False
    ) -> None:
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            ["env", "--default-signal=INT", *argv],  # a background job would ignore it
            cwd=folder,
            env={**environment, "NO_COLOR": "1"},
            stdin=slave,
            stdout=slave if all_of_it else subprocess.PIPE,
            stderr=slave,
            text=True,
        )
        os.close(slave)
        self.shown = ""
        self._raw = b""
        self._seen = 0

    def sees(self, *texts: str, seconds: float = 60.0) -> str:
        """Wait for the first of ``texts`` to come; everything new up to it, and it."""
        deadline = time.monotonic() + seconds
        while True:
            found = [(at, text) for text in texts if (at := self.shown.find(text, self._seen)) >= 0]
            if found:
                at, text = min(found)
                before, self._seen = self.shown[self._seen :][: at - self._seen + len(text)], at + len(text)
                return before
            ended = not self._read()
            assert not ended, f"it ended without {texts}:\n{self.shown}"
            assert time.monotonic() < deadline, f"no {texts} in\n{self.shown[self._seen :]}"

    def types(self, line: str) -> None:
        """As a person does, with Enter."""
        os.write(self._master, f"{line}\n".encode())

    def leaves(self, *, seconds: float = 60.0) -> tuple[int, str]:
        """Its exit code and what it put on stdout. Whatever it still writes to the terminal is read."""
        deadline = time.monotonic() + seconds
        while self._read() and self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end:\n{self.shown[self._seen :]}"
        out, _ = self.process.communicate(timeout=seconds)
        while self._read(patience=0.0):
            """What it wrote last."""
        os.close(self._master)
        return self.process.returncode, (out or "").strip()

    def _read(self, *, patience: float = 0.05) -> bool:
        """Take in what is there, or wait a moment for it. Returns False when nobody is left to write."""
        try:
            read = os.read(self._master, 65_536)
        except BlockingIOError:
            time.sleep(patience)
            return patience > 0
        except OSError:  # the other side is closed
            return False
        self._raw += read
        self.shown = _STYLES.sub("", self._raw.decode(errors="ignore")).replace("\r\n", "\n")
        return bool(read)
