"""``mendwork watch`` on a terminal: one table that is redrawn."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from adapters.cli.lines import STEPS, line_of, plain
from adapters.cli.release.series import chart
from domain.money.usage import dollars
from domain.trace.asks import commands
from domain.trace.parts import BuildDetails

if TYPE_CHECKING:
    from adapters.settings import Settings
    from domain.ports.store import Event

STYLES = {
    "running": "cyan",
    "written": "cyan",
    "merged": "green",
    "succeeded": "green",
    "stuck": "yellow",
    "skipped": "yellow",
    "partial": "yellow",
    "escalated": "yellow",
    "failed": "red",
    "aborted": "red",
    "promoted": "green",
    "rolled back": "red",
    "undelivered": "yellow",
    "unclear": "red",
}
MARKS = {"running": "▶", "written": "◆", "merged": "✔", "succeeded": "✔", "stuck": "?", "failed": "✘", "aborted": "✘"}
RECENT = 5
BUDGETS = ("task", "build", "project", "user", "day")


class LiveScreen:
    """``adapters.cli.follow.Screen`` on a terminal. ``clock`` gives ms since 1970."""

    def __init__(
        self,
        settings: Settings,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self._settings = settings
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._live: Live | None = None
        self._recent: deque[str] = deque(maxlen=RECENT)

    def show(self, events: Sequence[Event], details: BuildDetails) -> None:
        """Draw where the build stands."""
        self._recent.extend(filter(None, map(line_of, events)))
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="ellipsis")
            self._live.start()
        self._live.update(self.draw(details), refresh=True)

    def close(self) -> None:
        """Leave the last picture where it is; the next ``show`` begins a new one below."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def draw(self, details: BuildDetails) -> RenderableType:
        """The picture: the build, its tasks, its money, what happened last, what waits for a person."""
        return Group(
            self._head(details),
            _tasks(details),
            Text(self._money(details)),
            *_series(details),
            *(Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in self._recent),
            *_asks(details),
        )

    def _head(self, details: BuildDetails) -> Text:
        status = "paused" if details.paused and details.status == "running" else details.status
        text = Text(f"{details.build}  ")
        text.append(status, style=STYLES.get(details.status, ""))
        until = details.ended or self._clock()
        elapsed = clock_text(until - details.started) if details.started else ""
        return text.append(f"  {plain(details.phase)}  {elapsed}  {plain(details.title)}")

    def _money(self, details: BuildDetails) -> str:
        spent = details.spent
        text = f"{dollars(spent.cost_micros)} in {spent.calls} calls"
        if spent.unpriced:
            text += f", {spent.unpriced} of unknown cost"
        limits = ", ".join(f"{name} ${usd:g}" for name, usd in self._limits(details))
        return f"{text}; limits: {limits}" if limits else text

    def _limits(self, details: BuildDetails) -> Iterator[tuple[str, float]]:
        """As this machine's configuration has them, and as people raised them."""
        project = self._settings.projects.get(details.project)
        for name in BUDGETS:
            usd = details.raised.get(f"{name}_budget") or (getattr(project.budget, name) if project else None)
            if usd is not None:
                yield name, float(usd)


def clock_text(millis: float) -> str:
    """``1:02:03`` or ``2:03``."""
    minutes, seconds = divmod(max(0, int(millis // 1000)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _tasks(details: BuildDetails) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("task", "status", "attempt", "now", "tests"):
        table.add_column(column, no_wrap=True)
    table.add_column("", overflow="ellipsis", no_wrap=True, ratio=1)
    for task in details.tasks.values():
        attempt = task.attempts[-1] if task.attempts else None
        now = STEPS.get(attempt.phase, attempt.phase) if attempt and task.status == "running" else ""
        tests = task.merge.reason or attempt.reason if attempt else ""
        table.add_row(
            _cell(task.task),
            Text(f"{MARKS.get(task.status, '·')} {plain(task.status)}", style=STYLES.get(task.status, "dim")),
            _cell(f"#{attempt.number}" if attempt else ""),
            _cell(now),
            _cell(tests),
            _cell(task.sentence or task.title),
        )
    return table


def _series(details: BuildDetails) -> Iterator[Text]:
    """The figures of a watch, window by window."""
    for row in chart(details.delivery):
        yield Text(row.text, style=row.style, no_wrap=True, overflow="ellipsis")


def _cell(text: str) -> Text:
    """Not a plain string: rich would read markup in it."""
    return Text(plain(text))


def _asks(details: BuildDetails) -> Iterator[Text]:
    for ask in details.open_asks():
        yield Text(f"waits for you: {plain(ask.sentence)}", style="bold yellow")
        for command in commands(details.build, ask):
            yield Text(f"  {command}", no_wrap=True, overflow="ellipsis")
