"""Which running sagas the code as it is now cannot replay: they would wait until code that can comes back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError
from temporalio.worker import Replayer

from adapters.cli.upgrade.under_way import UnderWay, under_way
from domain.errors import ServerUnavailable

LONGEST_REASON = 300
PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One running saga. ``why`` is "" when its history replays, else what is different; one that is pinned to another
    version is not replayed, since this one will never serve it."""

    saga: UnderWay
    why: str = ""


async def listed(client: Client, *, queue: str) -> list[UnderWay]:
    """Every open saga of the kinds that this version knows. Raises ServerUnavailable."""
    from workflows.catalogue import WORKFLOWS

    return list(await under_way(client, queue=queue, kinds=[kind.__name__ for kind in WORKFLOWS]))


async def replayed(client: Client, sagas: Iterable[UnderWay], *, ours: str = "") -> AsyncIterator[Checked]:
    """Each saga, replayed by the code as it is now, which is the version ``ours``. Nothing is changed."""
    from workflows.catalogue import WORKFLOWS

    replayer: Replayer | None = None
    for saga in sagas:
        if saga.pinned and saga.version != ours:
            yield Checked(saga=saga)
            continue
        replayer = replayer or Replayer(
            workflows=WORKFLOWS,
            data_converter=client.data_converter,
            namespace=client.namespace,
            runtime=Runtime(telemetry=TelemetryConfig(logging=None)),  # it would write to stdout, which is for data
        )
        try:
            history = await client.get_workflow_handle(saga.name, run_id=saga.run).fetch_history()
        except RPCError:
            continue  # it has ended meanwhile, and was deleted
        result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        yield Checked(saga=saga, why=reason(str(result.replay_failure)) if result.replay_failure else "")


async def checked(client: Client, *, queue: str, ours: str = "") -> AsyncIterator[Checked]:
    """All that is under way, as ``replayed``. Raises ServerUnavailable."""
    async for each in replayed(client, await listed(client, queue=queue), ours=ours):
        yield each


async def warn(client: Client, *, queue: str, say: Callable[[str], object]) -> None:
    """Name what could not go on, before workers that fail at it start. Never longer than PATIENCE_SECONDS."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for each in checked(client, queue=queue):
                name = each.saga.name
                if each.why:
                    say(f"upgrade   {name} cannot go on with this version, and waits: {each.why}")
                elif each.saga.pinned:
                    say(f"upgrade   {name} stays with {each.saga.version}, and waits for its workers")
    except ServerUnavailable as error:
        say(f"upgrade   {error}")
    except TimeoutError:
        say("upgrade   much is under way, and not all of it was looked at: mendwork upgrade status")


def reason(text: str) -> str:
    """One line: the replayer wraps its own sentence in the whole command that it answered."""
    named = re.search(r"\[TMPRL1100\] (?:Nondeterminism error: )?([^\"]+)", text)
    line = " ".join((named[1] if named else text).split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
