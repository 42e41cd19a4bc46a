"""One trace for a saga, whoever started it, however often its history is played again."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from adapters.telemetry.export import SaidOnce, close_provider, open_provider
from adapters.telemetry.tracing import GivenIds, Tracing, root_ids
from tests.adapters.collector import collecting
from tests.workflows.traced import SECRET, Traced, TracedChild, step


@pytest.fixture
def seen() -> Iterator[tuple[TracerProvider, InMemorySpanExporter]]:
    """A provider, and what came out of it."""
    provider, exporter = TracerProvider(id_generator=GivenIds(), shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider, exporter
    provider.shutdown()


@contextlib.asynccontextmanager
async def working(client: Client, provider: TracerProvider, *, cached: int) -> AsyncIterator[str]:
    """A worker that forgets what does not fit into its cache; the queue's name."""
    queue = f"traced-{uuid.uuid4()}"
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Traced, TracedChild],
        activities=[step],
        interceptors=[Tracing(provider)],
        max_cached_workflows=cached,
        max_concurrent_workflow_tasks=max(2, cached),
    ):
        yield queue


def parents(spans: Sequence[ReadableSpan]) -> dict[str, str]:
    """Names by names; a parent that nobody sent is "?"."""
    names = {span.context.span_id: span.name for span in spans if span.context}
    return {span.name: names.get(span.parent.span_id, "?") if span.parent else "" for span in spans}


async def test_two_runs_and_a_child_are_one_trace_though_every_step_is_played_again(
    client: Client, seen: tuple[TracerProvider, InMemorySpanExporter]
) -> None:
    provider, exporter = seen
    name = f"traced-{uuid.uuid4()}"
    async with working(client, provider, cached=0) as queue:
        handle = await client.start_workflow(Traced.run, 1, id=name, task_queue=queue)
        await handle.signal(Traced.hear)
        await handle.result()
    spans = exporter.get_finished_spans()
    first = handle.first_execution_run_id or ""
    trace, root = root_ids(name, first)
    assert {span.context.trace_id for span in spans if span.context} == {trace}
    (top,) = [span for span in spans if span.parent is None]
    assert top.context is not None
    assert (top.name, top.context.span_id) == ("Saga:Traced", root)
    counted = Counter(span.name for span in spans)
    assert counted["RunWorkflow:Traced"] == 2, "one for each run, none for what was played again"
    assert (counted["RunActivity:step"], counted["StartActivity:step"]) == (4, 4)
    assert (counted["RunWorkflow:TracedChild"], counted["HandleSignal:hear"]) == (1, 1)
    assert "?" not in parents(spans).values()
    assert parents(spans)["RunWorkflow:TracedChild"] == "StartChildWorkflow:TracedChild"


async def test_a_failure_says_its_class_and_never_its_text(
    client: Client, seen: tuple[TracerProvider, InMemorySpanExporter]
) -> None:
    provider, exporter = seen
    async with working(client, provider, cached=10) as queue:
        name = f"traced-{uuid.uuid4()}"
        with pytest.raises(WorkflowFailureError):
            await client.execute_workflow(TracedChild.run, "fail", id=name, task_queue=queue)
        handle = await client.start_workflow(Traced.run, 2, id=f"{name}-two", task_queue=queue)
        await handle.result()
    spans = exporter.get_finished_spans()
    kinds = Counter(str((span.attributes or {}).get("error.type", "")) for span in spans)
    assert (kinds["GatesRed"], kinds["Escalated"]) == (1, 1)
    assert [span.name for span in spans if SECRET in span.to_json()] == []
    assert [span.name for span in spans if span.events] == []


@given(st.text(min_size=1), st.uuids())
def test_every_worker_knows_the_numbers_of_a_sagas_trace(name: str, run: uuid.UUID) -> None:
    trace, span = root_ids(name, str(run))
    assert root_ids(name, str(run)) == (trace, span)
    assert 0 < trace < 2**128
    assert 0 < span < 2**64
    assert root_ids(name, f"{run}x")[0] != trace, "another run is another build"


class Fails(SpanExporter):
    """Takes nothing while ``away``."""

    def __init__(self) -> None:
        self.away = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.away:
            raise ConnectionError("refused")
        return SpanExportResult.SUCCESS


def test_a_collector_that_is_away_is_said_once_and_so_is_its_return(caplog: pytest.LogCaptureFixture) -> None:
    lost: list[int] = []
    inner = Fails()
    exporter = SaidOnce(inner, lost=lost.append)
    with caplog.at_level(logging.WARNING):
        assert [exporter.export([]) for _ in range(3)] == [SpanExportResult.FAILURE] * 3
        inner.away = False
        assert exporter.export([]) is SpanExportResult.SUCCESS
    assert len(lost) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "the collector takes no spans: they are lost",
        "the collector takes spans again",
    ]


def test_what_waits_is_sent_before_the_end() -> None:
    with collecting() as collector:
        provider = open_provider(f"{collector.url}/", about={"mendwork.worker": "saga"}, lost=lambda number: None)
        provider.get_tracer("mendwork").start_span("last").end()
        close_provider(provider, seconds=30)
        assert [(span.name, span.worker) for span in collector.spans()] == [("last", "saga")]
