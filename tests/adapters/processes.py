"""Real processes that run one function each; a fork server imports the heavy modules once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.process import BaseProcess
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_RUN_THERE = ("store_writers", "git_forwarding", "target_caller")
_CONTEXT.set_forkserver_preload([f"tests.adapters.{name}" for name in _RUN_THERE])


def start(function: Callable[..., None], *arguments: Any) -> BaseProcess:
    """A started process; the caller kills or joins it."""
    process = _CONTEXT.Process(target=function, args=arguments, daemon=True)
    process.start()
    return process


def run_together(jobs: Sequence[tuple[Callable[..., None], tuple[Any, ...]]], *, seconds: float = 60) -> None:
    """Run every job in a process of its own, at the same time; all must end well."""
    processes = [start(function, *arguments) for function, arguments in jobs]
    try:
        for process in processes:
            process.join(seconds)
        assert [process.exitcode for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            with suppress(ValueError):  # it was closed
                process.kill()


def pipe() -> tuple[Any, Any]:
    """What the parent reads, what the child writes."""
    return _CONTEXT.Pipe(duplex=False)


def barrier(parties: int) -> Any:
    """Lets processes start their race together."""
    return _CONTEXT.Barrier(parties, timeout=30)
