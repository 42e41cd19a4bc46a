"""The figures of a watch as a picture for a terminal: candidate against baseline, a row a window."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from domain.trace.delivery.series import Figures, Point
from domain.trace.delivery.told import DeliveryDetails

BAR = 16
"""Characters of the longest bar."""
MOST_ROWS = 20
EIGHTHS = " ▏▎▍▌▋▊▉█"
STYLES = {"pass": "green", "fail": "red", "inconclusive": "yellow", "no data": "yellow"}
_CODES = {"green": "\033[32m", "red": "\033[31m", "yellow": "\033[33m", "bold": "\033[1m", "dim": "\033[2m"}
_PLAIN = "\033[0m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line; ``style`` is a colour's name, bold, dim, or "" for none."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """What traffic did: it went to ``switched``, and back to ``back`` (0: the site was closed; None: it did not)."""

    switched: int = 0
    back: int | None = None
    promoted: bool = False


def moments_of(told: DeliveryDetails) -> Moments:
    """As the log tells them."""
    switched = told.release if told.switched else 0
    return Moments(switched=switched, back=told.rolled_back_to, promoted=told.status == "promoted")


def chart(told: DeliveryDetails) -> tuple[Row, ...]:
    """The picture of a delivery that is followed; nothing before its first window."""
    return tuple(drawn(told.points, moments_of(told))) if told.points else ()


def drawn(points: Sequence[Point], moments: Moments) -> Iterator[Row]:
    """The picture; of a long watch its last windows. Printable whatever the verdicts say."""
    shown = points[-MOST_ROWS:]
    arms = [arm for point in shown for arm in (point.candidate, point.baseline) if arm is not None]
    slowest = max((arm.p95 for arm in arms), default=0.0) or 1.0
    worst = max((arm.share for arm in arms), default=0.0) or 0.01
    yield Row(text=_line("window", "verdict", "errors: new | old", "p95: new | old"), style="dim")
    if moments.switched:
        yield Row(text=f"  ── traffic goes to release {moments.switched} ──", style="bold")
    if len(points) > len(shown):
        yield Row(text=f"  … {len(points) - len(shown)} windows before", style="dim")
    for point in shown:
        yield _row(point, worst=worst, slowest=slowest)
    if moments.back is not None:
        where = f"goes back to release {moments.back}" if moments.back else "ends: the site is closed, as before"
        yield Row(text=f"  ── traffic {where} ──", style="bold")
    elif moments.promoted:
        yield Row(text="  ── promoted ──", style="bold")


def _row(point: Point, *, worst: float, slowest: float) -> Row:
    new, old = point.candidate, point.baseline
    errors = f"{_bar(new.share / worst)} {_share(new)} | {_share(old)}"
    slow = f"{_bar(new.p95 / slowest)} {_p95(new)} | {_p95(old)}"
    verdict = "".join(c if c.isprintable() else " " for c in point.verdict)[:12]
    return Row(text=_line(f"{point.number}", verdict, errors, slow), style=STYLES.get(point.verdict, ""))


def _line(window: str, verdict: str, errors: str, slow: str) -> str:
    return f"  {window:>6}  {verdict:<12}  {errors:<{BAR + 18}}  {slow}".rstrip()


def _bar(share: float) -> str:
    eighths = round(max(0.0, min(1.0, share)) * BAR * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + EIGHTHS[rest].strip()).ljust(BAR)


def _share(arm: Figures | None) -> str:
    return "     –" if arm is None or not arm.asked else f"{arm.share * 100:5.1f}%"


def _p95(arm: Figures | None) -> str:
    return "     –" if arm is None or not arm.asked else f"{arm.p95:4.0f} ms"


def coloured(row: Row, *, colours: bool) -> str:
    """The row for a terminal; as it is where no colours are wanted."""
    code = _CODES.get(row.style, "") if colours else ""
    return f"{code}{row.text}{_PLAIN}" if code else row.text


class Chart:
    """The picture on a terminal, drawn anew in its place until something else is written below it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._height = 0

    def draw(self, told: DeliveryDetails) -> None:
        """What is known now; over the last picture where nothing came after it."""
        size = shutil.get_terminal_size()  # a line that wraps, or scrolled away, would not be where we go up to
        colours = "NO_COLOR" not in os.environ
        rows = [Row(text=row.text[: size.columns - 1], style=row.style) for row in chart(told)][1 - size.lines :]
        up = f"\033[{self._height}A\r\033[J" if self._height else ""
        self._stream.write(up + "".join(f"{coloured(row, colours=colours)}\n" for row in rows))
        self._stream.flush()
        self._height = len(rows)

    def leave(self) -> None:
        """Something else is written now: the next picture begins below it."""
        self._height = 0
