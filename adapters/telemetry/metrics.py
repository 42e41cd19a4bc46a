"""Our own figures, in a registry of their own. No label has values without bound: no build, no task, no person."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from itertools import product

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from adapters.telemetry.subject import Calling, Ended, Outcome
from domain.trace.usual.baseline import MEASURES, Anomaly
from domain.trace.usual.taken import FINISHED, PHASES, Taken

_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1_800.0)
_PHASE_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0)
_PHASE_DOLLARS = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0)
_OTHER = "other"


class Metrics:
    """What one worker process counts. ``models`` are the names of the configuration: another is counted as "other"."""

    def __init__(self, *, worker: str, models: Collection[str] = ()) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._models = frozenset(models)
        ProcessCollector(registry=self.registry)
        Info("mendwork_worker", "Which class of worker this is", registry=self.registry).info({"worker": worker})
        labels = ("activity", "outcome")
        self._activities = Histogram(
            "mendwork_activity_duration_seconds",
            "Tries of activities, by how they ended: completed, failed or cancelled",
            labels,
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._faults = self._counter("mendwork_faults", "Tries that failed, by class of error", "activity", "kind")
        self._builds = self._counter("mendwork_builds_ended", "Builds that ended", "status")
        called = ("role", "model")
        self._calls = self._counter("mendwork_model_calls", "Calls that reached for a provider", *called, "outcome")
        self._tokens = self._counter("mendwork_model_tokens", "As the provider counts them", *called, "direction")
        self._micros = self._counter("mendwork_model_cost_microdollars", "Millionths of a US dollar", *called)
        self._lost = self._counter("mendwork_spans_lost", "Spans that no collector took")
        self._lasted = self._histogram("mendwork_phase_duration_seconds", "Phases, without waits for people")
        self._cost = self._histogram("mendwork_phase_cost_dollars", "Phases whose cost is known", _PHASE_DOLLARS)
        anomalies = ("mendwork_phase_anomalies", "Phases that took three times what is usual")
        self._anomalies = self._counter(*anomalies, "phase", "measure")
        if worker == "saga":
            self._begin_at_zero()

    def activity_ended(self, name: str, outcome: str, *, seconds: float, fault: str = "") -> None:
        """A try of the activity ``name`` ended; ``fault`` is the class of its error."""
        self._activities.labels(name, outcome).observe(seconds)
        if fault:
            self._faults.labels(name, fault).inc()

    def build_ended(self, status: str) -> None:
        """A build's last row was written, for the first time."""
        self._builds.labels(status).inc()

    def phase_ended(self, taken: Taken, anomaly: Anomaly | None) -> None:
        """A ``PhaseEnded``."""
        self._lasted.labels(taken.phase).observe(taken.millis / 1_000)
        if taken.cost_micros is not None:
            self._cost.labels(taken.phase).observe(taken.cost_micros / 1_000_000)
        for measure in anomaly.measures if anomaly else ():
            self._anomalies.labels(taken.phase, measure).inc()

    def spans_lost(self, number: int) -> None:
        """So many were not taken."""
        self._lost.inc(number)

    def model_call(self, call: Calling) -> Ended:
        """A ``Watcher``."""
        labels = (call.role or _OTHER, call.model if call.model in self._models else _OTHER)

        def ended(outcome: Outcome) -> None:
            self._calls.labels(*labels, outcome.fault or "answered").inc()
            if outcome.usage is not None:
                self._tokens.labels(*labels, "input").inc(max(0, outcome.usage.input_tokens))
                self._tokens.labels(*labels, "output").inc(max(0, outcome.usage.output_tokens))
                self._micros.labels(*labels).inc(max(0, outcome.usage.cost_micros or 0))

        return ended

    def exposition(self) -> bytes:
        """All of it in Prometheus's text format."""
        return generate_latest(self.registry)

    def _begin_at_zero(self) -> None:
        """Prometheus sees no increase in a counter whose first sample is 1, and the first one is the news."""
        for status in (*FINISHED, "failed", "aborted", "escalated", "planned"):
            self._builds.labels(status)
        for phase, measure in product(PHASES, MEASURES):
            self._anomalies.labels(phase, measure)

    def _histogram(self, name: str, about: str, buckets: Sequence[float] = _PHASE_SECONDS) -> Histogram:
        return Histogram(name, about, ("phase",), buckets=buckets, registry=self.registry)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(name, about, labels, registry=self.registry)


class Stopwatch:
    """Seconds since it was made."""

    __slots__ = ("_born",)

    def __init__(self) -> None:
        self._born = time.monotonic()

    @property
    def seconds(self) -> float:
        """So far."""
        return time.monotonic() - self._born
