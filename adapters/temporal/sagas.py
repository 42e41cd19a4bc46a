"""How sagas stand, asked of Temporal itself: its list of workflows lags behind, a description does not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from domain.errors import ServerUnavailable
from domain.ports.sagas import ENDED, RUNNING, STOPPED, UNKNOWN, Standing

AT_ONCE = 10
PATIENCE_SECONDS = 10.0

_STANDINGS = {
    WorkflowExecutionStatus.RUNNING: Standing(state=RUNNING, how="runs"),
    WorkflowExecutionStatus.CONTINUED_AS_NEW: Standing(state=RUNNING, how="runs"),
    WorkflowExecutionStatus.COMPLETED: Standing(state=ENDED, how="has ended"),
    WorkflowExecutionStatus.TERMINATED: Standing(state=STOPPED, how="was terminated"),
    WorkflowExecutionStatus.TIMED_OUT: Standing(state=STOPPED, how="was ended by its time limit"),
    WorkflowExecutionStatus.FAILED: Standing(state=STOPPED, how="failed"),
    WorkflowExecutionStatus.CANCELED: Standing(state=STOPPED, how="was cancelled"),
}


class TemporalSagas:
    """``domain.ports.sagas.Sagas`` on a client; each look waits for at most ``patience`` seconds."""

    def __init__(self, client: Client, *, patience: float = PATIENCE_SECONDS) -> None:
        self._client = client
        self._patience = patience

    async def standings(self, ids: Sequence[str]) -> Mapping[str, Standing]:
        gate = asyncio.Semaphore(AT_ONCE)

        async def look(name: str) -> Standing:
            async with gate:
                return await self._standing(name)

        unique = list(dict.fromkeys(ids))
        return dict(zip(unique, await asyncio.gather(*map(look, unique)), strict=True))

    async def _standing(self, name: str) -> Standing:
        try:
            async with asyncio.timeout(self._patience):
                described = await self._client.get_workflow_handle(name).describe()
        except TimeoutError as error:
            raise ServerUnavailable(f"Temporal does not answer within {self._patience:g} s") from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return Standing(state=UNKNOWN, how="is unknown to this Temporal server")
            raise ServerUnavailable(f"Temporal does not answer: {error.message}") from error
        # A status of a later server is none that we know to be over.
        return (
            _STANDINGS.get(described.status, Standing(state=RUNNING)) if described.status else Standing(state=RUNNING)
        )
