"""What is counted of activities and model calls, and what Temporal's SDK counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from temporalio.exceptions import ApplicationError
from temporalio.runtime import BUFFERED_METRIC_KIND_COUNTER, BUFFERED_METRIC_KIND_GAUGE, BUFFERED_METRIC_KIND_HISTOGRAM
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from adapters.telemetry.activities import MeasuringInterceptor
from adapters.telemetry.calls import WatchedModel
from adapters.telemetry.metrics import Metrics
from adapters.telemetry.sdk import SdkMetrics, measured_runtime
from adapters.telemetry.subject import NOBODY, Subject, current, subject_of, tell_phase
from domain.errors import ProviderRefused, ProviderUnavailable
from domain.money.budget import Payer
from domain.money.usage import Bill, Quote, Usage
from domain.ports.language_model import CallKey, Message, ModelAnswer, ModelRequest, with_bill
from domain.ports.store import Event
from domain.trace.usual.baseline import Anomaly, Usual
from domain.trace.usual.taken import Taken

USED = Usage(input_tokens=120, output_tokens=30, cost_micros=450)
CALL = ModelRequest(
    key=CallKey(saga="build-calc-1-task-mul", step="change", attempt=2),
    model="coder",
    messages=(Message(role="user", content="secret"),),
    schema_name="Change",
    max_output_tokens=10,
    timeout_seconds=1,
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """An argument as activities have them."""

    key: CallKey | None = None
    payer: Payer | None = None
    build: str = ""
    attempt: int = 0
    events: tuple[Event, ...] = ()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(worker="model", models=["coder"])


def figure(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, labels) or 0.0


async def run(metrics: Metrics, body: Callable[[], Coroutine[Any, Any, Any]], request: Any = None) -> Any:
    """One try of an activity, measured."""

    class Body(ActivityInboundInterceptor):
        def __init__(self) -> None:
            """The innermost."""

        async def execute_activity(self, input: ExecuteActivityInput) -> Any:
            return await body()

    measuring = MeasuringInterceptor(metrics).intercept_activity(Body())
    given = ExecuteActivityInput(fn=run, args=[request], executor=None, headers={})
    return await ActivityEnvironment().run(measuring.execute_activity, given)


async def answers() -> str:
    return "done"


async def test_a_try_is_counted_by_how_it_ended(metrics: Metrics) -> None:
    async def fails() -> None:
        raise ApplicationError("refused", type="ProviderRefused")

    async def cancelled() -> None:
        raise asyncio.CancelledError

    assert await run(metrics, answers) == "done"
    with pytest.raises(ApplicationError):
        await run(metrics, fails)
    with pytest.raises(asyncio.CancelledError):
        await run(metrics, cancelled)
    for outcome in ("completed", "failed", "cancelled"):
        name = "mendwork_activity_duration_seconds_count"
        assert figure(metrics, name, activity="unknown", outcome=outcome) == 1
    assert figure(metrics, "mendwork_faults_total", activity="unknown", kind="ProviderRefused") == 1
    assert current.get() is NOBODY


async def test_a_build_that_ended_counts_once_though_its_rows_are_written_twice(metrics: Metrics) -> None:
    rows = [("build.started", {}), ("build.ended", {"status": "succeeded"})]
    events = tuple(
        Event(first_run="r", run="r", sequence=number, build="b", kind=kind, at=1, data=data)
        for number, (kind, data) in enumerate(rows, 1)
    )

    async def new() -> int:
        return 2

    async def known() -> int:
        return 0

    await run(metrics, new, Request(events=events))
    await run(metrics, known, Request(events=events))
    assert figure(metrics, "mendwork_builds_ended_total", status="succeeded") == 1


class Fixed:
    """Answers, or raises what it is given."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error

    async def quote(self, model: str) -> Quote | None:
        return None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if self._error is not None:
            raise self._error
        return ModelAnswer(text="answer", usage=USED)


