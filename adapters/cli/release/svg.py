"""The figures of a watch as SVG: candidate against baseline over the windows, with what traffic did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from adapters.cli.release.series import Moments
from domain.trace.delivery.series import Figures, Point

WIDTH, HEIGHT = 720, 220
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 28, 36
TICKS = 4
MOST_LABELS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is drawn: ``value`` of an arm in ``unit``; the axis reaches at least to ``least``."""

    title: str
    value: Callable[[Figures], float]
    unit: str
    least: float


ERRORS = Measure(title="errors", value=lambda arm: arm.share * 100, unit="%", least=1.0)
SLOWNESS = Measure(title="p95", value=lambda arm: arm.p95, unit="ms", least=10.0)


def picture(points: Sequence[Point], measure: Measure, moments: Moments) -> str:
    """One SVG element; "" where nothing was measured. Text from the log is escaped."""
    if not points:
        return ""
    arms = [arm for point in points for arm in (point.candidate, point.baseline) if arm is not None]
    top = max([measure.least, *map(measure.value, arms)]) * 1.1
    parts = [*_axes(points, measure, top), *_moments(points, moments)]
    baseline = [
        (at, point.baseline) for at, point in enumerate(points) if point.baseline is not None and point.baseline.asked
    ]
    candidate = [(at, point.candidate) for at, point in enumerate(points) if point.candidate.asked]
    for name, drawn in (("baseline", baseline), ("candidate", candidate)):
        spots = [(_x(at, len(points)), _y(measure.value(arm), top)) for at, arm in drawn]
        parts.append(_curve(name, spots))
    label = escape(f"{measure.title} in {measure.unit}, candidate against baseline")
    body = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">\n{body}\n</svg>'


def _x(at: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (at + 0.5) / count


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(value, top) / top)


def _axes(points: Sequence[Point], measure: Measure, top: float) -> Iterator[str]:
    yield _text(LEFT, TOP - 12, f"{measure.title} ({measure.unit})", css="title")
    for tick in range(TICKS + 1):
        value = top * tick / TICKS
        y = _y(value, top)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        yield _text(LEFT - 6, y + 4, f"{value:.3g}", css="end")
    every = -(-len(points) // MOST_LABELS)
    for at, point in enumerate(points):
        if at % every == 0:
            yield _text(_x(at, len(points)), HEIGHT - BOTTOM + 16, str(point.number), css="middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "window", css="middle")


def _moments(points: Sequence[Point], moments: Moments) -> Iterator[str]:
    """Traffic goes to the release before the first window, and back after the last."""
    marks = []
    if moments.switched:
        marks.append((float(LEFT), f"traffic to release {moments.switched}", "switch", "start"))
    end = float(WIDTH - RIGHT)
    if moments.back is not None:
        where = f"back to release {moments.back}" if moments.back else "site closed"
        marks.append((end, where, "back", "end"))
    elif moments.promoted:
        marks.append((end, "promoted", "promoted", "end"))
    for x, label, css, anchor in marks:
        yield f'<line class="mark {css}" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"/>'
        yield _text(x + (4 if anchor == "start" else -4), TOP + 10, label, css=anchor)


def _curve(name: str, spots: Sequence[tuple[float, float]]) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    dots = "".join(f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in spots)
    return f'<polyline class="{name}" points="{path}"/>{dots}'


def _text(x: float, y: float, text: str, *, css: str) -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
