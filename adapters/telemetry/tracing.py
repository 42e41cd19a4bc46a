"""One trace per build: its sagas, activities and model calls, over all processes and runs.

Temporal's own interceptor makes the spans of workflows, replay-safe. Two things are ours: a saga that was started
without a trace (by the command line, a schedule, Temporal's CLI) is the root of one whose number follows from its id,
so that every worker knows it; and no text of an error goes along, which may quote a model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode
from temporalio import activity, workflow
from temporalio.contrib.opentelemetry import TracingInterceptor, TracingWorkflowInboundInterceptor
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from adapters.telemetry.activities import kind_of
from adapters.telemetry.subject import Calling, Ended, Outcome, current

_ROOT = "__mendwork_root_span"
_given: ContextVar[tuple[int, int] | None] = ContextVar("given_ids", default=None)


class GivenIds(RandomIdGenerator):
    """Random numbers for all spans but the roots of sagas."""

    def generate_trace_id(self) -> int:
        """Of a span without a parent."""
        given = _given.get()
        return given[0] if given else super().generate_trace_id()

    def generate_span_id(self) -> int:
        """Of any span."""
        given = _given.get()
        return given[1] if given else super().generate_span_id()


class Tracing(TracingInterceptor):
    """For a worker's ``interceptors``; the provider's ids have to be ``GivenIds``."""

    def __init__(self, provider: TracerProvider) -> None:
        super().__init__(provider.get_tracer("mendwork"), always_create_workflow_spans=True)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Called by the worker for each activity."""
        return _TracedActivity(next, self)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[TracingWorkflowInboundInterceptor]:
        """Called by the worker once."""
        super().workflow_interceptor_class(input)
        input.unsafe_extern_functions[_ROOT] = self._root_span
        return RootedWorkflow

    def model_call(self, call: Calling) -> Ended:
        """A ``Watcher``: the span of one call, with the names of OpenTelemetry's conventions for generative AI."""
        provider, _, model = call.name.rpartition("/")
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.system": provider,
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model or call.model,
            "mendwork.model": call.model,
            "mendwork.role": call.role,
            "mendwork.call": call.key,
        }
        span = self.tracer.start_span(f"chat {model or call.model}", kind=SpanKind.CLIENT, attributes=attributes)

        def ended(outcome: Outcome) -> None:
            if outcome.usage is not None:
                span.set_attribute("gen_ai.usage.input_tokens", outcome.usage.input_tokens)
                span.set_attribute("gen_ai.usage.output_tokens", outcome.usage.output_tokens)
                if outcome.usage.cost_micros is not None:
                    span.set_attribute("mendwork.cost_microdollars", outcome.usage.cost_micros)
            if outcome.fault:
                span.set_attribute("error.type", outcome.fault)
                span.set_status(Status(StatusCode.ERROR))
            span.end()

        return ended

    @contextmanager
    def activity_span(self, headers: Mapping[str, Any]) -> Iterator[None]:
        """The span of one try of the activity that this task runs."""
        info, subject = activity.info(), current.get()
        attributes: dict[str, str | int] = {
            "temporalWorkflowID": info.workflow_id or "",
            "temporalRunID": info.workflow_run_id or "",
            "temporalActivityID": info.activity_id,
            "mendwork.build": subject.build,
            "mendwork.task": subject.task,
            "mendwork.attempt": subject.attempt,
            "mendwork.try": info.attempt,
        }
        with self.tracer.start_as_current_span(
            f"RunActivity:{info.activity_type}",
            context=self._context_from_headers(headers) or Context(),
            kind=SpanKind.SERVER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", kind_of(error))
                span.set_status(Status(StatusCode.ERROR))
                raise

    def _completed_workflow_span(self, params: Any) -> Any:
        """As it is, but with the class of an error in place of its text and its stack."""
        if params.exception is not None:
            attributes = {**(params.attributes or {}), "error.type": kind_of(params.exception)}
            params = replace(params, attributes=attributes, exception=None)
        return super()._completed_workflow_span(params)

    def _root_span(self, ids: tuple[int, int], attributes: Mapping[str, str], time_ns: int) -> None:
        token = _given.set(ids)
        try:
            name = f"Saga:{attributes['temporalWorkflowType']}"
            span = self.tracer.start_span(name, Context(), attributes=attributes, start_time=time_ns)
        finally:
            _given.reset(token)
        span.end(end_time=time_ns)


class _TracedActivity(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, root: Tracing) -> None:
        super().__init__(next)
        self._root = root

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        with self._root.activity_span(input.headers):
            return await super().execute_activity(input)


class RootedWorkflow(TracingWorkflowInboundInterceptor):
    """Runs beside workflow code: no clock, no randomness, nothing that replay would do differently."""

    def __init__(self, next: WorkflowInboundInterceptor) -> None:
        super().__init__(next)
        self._ids: tuple[int, int] | None = None

    def _load_workflow_context_carrier(self) -> Any:
        carrier = super()._load_workflow_context_carrier()
        if carrier is not None:
            return carrier
        info = workflow.info()
        self._ids = root_ids(info.workflow_id, info.first_execution_run_id)
        trace, span = self._ids
        self._workflow_context_carrier = {"traceparent": f"00-{trace:032x}-{span:016x}-01"}
        return self._workflow_context_carrier

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        """Show the root first, once, if this run is it."""
        self._load_workflow_context_carrier()
        if self._ids is not None and not workflow.unsafe.is_replaying():
            info = workflow.info()
            attributes = {
                "temporalWorkflowType": info.workflow_type,
                "temporalWorkflowID": info.workflow_id,
                "temporalRunID": info.run_id,
            }
            workflow.extern_functions()[_ROOT](self._ids, attributes, workflow.time_ns())
        return await super().execute_workflow(input)


def root_ids(workflow_id: str, first_run: str) -> tuple[int, int]:
    """The numbers of a saga's trace and of its root span: the same for all its runs, wherever they are computed."""
    digest = hashlib.sha256(f"{workflow_id}/{first_run}".encode()).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])
