"""What the measured windows of a watch say: one pure function.

Hard guard rails come first and act at once. Then, at each look, an exact test of the candidate's failures against the
baseline's over all windows so far. A watch that is over passes only when it was measured well enough and the candidate
answers well enough by itself; anything else is inconclusive, or no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from domain.kpi.exact import more_failures
from domain.kpi.policy import WatchPolicy
from domain.kpi.window import Arm, Window

PASS, FAIL, INCONCLUSIVE, NO_DATA, GOING_ON = "pass", "fail", "inconclusive", "no data", "going on"

ENOUGH_WINDOWS = 0.75
"""A pass needs this share of the watch's windows to be measured."""
FEW_WINDOWS = 0.5
"""With less than this share the watch has no data, whatever the rest says."""
MOST_WINDOWS = 400
"""A longer watch is judged by its last windows."""
HOPELESS = 0.95
"""Both services fail this often: it is what is asked that is wrong, or what both need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``kind`` is one of the five above and ``reason`` a sentence with the figures it rests on. ``by`` names the rule
    of a fail: "health", "errors", "slowdown", "comparison" or "share"; else "". ``chance`` is the test's p-value (1.0:
    nothing was compared)."""

    kind: str
    reason: str
    by: str = ""
    chance: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    asked: int
    failed: int

    @property
    def share(self) -> float:
        return self.failed / self.asked if self.asked else 0.0

    def __str__(self) -> str:
        return f"{self.failed} of {self.asked} ({self.share:.1%})"


def judge(windows: Sequence[Window], policy: WatchPolicy) -> Verdict:
    """The verdict on all ``windows`` so far, in the order of their numbers; older ones may have been dropped."""
    if not windows:
        return Verdict(kind=GOING_ON, reason=f"0 of {policy.windows} windows")
    measured = [window for window in windows if _measured(window)]
    chance = _chance(measured, policy)
    failing = _rail(windows, measured, policy) or _worse(measured, policy, chance, look=windows[-1].number)
    if failing:
        return failing
    if windows[-1].number < policy.windows:
        reason = f"{windows[-1].number} of {policy.windows} windows; {_figures(measured)}"
        return Verdict(kind=GOING_ON, reason=reason, chance=chance)
    return _at_the_end(windows, policy, chance)


def level_at(look: int, policy: WatchPolicy) -> float:
    """The test's level at this look: fixed over the watch and its extensions. A watch that waits for a person looks
    on for as long as it takes: from there on the level falls with the square, so that the sum stays bounded."""
    beyond = look - policy.windows - policy.extensions
    return policy.level if beyond <= 0 else policy.level / (beyond + 1) ** 2


def _measured(window: Window) -> bool:
    """Most of what was to be asked was asked, of each release."""
    arms = [window.candidate] if window.baseline is None else [window.candidate, window.baseline]
    return all(arm.asked > arm.unmeasured for arm in arms)


def _rail(windows: Sequence[Window], measured: Sequence[Window], policy: WatchPolicy) -> Verdict | None:
    last = windows[-1]
    if not last.candidate.healthy:
        also = "" if last.baseline is None or last.baseline.healthy else ", and so is the baseline's"
        return Verdict(kind=FAIL, reason=f"the health check is down in window {last.number}{also}", by="health")
    failing = _run(measured, lambda window: _errs(window, policy), policy)
    if failing:
        reason = f"{_of(w.candidate for w in failing)} failed in {len(failing)} windows in a row{_most(failing)}; "
        return Verdict(kind=FAIL, reason=reason + f"at most {policy.max_errors:.1%} may", by="errors")
    slow = _run(measured, lambda window: _is_slow(window, policy), policy)
    if slow and slow[-1].baseline:
        reason = f"p95 {slow[-1].candidate.p95:.0f} ms against the baseline's {slow[-1].baseline.p95:.0f} ms"
        reason += f", more than {policy.max_slowdown:g} times in {len(slow)} windows in a row"
        return Verdict(kind=FAIL, reason=reason, by="slowdown")
    return None


def _run(measured: Sequence[Window], breach: Callable[[Window], bool], policy: WatchPolicy) -> list[Window]:
    """The newest windows in a row that breach, when there are enough of them and they hold enough requests."""
    run: list[Window] = []
    for window in reversed(measured):
        if not breach(window):
            break
        run.insert(0, window)
    few = any(sum(arm.asked for arm in arms) < policy.min_asked for arms in _arms(run))
    return run if len(run) >= max(1, policy.guard_windows) and not few else []


def _errs(window: Window, policy: WatchPolicy) -> bool:
    """A baseline that fails as well says that it is not the release."""
    mine = _of([window.candidate])
    theirs = _of([window.baseline]) if window.baseline else None
    return mine.share > policy.max_errors and (theirs is None or theirs.share <= policy.max_errors)


