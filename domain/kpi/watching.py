"""What starts the watch of a release, and what it ends with."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.kpi.judging import FAIL, GOING_ON, INCONCLUSIVE, MOST_WINDOWS, NO_DATA, PASS, Verdict
from domain.kpi.policy import ASK, EXTEND, ROLL_BACK, WatchPolicy
from domain.kpi.probe import Probe
from domain.kpi.window import Arm, Window

STOPPED = "stopped"
PROMOTE = "promote"
CHOICES = (PROMOTE, ROLL_BACK, EXTEND)
"""What a person may answer who is asked about an undecided watch."""

SERIES = 60
"""How many of the last windows a person is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """``case`` is whose rows of the event log the watch writes; ``candidate`` and ``baseline`` are base URLs on
    loopback ("": there is no baseline). ``heartbeat`` in seconds; a run's history grows to ``history_events``."""

    case: str
    project: str
    release: int
    candidate: str
    baseline: str = ""
    health: Probe = field(default_factory=Probe)
    policy: WatchPolicy = field(default_factory=WatchPolicy)
    heartbeat: float = 5.0
    history_events: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One window of the series that a person is shown; shares from 0 to 1, milliseconds. The baseline's are 0 where
    there is none; ``verdict`` is the one after this window."""

    number: int
    verdict: str
    asked: int
    failed: int
    unmeasured: int = 0
    p50: float = 0.0
    p95: float = 0.0
    baseline_asked: int = 0
    baseline_failed: int = 0
    baseline_p50: float = 0.0
    baseline_p95: float = 0.0
    healthy: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOutcome:
    """``kind`` is "pass" (the release stays) or why it goes back: "fail", "inconclusive" or "no data" as the figures
    say, or "stopped" when a person wants it back. ``verdict`` is what the figures said last: a person may promote what
    they leave open. ``by`` is that person, "" when the figures or the project's policy decided. ``series`` are the last
    windows, at most 60."""

    kind: str
    reason: str
    by: str = ""
    verdict: str = ""
    windows: int = 0
    series: tuple[Point, ...] = ()


@dataclass(slots=True, kw_only=True)
class Watching:
    """What a watch carries into its next run. ``number`` is the last window's, ``until`` the one that ends the watch,
    ``asked`` whether a person is being asked, ``extended`` whether one has just given it more windows; ``ended`` is the
    outcome's kind ("": it goes on) and ``by`` who chose it."""

    windows: list[Window] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    verdict: Verdict = field(default_factory=lambda: Verdict(kind=GOING_ON, reason="0 windows"))
    number: int = 0
    until: int = 0
    asked: bool = False
    extended: bool = False
    ended: str = ""
    by: str = ""
    reason: str = ""

    def add(self, window: Window, verdict: Verdict) -> None:
        """Keep what is still needed of it."""
        self.number, self.verdict = window.number, verdict
        self.windows = [*self.windows, window][-MOST_WINDOWS:]
        self.points = [*self.points, point_of(window, verdict.kind)][-SERIES:]

    def end(self, kind: str, reason: str, *, by: str = "") -> None:
        """The first end counts."""
        if not self.ended:
            self.ended, self.reason, self.by = kind, reason, by

    @property
    def outcome(self) -> WatchOutcome:
        """What the watch ends with."""
        return WatchOutcome(
            kind=self.ended,
            reason=self.reason,
            by=self.by,
            verdict=self.verdict.kind,
            windows=self.number,
            series=tuple(self.points),
        )


def unmeasured(number: int, policy: WatchPolicy, *, baseline: bool) -> Window:
    """A window that nobody could measure: it says nothing of either release."""
    arm = Arm(asked=0, failed=0, unmeasured=max(1, round(policy.rate * policy.window)))
    return Window(number=number, seconds=policy.window, candidate=arm, baseline=arm if baseline else None)


def point_of(window: Window, verdict: str) -> Point:
    """A window as the series shows it."""
    mine, theirs = window.candidate, window.baseline or Arm(asked=0, failed=0)
    return Point(
        number=window.number,
        verdict=verdict,
        asked=mine.asked,
        failed=mine.failed,
        unmeasured=mine.unmeasured + theirs.unmeasured,
        p50=mine.p50,
        p95=mine.p95,
        baseline_asked=theirs.asked,
        baseline_failed=theirs.failed,
        baseline_p50=theirs.p50,
        baseline_p95=theirs.p95,
        healthy=mine.healthy,
    )


def what_next(verdict: Verdict, policy: WatchPolicy, *, number: int, until: int) -> str:
    """After window ``number`` of a watch that goes on until window ``until``: "promote", "roll back", "ask", "extend",
    or "" while nothing is to be decided."""
    if verdict.kind == PASS:
        return PROMOTE if number >= until else ""
    if verdict.kind == FAIL:
        return ROLL_BACK
    if number < until or verdict.kind not in (INCONCLUSIVE, NO_DATA):
        return ""
    chosen = policy.on_inconclusive if verdict.kind == INCONCLUSIVE else policy.on_no_data
    if chosen == EXTEND:
        return EXTEND if number < policy.windows + policy.extensions else ASK
    return chosen if chosen in (ASK, ROLL_BACK) else ASK


def chart_of(series: tuple[Point, ...], verdict: Verdict) -> str:
    """The last windows as a Markdown table; without slashes, which some renderers take for fractions."""
    head = "| window | failed | baseline | p95 ms | baseline | verdict |\n|---|---|---|---|---|---|\n"
    rows = "".join(
        f"| {p.number} | {p.failed} of {p.asked} | {p.baseline_failed} of {p.baseline_asked} | {p.p95:.0f} | "
        f"{p.baseline_p95:.0f} | {p.verdict} |\n"
        for p in series[-10:]
    )
    return f"**{verdict.kind}**: {verdict.reason}\n\n{head}{rows}"
