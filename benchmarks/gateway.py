"""What a model call costs over litellm itself, in CPU: the adapter alone, and the whole activity with ledger and blobs.

``python -m benchmarks.gateway``. The same prompt is sent to a scripted server in another process, over a socket: by
``litellm.acompletion`` with the same arguments, by the adapter (classification of failures, pins, prices, the answer's
bounds), and by the activity ``call_model`` on SQLite and blobs in files (its record, the money held and settled, the
answer's schema). All three run in turns on litellm's own loop in its thread; CPU seconds are those of the process, all
threads together. The differences are the medians of the rounds' own differences.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from temporalio.testing import ActivityEnvironment

from activities.models import CallModelInput, Models
from adapters.blobs import open_blobs
from adapters.models import open_model
from adapters.models.endpoint import Endpoint
from adapters.models.engine import engine
from adapters.schemas import open_schemas
from adapters.store import open_store
from benchmarks.ground.printing import is_quick, say
from domain.build.prompt import Prompt
from domain.money.budget import Budget, Payer
from domain.money.usage import Price
from domain.ports.language_model import CallKey, LanguageModel, Message, ModelRequest

ALONE, WHOLE = 1.0, 5.0
"""Milliseconds of CPU that the adapter, and the whole activity, may take over litellm."""
ROUNDS, A_ROUND = 25, 8
_TEXT = "Write the change that the specification asks for.\n" * 400
_ANSWER = {"summary": "one task", "tasks": []}
_MODEL = "openai/scripted"
_BUILD = "build-bench-1"

Call = Callable[[], Awaitable[object]]


@contextlib.contextmanager
def provider(folder: Path) -> Iterator[str]:
    """The scripted server as a process of its own; its base URL."""
    (folder / "answers.yaml").write_text(yaml.safe_dump([{"role": "Plan", "answer": _ANSWER}]))
    argv = [sys.executable, "-P", "-m", "adapters.models.scripted"]
    argv += ["--answers", str(folder / "answers.yaml"), "--bill", str(folder / "bill.jsonl")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield json.loads(process.stdout.readline())["base_url"]
        finally:
            process.terminate()


def _request() -> ModelRequest:
    return ModelRequest(
        key=CallKey(saga=f"{_BUILD}-task-{uuid.uuid4().hex}", step="plan", attempt=1),
        model="planner",
        messages=(Message(role="user", content=_TEXT),),
        schema_name="Plan",
        max_output_tokens=1_000,
        timeout_seconds=60,
    )


async def _bare(base_url: str) -> Call:
    """litellm with the arguments that the adapter gives it."""
    running = await engine()
    schema = {"name": "Plan", "strict": True, "schema": dict(open_schemas().schema("Plan"))}

    async def call() -> object:
        request = _request()
        key = str(request.key)
        asked: dict[str, Any] = {
            "model": _MODEL,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "max_tokens": request.max_output_tokens,
            "extra_headers": {"X-Mendwork-Key": key, "Idempotency-Key": key},
            "api_base": base_url,
            "api_key": "none",
            "response_format": {"type": "json_schema", "json_schema": schema},
            "temperature": 0,
            "seed": request.key.seed,
        }
        return await running.run(running.litellm.acompletion(**asked, timeout=60, num_retries=0, max_retries=0))

    return call


def _adapter(model: LanguageModel) -> Call:
    return lambda: model.complete(_request())


@contextlib.asynccontextmanager
async def activity(model: LanguageModel, folder: Path) -> AsyncIterator[Call]:
    """``call_model`` within limits of its build, project, user and day."""
    blobs, schemas = open_blobs(folder), open_schemas()
    prompt = Prompt(template="plan", version="1", messages=(Message(role="user", content=_TEXT),))
    digest = await blobs.put(prompt.to_bytes())
    async with await open_store(f"sqlite:///{folder / 'mendwork.db'}") as store:
        models = Models(model=model, schemas=schemas, calls=store.calls, blobs=blobs)

        async def call() -> object:
            key = _request().key
            asked = CallModelInput(
                key=key,
                build=_BUILD,
                model="planner",
                prompt=digest,
                schema_name="Plan",
                output_tokens=1_000,
                seconds=60,
                payer=Payer(project="bench", build=_BUILD, user="ann", phase="plan", role="reasoning"),
                budget=Budget(build=10**9, project=10**12, user=10**12, day=10**12),
            )
            return await ActivityEnvironment().run(models.call_model, asked)

        yield call


async def main(rounds: int = ROUNDS, times: int = A_ROUND) -> Mapping[str, float]:
    """Print the table; the milliseconds of CPU that each takes over litellm."""
    with tempfile.TemporaryDirectory(prefix="mendwork-bench-") as name, provider(Path(name)) as base_url:
        price = Price(input_micros_per_million=1_000_000, output_micros_per_million=4_000_000)
        endpoint = Endpoint(name="planner", model=_MODEL, base_url=base_url, price=price)
        model = open_model({"planner": endpoint}, schemas=open_schemas())
        async with activity(model, Path(name)) as whole:
            kinds = {"litellm": await _bare(base_url), "adapter": _adapter(model), "with ledger and blobs": whole}
            return await compare(kinds, rounds, times)


async def compare(kinds: Mapping[str, Call], rounds: int, times: int) -> Mapping[str, float]:
    """Print what each call takes in so many rounds; what each takes over the first one."""
    for call in kinds.values():
        await _millis(call, 2)
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(rounds):
        for kind in kinds if number % 2 else reversed(list(kinds)):
            taken[kind].append(await _millis(kinds[kind], times))
    return _show(taken)


async def _millis(call: Call, times: int) -> float:
    """Milliseconds of CPU of one call."""
    start = time.process_time()
    for _ in range(times):
        await call()
    return (time.process_time() - start) * 1000 / times


def _show(taken: Mapping[str, list[float]]) -> Mapping[str, float]:
    limits = {"adapter": ALONE, "with ledger and blobs": WHOLE}
    over = {}
    say("a call                    CPU ms  over litellm  at most")
    for name, values in taken.items():
        first = next(iter(taken.values()))
        more = statistics.median(a - b for a, b in zip(values, first, strict=True))
        over[name] = more
        limit = f"{limits[name]:9.1f}" if name in limits else ""
        say(f"{name:<22} {statistics.median(values):9.2f} {more:13.2f}{limit}")
    return over


if __name__ == "__main__":
    quick = is_quick("CPU of a model call over litellm itself.", quick="two calls of each: whether it still works")
    found = asyncio.run(main(1, 2) if quick else main())
    broken = found["adapter"] > ALONE or found["with ledger and blobs"] > WHOLE
    sys.exit(0 if quick or not broken else 1)
