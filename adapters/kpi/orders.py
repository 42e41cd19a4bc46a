"""What every load checks before it asks, and how it counts what came back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from math import ceil, isfinite
from urllib.parse import urlsplit

from domain.errors import InvalidInput
from domain.kpi.window import Arm
from domain.ports.load import LoadOrder

REFUSED, RESET, TIMEOUT, STATUS, CONTENT = "refused", "reset", "timeout", "status", "content"
"""The service's failures, as ``Arm.faults`` counts them."""
UNMEASURED = "unmeasured"
ANSWERED = ("", STATUS, CONTENT)
"""Good, or at least an answer: its time counts."""

DOWN_AFTER = 3
"""So many health checks in a row have to be missed: a single one is no verdict."""


def checked(order: LoadOrder) -> LoadOrder:
    """The order itself. Raises InvalidInput for an address off loopback, a path that is none, or senseless numbers."""
    for url in (order.candidate, *([order.baseline] if order.baseline else [])):
        if not _is_loopback(url):
            raise InvalidInput(f"only http addresses on loopback are measured, not {url[:100]!r}")
    for probe in (order.health, *order.probes):
        if not probe.path.startswith("/") or not probe.path.isprintable() or " " in probe.path:
            raise InvalidInput(f"a probe's path has to begin with '/' and hold no spaces, not {probe.path[:100]!r}")
    numbers = {"rate": order.rate, "seconds": order.seconds, "timeout": order.timeout}
    for name, number in numbers.items():
        if not (isfinite(number) and number > 0):
            raise InvalidInput(f"{name} has to be more than 0, not {number}")
    if not order.probes:
        raise InvalidInput("there is no probe to ask with")
    return order


def requests_of(order: LoadOrder) -> int:
    """How many requests each release gets; at least one."""
    return max(1, round(order.rate * order.seconds))


def arm_of(results: Sequence[str], latencies: Sequence[float], *, healthy: bool) -> Arm:
    """``results`` holds "" for a good answer, else a kind from above; ``latencies`` are ms of everything answered."""
    counts = Counter(results)
    unmeasured = counts.pop(UNMEASURED, 0)
    good = counts.pop("", 0)
    failed = sum(counts.values())
    return Arm(
        asked=good + failed,
        failed=failed,
        unmeasured=unmeasured,
        p50=percentile(latencies, 0.50),
        p95=percentile(latencies, 0.95),
        faults=dict(sorted(counts.items())),
        healthy=healthy,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """By nearest rank; 0.0 of nothing."""
    return round(sorted(values)[max(0, ceil(share * len(values)) - 1)], 3) if values else 0.0


def _is_loopback(url: str) -> bool:
    try:
        parts = urlsplit(url)
        if parts.scheme != "http" or "@" in parts.netloc or parts.query or parts.fragment or parts.path.strip("/"):
            return False
        return parts.port != 0 and (parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback)
    except ValueError:
        return False
