"""What being seen costs a try of an activity: the worker's interceptors beside none, in one run.

``python -m benchmarks.telemetry``. The same empty activity is run bare, measured, and measured and traced (spans go to
a collector that is away: the dearest case), in turns; the medians are compared. A model call and a scrape are timed
beside them, for what they do more.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from adapters.telemetry.activities import MeasuringInterceptor
from adapters.telemetry.calls import WatchedModel
from adapters.telemetry.export import close_provider, open_provider
from adapters.telemetry.metrics import Metrics
from adapters.telemetry.tracing import Tracing
from benchmarks.ground.printing import say
from domain.money.usage import Quote, Usage
from domain.ports.language_model import CallKey, ModelAnswer, ModelRequest

LIMIT_MILLIS = 1.0
ROUNDS, A_ROUND = 20, 200
NOWHERE = "http://127.0.0.1:9"

Once = Callable[[], Awaitable[Any]]
_ANSWER = ModelAnswer(text="", usage=Usage(input_tokens=1, output_tokens=1, cost_micros=1))
_ASKED = ModelRequest(
    key=CallKey(saga="build-bench-1-task-one", step="change", attempt=1),
    model="coder",
    messages=(),
    schema_name="Change",
    max_output_tokens=1,
    timeout_seconds=1,
)


class _Silent:
    """A model that takes no time."""

    async def quote(self, model: str) -> Quote | None:
        return None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        return _ANSWER


class _Body(ActivityInboundInterceptor):
    """The innermost: the activity itself."""

    def __init__(self, body: Once) -> None:
        self._body = body

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return await self._body()


async def _nothing() -> None:
    """An activity without a body."""


async def _millis(each: ActivityInboundInterceptor, times: int) -> float:
    """Milliseconds of one try."""
    given = ExecuteActivityInput(fn=_nothing, args=[_ASKED], executor=None, headers={})

    async def many() -> float:
        start = time.perf_counter()
        for _ in range(times):
            await each.execute_activity(given)
        return (time.perf_counter() - start) * 1000 / times

    return float(await ActivityEnvironment().run(many))


async def main(rounds: int = ROUNDS, times: int = A_ROUND) -> float:
    """Print the table; the most that telemetry added to an operation, in milliseconds."""
    metrics = Metrics(worker="bench", models=["coder"])
    provider = open_provider(NOWHERE, about={}, lost=metrics.spans_lost)
    try:
        tracing = Tracing(provider)
        measuring = MeasuringInterceptor(metrics, [tracing.model_call])
        model = WatchedModel(_Silent(), names={"coder": "openai/scripted"})

        def traced(body: Once) -> ActivityInboundInterceptor:
            return measuring.intercept_activity(tracing.intercept_activity(_Body(body)))

        kinds = {
            "bare": _Body(_nothing),
            "measured": MeasuringInterceptor(metrics).intercept_activity(_Body(_nothing)),
            "measured, traced": traced(_nothing),
            "a model call, measured, traced": traced(lambda: model.complete(_ASKED)),
        }
        taken: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, each in kinds.items():
                taken[name].append(await _millis(each, times))
    finally:
        await asyncio.to_thread(close_provider, provider, seconds=10)
    start = time.perf_counter()
    size = len(metrics.exposition())
    return _show(taken, scrape=(time.perf_counter() - start) * 1000, size=size)


def _show(taken: dict[str, list[float]], *, scrape: float, size: int) -> float:
    medians = {name: statistics.median(values) for name, values in taken.items()}
    added = {name: value - medians["bare"] for name, value in medians.items()}
    for name, value in medians.items():
        say(f"{name:32} {value:8.4f} ms a try, {added[name]:8.4f} ms more than bare")
    say(f"{'a scrape':32} {scrape:8.4f} ms for {size} bytes")
    most = max(added.values())
    say(f"{'most':32} {most:8.4f} ms an operation; the limit is {LIMIT_MILLIS:g} ms")
    return most


if __name__ == "__main__":
    logging.getLogger("mendwork").setLevel(logging.ERROR)  # the collector is away on purpose
    sys.exit(asyncio.run(main()) > LIMIT_MILLIS)
