"""Waiting with a deadline: what takes longer is named, with what it waits for, instead of being waited for."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from benchmarks.ground.printing import tell

TICK = 10.0
"""Seconds between two lines of progress."""
_NAMED = 5
Result = TypeVar("Result")
Handle = WorkflowHandle[Any, Any]


class Unfinished(Exception):
    """The deadline passed; the sentence says what is not done."""


async def until(holds: Callable[[], bool], *, seconds: float, what: Callable[[], str], tick: float = 0.02) -> None:
    """Wait for a condition that nobody tells of. Raises Unfinished with ``what``."""
    due = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > due:
            raise Unfinished(f"after {seconds:g} s: {what()}")
        await asyncio.sleep(tick)


async def within(seconds: float, work: Awaitable[Result], *, what: Callable[[], str] | str) -> Result:
    """The result of ``work``. Raises Unfinished with ``what`` is not done; ``work`` is cancelled then."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        raise Unfinished(f"after {seconds:g} s: {what if isinstance(what, str) else what()}") from error


@contextlib.asynccontextmanager
async def telling(line: Callable[[], str]) -> AsyncIterator[None]:
    """Tell of the progress now and then."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(TICK)
            tell(line())

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def all_ended(handles: Sequence[Handle], *, seconds: float, also: Sequence[Coroutine[Any, Any, Any]] = (),
                    more: Callable[[], str] = lambda: "") -> list[Any]:  # fmt: skip
    """The results of workflows, in order, while ``also`` happens; ``more`` is told with the progress.

    Raises what the first of them fails with, and Unfinished with those that have not ended and what they wait for.
    """
    tasks = [asyncio.ensure_future(handle.result()) for handle in handles]
    beside = [asyncio.ensure_future(each) for each in also]

    def progress() -> str:
        return f"{sum(task.done() for task in tasks)} of {len(tasks)} have ended{more()}"

    try:
        async with asyncio.timeout(seconds), telling(progress):
            return (await asyncio.gather(*tasks, *beside))[: len(tasks)]
    except TimeoutError as error:
        left = [handle for handle, task in zip(handles, tasks, strict=True) if task.cancelled() or not task.done()]
        raise Unfinished(
            f"after {seconds:g} s {len(left)} of {len(tasks)} have not ended: {await _named(left)}"
        ) from error
    finally:
        for task in (*tasks, *beside):
            task.cancel()
        await asyncio.gather(*tasks, *beside, return_exceptions=True)


async def _named(handles: Sequence[Handle]) -> str:
    """The first few, each with the steps that are under way in it and in its children."""
    told = [f"{handle.id} ({'; '.join(await _waits(handle)) or 'nothing under way'})" for handle in handles[:_NAMED]]
    return ", ".join(told) + (", …" if len(handles) > _NAMED else "")


async def _waits(handle: Handle) -> list[str]:
    try:
        found = (await handle.describe()).raw_description
    except RPCError as error:
        return [f"not described: {error.message}"]
    told = []
    for step in found.pending_activities:
        why = f": {step.last_failure.message[:100]}" if step.last_failure.message else ""
        told.append(f"{step.activity_type.name}, try {step.attempt}{why}")
    if found.HasField("pending_workflow_task"):
        told.append(f"a workflow task, try {found.pending_workflow_task.attempt}")
    return told + [f"child {child.workflow_id}" for child in found.pending_children]
