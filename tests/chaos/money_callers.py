"""Processes that call a model until its budget is used up: ``python -m tests.chaos.money_callers URL BASE_URL BLOBS``.

The parent imports litellm once and forks one caller for each number that it reads; it answers with the caller's pid. A
caller makes 25 calls at once, each lane its own task of the build, and repeats what its killed predecessor was at, as
the activity's next try does. It ends when every lane was told that the budget is used up.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from activities.models import CallModelInput, Models
from adapters.blobs import open_blobs
from adapters.models import open_model
from adapters.models.endpoint import Endpoint
from adapters.schemas import open_schemas
from adapters.store import open_store
from domain.build.prompt import Prompt
from domain.errors import BudgetExhausted, Transient
from domain.money.budget import Budget, Payer
from domain.money.usage import Price
from domain.ports.language_model import CallKey, Message

BUILD = "build-money-1"
LIMIT = 1_000_000
CALLERS = 2
LANES = 25
ATTEMPTS = 200
PRICE = Price(input_micros_per_million=100_000, output_micros_per_million=500_000)
OUTPUT_TOKENS = 5_000
BUDGET = Budget(task=None, build=LIMIT, project=None, user=None, day=None, calls=10_000)


async def call_until_exhausted(caller: int, url: str, base_url: str, blobs: Path) -> None:
    """All lanes of one caller, side by side."""
    schemas, kept = open_schemas(), open_blobs(blobs)
    endpoint = Endpoint(name="m", model="openai/scripted", base_url=base_url, price=PRICE)
    prompt = Prompt(template="change", version="v", messages=(Message(role="user", content="Change it."),))
    digest = await kept.put(prompt.to_bytes())
    async with await open_store(url) as store:
        model = open_model({"m": endpoint}, schemas=schemas)
        models = Models(model=model, schemas=schemas, calls=store.calls, blobs=kept)
        await asyncio.gather(*(_lane(models, f"{caller}-{lane}", digest) for lane in range(LANES)))


async def _lane(models: Models, task: str, prompt: str) -> None:
    payer = Payer(project="money", build=BUILD, task=task, user="ada", phase="tasks", role="coding")
    for attempt in range(1, ATTEMPTS + 1):
        request = CallModelInput(
            key=CallKey(saga=f"{BUILD}-task-{task}", step="change", attempt=attempt),
            build=BUILD,
            model="m",
            prompt=prompt,
            schema_name="Change",
            output_tokens=OUTPUT_TOKENS,
            seconds=20,
            payer=payer,
            budget=BUDGET,
        )
        if not await _answered(models, request):
            return
    raise AssertionError(f"lane {task} made {ATTEMPTS} calls and still had money")


async def _answered(models: Models, request: CallModelInput) -> bool:
    """Tries as Temporal would, only sooner. Whether there was money for the call."""
    while True:
        try:
            await models.call_model(request)
        except BudgetExhausted:
            return False
        except Transient:
            await asyncio.sleep(0.1)  # the wait that its retry policy would make
        else:
            return True


def main() -> None:
    """Fork a caller for each line; end with the input."""
    url, base_url, blobs = sys.argv[1:]
    litellm: Any = import_module("litellm")
    litellm.suppress_debug_info = True
    with suppress(Exception):  # nobody is there: what litellm builds at its first call is built once, for all callers
        litellm.completion(model="openai/x", messages=[], api_base="http://127.0.0.1:1/v1", api_key="x", max_retries=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(call_until_exhausted(int(line), url, base_url, Path(blobs)))
                (Path(blobs) / f"done-{int(line)}").touch()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