@pytest.mark.parametrize(
    ("error", "outcome", "tokens"),
    [
        (None, "answered", 120),
        (ProviderUnavailable("away"), "ProviderUnavailable", 0),
        (with_bill(ProviderRefused("no"), Bill(usage=USED)), "ProviderRefused", 120),
        (asyncio.CancelledError(), "Cancelled", 0),
    ],
)
async def test_a_model_call_counts_what_it_was_billed_also_when_it_failed(
    metrics: Metrics, error: BaseException | None, outcome: str, tokens: int
) -> None:
    model = WatchedModel(Fixed(error), names={"coder": "openai/scripted"})
    request = Request(key=CALL.key, payer=Payer(project="calc", build="build-calc-1", task="mul", role="coding"))
    if error is None:
        answer = await run(metrics, lambda: model.complete(CALL), request)
        assert answer == ModelAnswer(text="answer", usage=USED)
    else:
        with pytest.raises(type(error)):
            await run(metrics, lambda: model.complete(CALL), request)
    labels = {"role": "coding", "model": "coder"}
    assert figure(metrics, "mendwork_model_calls_total", **labels, outcome=outcome) == 1
    assert figure(metrics, "mendwork_model_tokens_total", **labels, direction="input") == tokens
    assert figure(metrics, "mendwork_model_cost_microdollars_total", **labels) == (450 if tokens else 0)


async def test_nobody_watches_a_call_outside_an_activity_and_no_label_grows_without_end(metrics: Metrics) -> None:
    model = WatchedModel(Fixed(), names={})
    assert (await model.complete(CALL)).text == "answer"
    for number in range(50):
        asked = Subject(watchers=(metrics.model_call,), role="coding")
        token = current.set(asked)
        await model.complete(ModelRequest(**{**{f: getattr(CALL, f) for f in CALL.__slots__}, "model": f"m{number}"}))
        current.reset(token)
    assert figure(metrics, "mendwork_model_calls_total", role="coding", model="other", outcome="answered") == 50
    assert metrics.exposition().count(b"mendwork_model_calls_total{") == 1


@pytest.mark.parametrize(
    ("given_", "workflow", "told"),
    [
        (Request(build="build-calc-1", attempt=3), "x", ("build-calc-1", "", 3)),
        (Request(key=CALL.key), "", ("build-calc-1", "mul", 2)),
        (Request(payer=Payer(project="p", build="b", task="t")), "", ("b", "t", 0)),
        (None, "build-calc-1-task-mul", ("build-calc-1", "mul", 0)),
        ({"build": 1}, "build-calc-1-release", ("build-calc-1", "", 0)),
        (7, "", ("", "", 0)),
    ],
)
def test_an_argument_of_any_kind_says_what_it_is_about(given_: Any, workflow: str, told: tuple[str, str, int]) -> None:
    subject = subject_of(given_, workflow=workflow)
    assert (subject.build, subject.task, subject.attempt) == told


@dataclass(frozen=True, kw_only=True)
class Named:
    name: str
    kind: Any
    description: str | None = None
    unit: str | None = None


@dataclass(frozen=True, kw_only=True)
class Update:
    metric: Named
    value: float
    attributes: dict[str, str]


class Buffered:
    """Hands over what it was given, once."""

    def __init__(self, updates: list[Update]) -> None:
        self._updates = updates

    def retrieve_updates(self) -> list[Update]:
        updates, self._updates = self._updates, []
        return updates


KINDS = {
    "sdk_count": BUFFERED_METRIC_KIND_COUNTER,
    "sdk_gauge": BUFFERED_METRIC_KIND_GAUGE,
    "sdk_latency": BUFFERED_METRIC_KIND_HISTOGRAM,
}
changes = st.builds(
    lambda name, value, queue: Update(metric=Named(name=name, kind=KINDS[name]), value=value, attributes=queue),
    st.sampled_from(sorted(KINDS)),
    st.integers(0, 1_000) | st.sampled_from([9, 10, 11]),  # 10 is a bound of the SDK's histograms here
    st.sampled_from([{"queue": "a"}, {"queue": 'b"\n'}, {"queue": "a", "type": "x"}]),
)


