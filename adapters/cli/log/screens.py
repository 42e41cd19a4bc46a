"""Where a followed build is shown: a line an event, or a JSON line an event. ``watch`` has a table beside them."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from adapters.cli.lines import line_of
from adapters.cli.session import put, say
from domain.trace.asks import AskDetails
from domain.trace.lines import as_line
from domain.trace.parts import BuildDetails

if TYPE_CHECKING:
    from adapters.cli.release.series import Chart
    from domain.ports.store import Event

ROUNDS_OF_SILENCE = 50
"""Three quarters of a minute, after which a person is told that the build goes on; then ever more rarely."""


class Screen(Protocol):
    """Where a followed build is shown."""

    def show(self, events: Sequence[Event], details: BuildDetails) -> None:
        """What is new, and where the build stands with it; called at every look, also when nothing is new."""
        ...

    def close(self) -> None:
        """Nothing more comes, or somebody else writes to the terminal for a while."""
        ...


class LineScreen:
    """A line an event, for people, on stderr; with a ``chart`` the windows of a watch are a picture, drawn anew."""

    def __init__(self, chart: Chart | None = None) -> None:
        self._quiet = 0
        self._chart = chart

    def show(self, events: Sequence[Event], details: BuildDetails) -> None:
        """See Screen."""
        for event in events:
            if self._chart is None or event.kind != "watch.window":
                self._say(line_of(event))
        if self._chart is not None and any(event.kind == "watch.window" for event in events):
            self._chart.draw(details.delivery)
        self._quiet = 0 if events else self._quiet + 1
        times, rest = divmod(self._quiet, ROUNDS_OF_SILENCE)
        if rest == 0 and times.bit_count() == 1:
            self._say(f"  … {waits_for(details)}" if details.open_asks() else "  … still at it")

    def close(self) -> None:
        """See Screen."""
        if self._chart is not None:
            self._chart.leave()

    def _say(self, line: str | None) -> None:
        if line:
            if self._chart is not None:
                self._chart.leave()
            say(line)


class JsonScreen:
    """A JSON line an event, on stdout."""

    def show(self, events: Sequence[Event], details: BuildDetails) -> None:
        """See Screen."""
        for event in events:
            put(jsonlib.dumps(as_line(event)))

    def close(self) -> None:
        """See Screen."""


def waits_for(details: BuildDetails) -> str:
    """One clause on what is open."""
    asks = details.open_asks()
    return f"waits for {', '.join(map(_named, asks))}" if asks else "waits for nobody"


def _named(ask: AskDetails) -> str:
    what = f"approval of the {ask.about}" if ask.kind == "approval" else f"an answer about {ask.task or ask.about}"
    return f"{what} ({ask.id})"