def _is_slow(window: Window, policy: WatchPolicy) -> bool:
    if window.baseline is None or not window.baseline.p95:
        return False
    mine, theirs = window.candidate.p95, window.baseline.p95
    return mine > policy.max_slowdown * theirs and mine > theirs + policy.slow_floor_ms


def _chance(measured: Sequence[Window], policy: WatchPolicy) -> float:
    """The p-value of the candidate's failures, over the windows in which both were asked."""
    mine, theirs = _compared(measured)
    if min(mine.asked, theirs.asked) < policy.min_asked:
        return 1.0
    return more_failures(mine.failed, mine.asked, than=(theirs.failed, theirs.asked))


def _worse(measured: Sequence[Window], policy: WatchPolicy, chance: float, *, look: int) -> Verdict | None:
    level = level_at(look, policy)
    if chance >= level:
        return None
    mine, theirs = _compared(measured)
    reason = f"{mine} failed against the baseline's {theirs}; by chance: {chance:.1g}, the level is {level:.1g}"
    return Verdict(kind=FAIL, reason=reason, by="comparison", chance=chance)


def _at_the_end(windows: Sequence[Window], policy: WatchPolicy, chance: float) -> Verdict:
    wanted = min(policy.windows, MOST_WINDOWS)
    measured = [window for window in windows if window.number > windows[-1].number - wanted and _measured(window)]
    share = len(measured) / wanted
    mine, theirs = _of(w.candidate for w in measured), _of(w.baseline for w in measured if w.baseline)
    known = f"{len(measured)} of {wanted} windows could be measured; {_figures(measured)}"
    if share < FEW_WINDOWS or not mine.asked:
        return Verdict(kind=NO_DATA, reason=known, chance=chance)
    if theirs.asked and min(mine.share, theirs.share) >= HOPELESS:
        reason = f"nearly every request to both failed, so what is asked is probably wrong; {_figures(measured)}"
        return Verdict(kind=NO_DATA, reason=reason + _most(measured), chance=chance)
    few = mine.asked < policy.min_asked or 0 < theirs.asked < policy.min_asked
    if share < ENOUGH_WINDOWS or few or not _measured(windows[-1]):
        return Verdict(kind=INCONCLUSIVE, reason=f"{known}; at least {policy.min_asked} are needed", chance=chance)
    if _errs(windows[-1], policy) or _is_slow(windows[-1], policy):
        reason = f"the last window, {windows[-1].number}, is over a guard rail; {_figures(measured)}"
        return Verdict(kind=INCONCLUSIVE, reason=reason, chance=chance)
    if mine.share > policy.max_errors and not theirs.asked:
        reason = f"{mine} failed, at most {policy.max_errors:.1%} may, and there is no baseline"
        return Verdict(kind=FAIL, reason=reason + _most(measured), by="share", chance=chance)
    if mine.share > policy.max_errors:
        reason = f"too many requests fail, and the baseline's as well: {_figures(measured)}"
        return Verdict(kind=INCONCLUSIVE, reason=reason + _most(measured), chance=chance)
    return Verdict(kind=PASS, reason=_figures(measured), chance=chance)


def _compared(measured: Sequence[Window]) -> tuple[_Sum, _Sum]:
    both = [(window.candidate, window.baseline) for window in measured if window.baseline]
    return _of(mine for mine, _ in both), _of(theirs for _, theirs in both)


def _arms(windows: Sequence[Window]) -> list[list[Arm]]:
    """The candidate's, and the baseline's where there is one."""
    theirs = [window.baseline for window in windows if window.baseline]
    return [[window.candidate for window in windows], *([theirs] if theirs else [])]


def _of(arms: Iterable[Arm]) -> _Sum:
    listed = list(arms)
    return _Sum(asked=sum(arm.asked for arm in listed), failed=sum(arm.failed for arm in listed))


def _figures(measured: Sequence[Window]) -> str:
    text = f"{_of(w.candidate for w in measured)} failed"
    theirs = _of(w.baseline for w in measured if w.baseline)
    return text + (f", of the baseline's {theirs}" if theirs.asked else "; there is no baseline to compare with")


def _most(windows: Sequence[Window]) -> str:
    """The kinds of failure, the most frequent first, whatever the order in which they were counted."""
    counts: dict[str, int] = {}
    for window in windows:
        for kind, count in window.candidate.faults.items():
            counts[kind] = counts.get(kind, 0) + count
    ranked = sorted((kind for kind in counts if counts[kind]), key=lambda kind: (-counts[kind], kind))[:3]
    return f" ({', '.join(f'{kind} {counts[kind]}' for kind in ranked)})" if ranked else ""