@given(st.lists(changes, max_size=60))
def test_what_the_sdk_hands_over_bit_by_bit_is_summed_up_and_can_be_read_back(updates: list[Update]) -> None:
    registry = CollectorRegistry()
    figures = SdkMetrics(Buffered(list(updates)))  # type: ignore[arg-type]
    registry.register(figures)
    figures.drain()
    text = generate_latest(registry).decode()
    read = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    for labels in ({"queue": "a"}, {"queue": 'b"\n'}, {"queue": "a", "type": "x"}):
        key = tuple(sorted(labels.items()))
        of = {name: [u.value for u in updates if (u.metric.name, u.attributes) == (name, labels)] for name in KINDS}
        assert read.get(("sdk_count_total", key), 0) == sum(of["sdk_count"])
        assert read.get(("sdk_gauge", key)) == (of["sdk_gauge"][-1] if of["sdk_gauge"] else None)
        assert read.get(("sdk_latency_sum", key), 0) == sum(of["sdk_latency"])
        assert read.get(("sdk_latency_count", key), 0) == len(of["sdk_latency"])
        bucket = ("sdk_latency_bucket", tuple(sorted({**labels, "le": "10.0"}.items())))
        assert read.get(bucket, 0) == sum(value <= 10 for value in of["sdk_latency"])


def test_a_runtimes_own_figures_come_through() -> None:
    runtime, figures = measured_runtime()
    runtime.metric_meter.create_counter("temporal_made_here").add(3, {"queue": "a"})
    registry = CollectorRegistry()
    registry.register(figures)
    labels = {"queue": "a", "service_name": "temporal-core-sdk"}
    assert registry.get_sample_value("temporal_made_here_total", labels) == 3


async def test_phases_are_timed_and_priced_and_what_stands_out_is_counted_by_measure(metrics: Metrics) -> None:
    key = ("r", "r", 1)
    taken = Taken(phase="plan", began=0, ended=90_000, millis=80_000, cost_micros=20_000, key=key)
    unpriced = Taken(phase="tasks", began=0, ended=5, millis=5, cost_micros=None, key=key)
    usual = Usual(count=5, millis=20_000, cost_micros=9_000)

    async def tells() -> None:
        tell_phase(taken, Anomaly(taken=taken, usual=usual, measures=("duration",)))
        tell_phase(unpriced, None)

    await run(metrics, tells)
    tell_phase(taken, None)  # outside of any activity there is nobody to hear it
    assert figure(metrics, "mendwork_phase_duration_seconds_sum", phase="plan") == 80
    assert figure(metrics, "mendwork_phase_duration_seconds_bucket", phase="plan", le="60.0") == 0
    assert figure(metrics, "mendwork_phase_cost_dollars_sum", phase="plan") == 0.02
    assert figure(metrics, "mendwork_phase_duration_seconds_count", phase="tasks") == 1
    assert figure(metrics, "mendwork_phase_cost_dollars_count", phase="tasks") == 0
    assert figure(metrics, "mendwork_phase_anomalies_total", phase="plan", measure="duration") == 1
    assert figure(metrics, "mendwork_phase_anomalies_total", phase="plan", measure="cost") == 0


def test_what_news_is_counted_from_begins_at_zero_so_that_the_first_is_seen() -> None:
    text = generate_latest(Metrics(worker="saga").registry).decode()
    assert 'mendwork_phase_anomalies_total{measure="cost",phase="tasks"} 0.0' in text
    assert 'mendwork_builds_ended_total{status="failed"} 0.0' in text
    assert "mendwork_phase_anomalies_total{" not in generate_latest(Metrics(worker="model").registry).decode()
