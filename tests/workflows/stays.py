"""A workflow that stands for any saga: it runs until it is stopped, or told to end."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError


@workflow.defn(name="Stays")
class Stays:
    """Takes anything and returns nothing."""

    def __init__(self) -> None:
        self._told: list[str] = []

    @workflow.run
    async def run(self, request: Any = None) -> None:
        """Until ``end``."""
        await workflow.wait_condition(lambda: bool(self._told))
        if self._told[0] == "fail":
            raise ApplicationError("it was told to fail", non_retryable=True)
        if self._told[0] == "again":
            workflow.continue_as_new(request)

    @workflow.signal
    def end(self, how: str = "") -> None:
        """Well, by default; "fail", or "again" in a new run."""
        self._told.append(how)
