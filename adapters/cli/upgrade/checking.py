"""Which running sagas the code as it is now cannot replay: they would wait until code that can comes back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError
from temporalio.worker import Replayer

from domain.errors import ServerUnavailable

LONGEST_REASON = 300
PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One running saga. ``why`` is "" when its history replays, else what is different."""

    name: str
    kind: str
    run: str
    events: int
    why: str = ""


async def running(client: Client, *, queue: str, kinds: Sequence[str]) -> Sequence[tuple[str, str, str]]:
    """Id, run and type of every open workflow of the queue. Raises ServerUnavailable."""
    query = f"TaskQueue = '{queue}' AND ExecutionStatus = 'Running'"
    try:
        return [
            (w.id, w.run_id, w.workflow_type) async for w in client.list_workflows(query) if w.workflow_type in kinds
        ]
    except RPCError as error:
        raise ServerUnavailable(f"what runs cannot be listed: {error.message}") from error


async def checked(client: Client, *, queue: str) -> AsyncIterator[Checked]:
    """Each running saga, replayed by the code as it is now. Nothing is changed. Raises ServerUnavailable."""
    from workflows.catalogue import WORKFLOWS

    kinds = [kind.__name__ for kind in WORKFLOWS]
    found = await running(client, queue=queue, kinds=kinds)
    if not found:
        return
    silent = Runtime(telemetry=TelemetryConfig(logging=None))  # it would write to stdout, which is for data
    replayer = Replayer(
        workflows=WORKFLOWS, data_converter=client.data_converter, namespace=client.namespace, runtime=silent
    )
    for name, run, kind in found:
        try:
            history = await client.get_workflow_handle(name, run_id=run).fetch_history()
        except RPCError:
            continue  # it has ended meanwhile, and was deleted
        result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        why = reason(str(result.replay_failure)) if result.replay_failure else ""
        yield Checked(name=name, kind=kind, run=run, events=len(history.events), why=why)


async def warn(client: Client, *, queue: str, say: Callable[[str], object]) -> None:
    """Name what could not go on, before workers that fail at it start. Never longer than PATIENCE_SECONDS."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for each in checked(client, queue=queue):
                if each.why:
                    say(f"upgrade   {each.name} cannot go on with this version, and waits: {each.why}")
    except ServerUnavailable as error:
        say(f"upgrade   {error}")
    except TimeoutError:
        say("upgrade   much is under way, and not all of it was looked at: mendwork upgrade status")


def reason(text: str) -> str:
    """One line: the replayer wraps its own sentence in the whole command that it answered."""
    named = re.search(r"\[TMPRL1100\] (?:Nondeterminism error: )?([^\"]+)", text)
    line = " ".join((named[1] if named else text).split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
