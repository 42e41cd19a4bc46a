"""The build in Mendwork: ``python -m benchmarks.langgraph.ours TEMPORAL STORE MODEL FOLDER`` serves until it is killed.

The workers of all four classes in one process. A build asks the model for a plan and, one after the other, for the
changes of its two tasks; what would touch a repository or a sandbox answers at once. The store is PostgreSQL, blobs are
files below FOLDER: nothing that has to outlive the process is in it.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from adapters.blobs import open_blobs
from adapters.settings import Settings
from adapters.store import open_store
from adapters.temporal.connect import Target, connect_to, converter_for
from benchmarks.engine.world import ANSWERS, Faked, Instant, serving_ours
from benchmarks.langgraph.asking import Asker, asking
from domain.money.usage import Usage
from domain.ports.language_model import ModelAnswer, ModelRequest

QUEUE = "ours"


class Slow(Instant):
    """Asks over HTTP; the answer is then that of the schema."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        await self._ask(str(request.key), request.messages[0].content)
        return ModelAnswer(
            text=ANSWERS[request.schema_name], usage=Usage(input_tokens=10, output_tokens=5, cost_micros=30)
        )


async def main(server: str, url: str, model: str, folder: str) -> None:
    """For ever."""
    target = Target(address=server, namespace="default", origin="the benchmark's server")
    settings = Settings.model_validate({"root": Path.cwd()})
    client = await connect_to(target, converter=converter_for(settings, target.namespace))
    async with AsyncExitStack() as stack:
        ask = await stack.enter_async_context(asking(model))
        store = await stack.enter_async_context(await open_store(url))
        world = Faked(store, Slow(ask), blobs=open_blobs(Path(folder)))
        await stack.enter_async_context(serving_ours(client, QUEUE, world))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
