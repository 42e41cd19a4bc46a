"""litellm, loaded once on first use, in a thread with an event loop of its own.

Its import takes seconds, its first call most of another, and it binds clients and tasks to the loop that it was called
on. Here all of that happens beside the worker's loop, whose heartbeats go on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from domain.errors import ProviderRefused

Result = TypeVar("Result")

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore")
_once = threading.Lock()


class Engine:
    """``litellm`` is the configured module."""

    def __init__(self) -> None:
        self.litellm = _configured()
        self._loop = asyncio.new_event_loop()
        # What litellm leaves behind (its own logging) may hold prompts: its complaints go nowhere.
        self._loop.set_exception_handler(lambda loop, context: None)
        threading.Thread(target=self._loop.run_forever, name="litellm", daemon=True).start()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Await ``work`` on litellm's loop; cancelling this cancels it there and closes its connection."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


async def engine() -> Engine:
    """The one engine of this process; the first call imports litellm in a thread."""
    return _made() if _made.cache_info().currsize else await asyncio.to_thread(_engine)


def _engine() -> Engine:
    with _once:
        return _made()


@cache
def _made() -> Engine:
    return Engine()


def _configured() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import fetches its price list
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else the import reads a .env file that nobody asked for
    try:
        import litellm
    except ImportError as error:
        raise ProviderRefused("litellm is not installed: models need the extra 'llm' (uv sync --extra llm)") from error
    litellm.disable_aiohttp_transport = True  # aiohttp sessions are left open; httpx closes with its client
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    litellm.turn_off_message_logging = True
    litellm.drop_params = False
    litellm.num_retries = 0
    litellm.callbacks = []
    for name in _LOGGERS:  # they print prompts, and URLs that hold keys; a level also holds for the loggers below
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return litellm
