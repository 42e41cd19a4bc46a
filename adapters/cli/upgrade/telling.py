"""``mendwork upgrade status`` and ``drain``: what they print, and the code that they end with."""

from __future__ import annotations

import asyncio
import json as jsonlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from temporalio.client import Client

from adapters.cli.exits import DONE, INTERRUPTED, OWN_FAILURE, TIMEOUT
from adapters.cli.lines import plain
from adapters.cli.session import put, say
from adapters.cli.upgrade.checking import Checked, checked
from adapters.cli.upgrade.deploying import version_here
from adapters.cli.upgrade.draining import Drain, Draining, check_version
from adapters.cli.upgrade.under_way import current_versions, deployment_of, versions_that_poll
from adapters.settings import Settings
from adapters.temporal.connect import connect


async def status(settings: Settings, environment: Mapping[str, str], *, json: bool) -> int:
    """Tell of every open saga. OWN_FAILURE when one of them cannot go on: neither here, nor where it is pinned to."""
    client, queue = await connect(settings, environment), settings.temporal.task_queue
    found: list[Checked] = []
    async for each in checked(client, queue=queue, ours=version_here(settings)):
        found.append(each)
        if not json:
            put(f"{each.saga.name}  {each.saga.kind}  {each.saga.events} events  {_verdict(each)}")
            if each.why:
                say(f"  {plain(each.why)}")
    pinned = Counter(each.saga.version for each in found if each.saga.pinned)
    polling = await versions_that_poll(client, queue) if pinned else frozenset[str]()
    deserted = sorted(version for version in pinned if version not in polling)
    current = await _currents(client, settings, pinned)
    if json:
        put(jsonlib.dumps({"running": [as_data(each) for each in found], "current": current, "deserted": deserted}))
    else:
        _tell_versions(found, current)
    stuck = [each.saga.name for each in found if each.why]
    if stuck:
        say(f"{len(stuck)} of {len(found)} cannot go on here: {', '.join(stuck)}")
        say("they wait, and lose nothing, until the version that wrote them serves again; `mendwork resume` begins a")
        say("new build of this version from the last snapshot")
    for version in deserted:
        say(f"no worker of {version} polls: {pinned[version]} wait until one does")
    return OWN_FAILURE if stuck or deserted else DONE


async def drain(
    settings: Settings, environment: Mapping[str, str], wanted: Drain, *, seconds: float, json: bool
) -> int:
    """Wait, for so many ``seconds`` at most (0: without end). TIMEOUT when something is left then. Raises UnknownName
    for a version that nobody knows."""
    began, client = time.monotonic(), await connect(settings, environment)
    await check_version(client, wanted, deployment=settings.temporal.deployment)
    draining = Draining(client=client, wanted=wanted, say=say)
    limit = asyncio.timeout(seconds or None)
    code = DONE
    try:
        if not await draining.is_over():  # however little time there is: what is left is told
            async with limit:
                await draining.wait()
    except TimeoutError:
        if not limit.expired():
            raise
        code = TIMEOUT
        say(f"not ended within {seconds:g} s: {len(draining.left)} still need an older version")
    except asyncio.CancelledError:
        say("stopped waiting; nothing was changed, and what is under way goes on")
        return INTERRUPTED
    if json:
        left = [as_data(each) for each in draining.left] if code else []
        put(jsonlib.dumps({"drained": code == DONE, "left": left, "seconds": round(time.monotonic() - began, 1)}))
    elif code == DONE:
        say(f"nothing is pinned to {wanted.version or 'an older version'} any more")
    return code


def as_data(each: Checked) -> dict[str, Any]:
    """Stable fields: those of the saga, ``why`` it cannot be replayed, and ``stays``, why it is pinned."""
    from workflows.catalogue import PINNED

    stays = PINNED.get(each.saga.kind, "") if each.saga.pinned else ""
    return {**asdict(each.saga), "why": each.why, "stays": stays}


def _verdict(each: Checked) -> str:
    if each.why:
        return "cannot go on"
    return f"stays with {each.saga.version}" if each.saga.pinned else "goes on"


async def _currents(client: Client, settings: Settings, pinned: Mapping[str, int]) -> Mapping[str, str]:
    names = {deployment_of(version) for version in pinned} | ({settings.temporal.deployment} - {""})
    return await current_versions(client, names)


def _tell_versions(found: Sequence[Checked], current: Mapping[str, str]) -> None:
    """What is pinned to what, and why; and where the rest goes."""
    from workflows.catalogue import PINNED

    held = Counter((each.saga.version, each.saga.kind) for each in found if each.saga.pinned)
    for (version, kind), count in sorted(held.items()):
        now = "the current version" if current.get(deployment_of(version)) == version else "an older version"
        say(f"{count} {kind} stay with {version}, {now}: {PINNED.get(kind, 'it was pinned by hand')}")
    for name, version in current.items():
        if not version:
            say(f"the deployment {name} has no current version: nothing new goes to its workers until")
            say(f"  temporal worker deployment set-current-version --deployment-name {name} --build-id …")
    if not any(each.why for each in found):
        say(f"{len(found)} under way, all can go on")
