"""A person at a terminal: questions on stderr, lines from stdin, long texts in pages."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import termios
from collections.abc import Mapping, Sequence

from adapters.cli.session import say

FEWEST_LINES = 10
BAR = "─" * 60
_COLOURS = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}
_PLAIN = "\033[0m"


def is_terminal() -> bool:
    """Whether somebody can be asked: reads and sees what we write."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def read_line(prompt: str) -> str | None:
    """What a person types, without the blanks around it; None when the input is closed.

    What was typed before the question was asked is thrown away: it cannot have been an answer to it. Needs a terminal.
    """
    descriptor = sys.stdin.fileno()
    termios.tcflush(descriptor, termios.TCIFLUSH)
    sys.stderr.write(prompt)
    sys.stderr.flush()
    # Not input() in a thread: that cannot be left by Ctrl-C, nor when somebody else answers meanwhile.
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[bytes] = loop.create_future()

    def ready() -> None:
        if not typed.done():
            typed.set_result(os.read(descriptor, 4096))

    loop.add_reader(descriptor, ready)
    try:
        line = await typed
    finally:
        loop.remove_reader(descriptor)
    return line.decode(errors="replace").strip() if line else None


async def page(lines: Sequence[str]) -> None:
    """Show ``lines`` a screen at a time."""
    height = max(FEWEST_LINES, shutil.get_terminal_size().lines - 2)
    for start in range(0, len(lines), height):
        show(lines[start : start + height])
        left = len(lines) - start - height
        if left > 0 and (await read_line(f"-- {left} more lines: Enter shows them, q stops -- ")) in ("q", None):
            return


def show(lines: Sequence[str]) -> None:
    """A part of a diff, in colour where that is wanted."""
    colours = _COLOURS if "NO_COLOR" not in os.environ else {}
    for line in lines:
        say(_coloured(line, colours))


def _coloured(line: str, colours: Mapping[str, str]) -> str:
    colour = "" if line.startswith(("+++", "---")) else colours.get(line[:1], "")
    return f"{colour}{line}{_PLAIN}" if colour else line
