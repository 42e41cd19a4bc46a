"""Temporal's own figures, which its SDK hands over one change at a time, summed up for Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from temporalio.runtime import (
    BUFFERED_METRIC_KIND_COUNTER,
    BUFFERED_METRIC_KIND_GAUGE,
    MetricBuffer,
    MetricBufferDurationFormat,
    Runtime,
    TelemetryConfig,
)

BUFFER = 100_000
"""Changes that may wait for ``drain``: a busy worker makes a few hundred a second."""
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Spread:
    """A histogram of one set of labels; the last count is of what is above every bound."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    total: float = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(_BOUNDS, value)] += 1
        self.total += value

    def buckets(self) -> Iterator[tuple[str, float]]:
        seen = 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self.counts, strict=True):
            seen += count
            yield bound, seen


@dataclass(slots=True)
class _Figure:
    """One metric: numbers by labels, or spreads."""

    kind: Any
    about: str
    values: dict[Labels, float] = field(default_factory=dict)
    spreads: dict[Labels, _Spread] = field(default_factory=dict)

    def take(self, labels: Labels, value: float) -> None:
        if self.kind == BUFFERED_METRIC_KIND_COUNTER:
            self.values[labels] = self.values.get(labels, 0) + value
        elif self.kind == BUFFERED_METRIC_KIND_GAUGE:
            self.values[labels] = value
        else:
            self.spreads.setdefault(labels, _Spread()).add(value)


class SdkMetrics(Collector):
    """Registered with a registry, it shows what was drained so far. Durations are seconds."""

    def __init__(self, buffer: MetricBuffer) -> None:
        self._buffer = buffer
        self._figures: dict[str, _Figure] = {}
        self._lock = threading.Lock()  # a scrape and the regular drain may meet

    def drain(self) -> None:
        """Take what has come up; to be called regularly, for the buffer is not endless."""
        with self._lock:
            for update in self._buffer.retrieve_updates():
                figure = self._figures.get(update.metric.name)
                if figure is None:
                    figure = _Figure(update.metric.kind, update.metric.description or "")
                    self._figures[update.metric.name] = figure
                figure.take(tuple(sorted((key, str(value)) for key, value in update.attributes.items())), update.value)

    def describe(self) -> Iterable[Metric]:
        """Nothing: what there will be is known only when it comes."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Called for each scrape."""
        self.drain()
        with self._lock:
            return [_family(name, figure) for name, figure in sorted(self._figures.items())]


def _family(name: str, figure: _Figure) -> Metric:
    """Samples of one metric may have different labels here: the SDK has no fixed set."""
    about = figure.about or "Of Temporal's SDK"
    if figure.kind == BUFFERED_METRIC_KIND_COUNTER:
        counter = CounterMetricFamily(name, about)
        for labels, value in figure.values.items():
            counter.add_sample(f"{counter.name}_total", dict(labels), value)
        return counter
    if figure.kind == BUFFERED_METRIC_KIND_GAUGE:
        gauge = GaugeMetricFamily(name, about)
        for labels, value in figure.values.items():
            gauge.add_sample(name, dict(labels), value)
        return gauge
    histogram = HistogramMetricFamily(name, about)
    for labels, spread in figure.spreads.items():
        for bound, seen in spread.buckets():
            histogram.add_sample(f"{name}_bucket", {**dict(labels), "le": bound}, seen)
        histogram.add_sample(f"{name}_count", dict(labels), sum(spread.counts))
        histogram.add_sample(f"{name}_sum", dict(labels), spread.total)
    return histogram


def measured_runtime() -> tuple[Runtime, SdkMetrics]:
    """A runtime for clients and workers whose figures the second value shows."""
    buffer = MetricBuffer(BUFFER, MetricBufferDurationFormat.SECONDS)
    return Runtime(telemetry=TelemetryConfig(metrics=buffer)), SdkMetrics(buffer)
