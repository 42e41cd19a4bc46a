"""The measurements of a watch as the log and the record of a release hold them: one point a window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One release in one window: ``failed`` of ``asked`` requests; ``p50`` and ``p95`` in milliseconds."""

    asked: int = 0
    failed: int = 0
    p50: float = 0.0
    p95: float = 0.0

    @property
    def share(self) -> float:
        """Of the requests that failed, from 0 to 1; 0 where none was made."""
        return min(1.0, self.failed / self.asked) if self.asked else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One window. ``baseline`` is None where there is no older release."""

    number: int
    verdict: str
    candidate: Figures
    baseline: Figures | None = None
    reason: str = ""


def point_of(raw: Any) -> Point | None:
    """A point as it was written down; None for what is none. What it lacks is 0."""
    if not isinstance(raw, Mapping):
        return None
    candidate, baseline = (raw.get("candidate"), raw.get("baseline")) if "candidate" in raw else _flat(raw)
    return Point(
        number=_whole(raw.get("number")),
        verdict=str(raw.get("verdict", "")),
        reason=str(raw.get("reason", "")),
        candidate=_figures(candidate),
        baseline=_figures(baseline) if isinstance(baseline, Mapping) else None,
    )


def _flat(raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """A watch notes the figures of both side by side; those of a baseline that is not there are 0."""
    names = ("asked", "failed", "p50", "p95")
    baseline = {name: raw.get(f"baseline_{name}") for name in names}
    return {name: raw.get(name) for name in names}, baseline if _whole(baseline["asked"]) else None


def points_of(raw: Any) -> tuple[Point, ...]:
    """The points of a series, by number; a later one of the same number counts."""
    found = [point_of(each) for each in raw] if isinstance(raw, list | tuple) else []
    return in_series(point for point in found if point is not None)


def in_series(points: Iterable[Point]) -> tuple[Point, ...]:
    """Each number once, the last one that was told, in order."""
    return tuple(point for _, point in sorted({point.number: point for point in points}.items()))


def _figures(raw: Any) -> Figures:
    given = raw if isinstance(raw, Mapping) else {}
    return Figures(
        asked=_whole(given.get("asked")),
        failed=_whole(given.get("failed")),
        p50=number_in(given.get("p50")),
        p95=number_in(given.get("p95")),
    )


def _whole(value: Any) -> int:
    return max(0, int(number_in(value)))


def number_in(value: Any) -> float:
    """A number that can be drawn, else 0."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12
    return float(value) if usable else 0.0
