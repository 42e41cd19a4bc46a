"""What the audience reads: coloured on a terminal, plain when piped or where NO_COLOR is set."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text


class Narrator:
    """Lines on standard output, whole ones, from any thread."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True, emoji=False)
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._status = False
        self._height = 0
        self._rows = 0

    @property
    def interactive(self) -> bool:
        """Whether somebody can be asked."""
        return sys.stdin.isatty() and sys.stdout.isatty()

    def chapter(self, title: str) -> None:
        """A new part of the story, with the seconds since the start."""
        self._put(f"\n━━ {title} ({time.monotonic() - self._started:.0f} s)", style="bold cyan")

    def tell(self, text: str) -> None:
        """A sentence."""
        self._put(f"   {text}")

    def good(self, text: str) -> None:
        """Something that was promised and held."""
        self._put(f"   ✓ {text}", style="green")

    def bad(self, text: str) -> None:
        """Something that was promised and did not hold."""
        self._put(f"   ✗ {text}", style="bold red")

    def drama(self, text: str) -> None:
        """What is done to Mendwork."""
        self._put(f" ☠ {text}", style="bold magenta")

    def quote(self, who: str, line: str) -> None:
        """A line that a program said."""
        self._put(f"   {who} │ {line}", style="dim" if who != "build" else "")

    def command(self, line: str) -> None:
        """A command to type."""
        self._put(f"     $ {line}", style="bold")

    def diff(self, text: str) -> None:
        """A unified diff."""
        for line in text.splitlines():
            self._put(line, style=_diff_style(line))

    def status(self, text: str) -> None:
        """What goes on just now: on a terminal a line that the next one takes the place of, elsewhere nothing."""
        if self._console.is_terminal:
            with self._lock:
                self._console.file.write(f"\r\033[K   {text}"[: self._console.width])
                self._console.file.flush()
                self._status = True

    def picture(self, rows: Sequence[tuple[str, str]]) -> None:
        """A picture that grows by a row now and then, each with a style. On a terminal it is drawn anew in its place;
        elsewhere, or after something else was told, what is new of it is added."""
        with self._lock:
            self._clear_status()
            if self._console.is_terminal and self._height:
                self._console.file.write(f"\033[{self._height}A\r\033[J")
            terminal = self._console.is_terminal
            begun = 0 if terminal or len(rows) < self._rows else self._rows
            for text, style in rows[begun:]:  # a line that wraps would not be where the next picture goes up to
                self._console.print(Text(f"   {text}"[: self._console.width - 1 if terminal else None], style=style))
            self._height, self._rows = len(rows) - begun, len(rows)

    def ask(self, text: str) -> None:
        """Wait for Enter."""
        self._put(f"\n   {text}", style="bold")
        sys.stdin.readline()

    def _put(self, text: str, *, style: str = "") -> None:
        with self._lock:
            self._clear_status()
            self._height = 0
            self._console.print(Text(text, style=style))

    def _clear_status(self) -> None:
        if self._status:
            self._console.file.write("\r\033[K")
            self._status = False


def _diff_style(line: str) -> str:
    if line.startswith(("diff ", "index ", "--- ", "+++ ", "new file")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
