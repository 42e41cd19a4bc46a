"""Whether what a worker needs is there, asked when somebody wants to know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from domain.errors import MendworkError

PATIENCE_SECONDS = 2.0
"""A subsystem that is slower is not ready; probes usually wait for three."""

Check = Callable[[], Awaitable[object]]
"""Raises where its subsystem is not usable."""


async def examine(checks: Mapping[str, Check], *, patience: float = PATIENCE_SECONDS) -> dict[str, str]:
    """What is wrong with each subsystem, all asked at once: "" is nothing."""
    found = await asyncio.gather(*(_wrong(check, patience) for check in checks.values()))
    return dict(zip(checks, found, strict=True))


async def _wrong(check: Check, patience: float) -> str:
    try:
        async with asyncio.timeout(patience):
            await check()
    except TimeoutError:
        return f"no answer within {patience:g} s"
    except MendworkError as error:
        return str(error)
    except Exception as error:  # only its class: what others wrote in it may hold a password
        return type(error).__name__
    return ""
