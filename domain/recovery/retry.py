"""When an activity's next try may start."""

from __future__ import annotations

BASE_SECONDS = 1.0
CAP_SECONDS = 60.0
RETRY_AFTER_CAP_SECONDS = 120.0


def next_delay(*, number: int, retry_after: float | None, jitter: float) -> float:
    """Seconds until try ``number`` + 1: exponential from 1 s, at most 60 s; never sooner than the other side asked for.

    ``jitter`` in [0, 1) spreads the delay over its upper half. A Retry-After above two minutes is cut to that: a call
    that has to wait longer is another model's to answer.
    """
    full = min(CAP_SECONDS, BASE_SECONDS * 2.0 ** min(max(number - 1, 0), 10))
    spread = full / 2 + full / 2 * jitter
    return max(spread, min(retry_after or 0.0, RETRY_AFTER_CAP_SECONDS))


def is_last(number: int, *, tries: int) -> bool:
    """Whether try ``number`` (from 1, without those that only waited) was the last of ``tries``; 0 is no bound."""
    return 0 < tries <= number
