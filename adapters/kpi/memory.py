"""Load on services that are only described: the reference of what the port means, and for tests. It takes no time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.kpi.orders import (
    ANSWERED,
    CONTENT,
    DOWN_AFTER,
    REFUSED,
    RESET,
    STATUS,
    TIMEOUT,
    UNMEASURED,
    arm_of,
    checked,
    requests_of,
)
from domain.kpi.probe import Probe
from domain.kpi.window import Arm, Window
from domain.ports.load import LoadOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How a service answers: ``status`` and ``body`` after ``ms``, or not at all: ``manner`` is "", "refused", "reset"
    or "timeout". Every ``wrong_every``-th request gets a 500 (0: none). ``health`` are the statuses of its first health
    checks, later ones are answered as requests are; ``unmeasured`` says that nobody could ask it."""

    status: int = 200
    body: str = ""
    ms: float = 1.0
    manner: str = ""
    wrong_every: int = 0
    health: tuple[int, ...] = ()
    unmeasured: bool = False


class MemoryLoad:
    """``domain.ports.load.Load`` over services by their base URL; an address that is not there refuses."""

    def __init__(self, services: Mapping[str, Service] | None = None) -> None:
        self.services = dict(services or {})

    async def measure(self, order: LoadOrder) -> Window:
        checked(order)
        baseline = self._arm(order, order.baseline) if order.baseline else None
        candidate = self._arm(order, order.candidate)
        return Window(number=order.number, seconds=order.seconds, candidate=candidate, baseline=baseline)

    def _arm(self, order: LoadOrder, url: str) -> Arm:
        service = self.services.get(url, Service(manner=REFUSED))
        count = requests_of(order)
        if service.unmeasured:
            return arm_of([UNMEASURED] * count, [], healthy=True)
        slow = service.ms > order.timeout * 1000
        results = [_result(service, order.probes[i % len(order.probes)], number=i + 1, slow=slow) for i in range(count)]
        answered = [] if slow else [service.ms for result in results if result in ANSWERED]
        return arm_of(results, answered, healthy=_healthy(service, order.health, slow=slow))


def _result(service: Service, probe: Probe, *, number: int, slow: bool) -> str:
    if service.manner in (REFUSED, RESET, TIMEOUT) or slow:
        return service.manner or TIMEOUT
    wrong = service.wrong_every and number % service.wrong_every == 0
    if (500 if wrong else service.status) != probe.status:
        return STATUS
    return "" if probe.contains in service.body else CONTENT


def _healthy(service: Service, probe: Probe, *, slow: bool) -> bool:
    first = [status == probe.status for status in service.health]
    later = _result(service, probe, number=1, slow=slow) == ""
    looks = "".join("+" if good else "-" for good in [*first, *[later] * DOWN_AFTER])
    return "-" * DOWN_AFTER not in looks


def open_memory() -> MemoryLoad:
    """Nothing runs yet: every address refuses."""
    return MemoryLoad()
