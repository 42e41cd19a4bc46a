"""Windows for tests of the judge: written down, or drawn from services whose share of failures is known."""

from __future__ import annotations

import random
from collections.abc import Iterator

from domain.kpi.judging import GOING_ON, Verdict, judge
from domain.kpi.policy import WatchPolicy
from domain.kpi.window import Arm, Window

POLICY = WatchPolicy()
ASKED = 600  # 20 requests a second for 30 seconds


def arm(failed: int = 0, *, asked: int = ASKED, p95: float = 20.0, unmeasured: int = 0, healthy: bool = True) -> Arm:
    faults = {"status": failed} if failed else {}
    return Arm(asked=asked, failed=failed, unmeasured=unmeasured, p50=p95 / 2, p95=p95, faults=faults, healthy=healthy)


def window(number: int, candidate: Arm | None = None, baseline: Arm | None = None, *, first: bool = False) -> Window:
    """Good unless said otherwise; ``first`` is a first release, without a baseline."""
    other = None if first else baseline or arm()
    return Window(number=number, seconds=30.0, candidate=candidate or arm(), baseline=other)


def watch(*candidates: Arm, baseline: Arm | None = None, first: bool = False) -> list[Window]:
    return [window(n, each, baseline, first=first) for n, each in enumerate(candidates, start=1)]


def lasting(candidate: Arm, *, baseline: Arm | None = None, windows: int = 10, first: bool = False) -> list[Window]:
    return watch(*[candidate] * windows, baseline=baseline, first=first)


def drawn(seed: int, *, candidate: float, baseline: float, windows: int = 10) -> Iterator[Window]:
    """A watch of two services that fail with these chances."""
    source = random.Random(seed)

    def one(chance: float) -> Arm:
        return arm(sum(source.random() < chance for _ in range(ASKED)))

    for number in range(1, windows + 1):
        yield window(number, one(candidate), one(baseline))


def looked_at(windows: Iterator[Window], policy: WatchPolicy = POLICY) -> Verdict:
    """As a watch does: judged at each look, until something is decided or the windows end."""
    seen: list[Window] = []
    verdict = judge(seen, policy)
    for each in windows:
        seen.append(each)
        verdict = judge(seen, policy)
        if verdict.kind != GOING_ON:
            break
    return verdict
