"""Waiting until an older version of the engine is not needed any more. Nothing is ever ended for that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from temporalio.client import Client

from adapters.cli.upgrade.checking import Checked, listed, replayed
from adapters.cli.upgrade.under_way import UnderWay, current_versions, deployment_of, versions_of
from domain.errors import ServerUnavailable, UnknownName

SHOWN = 5
SERVER_PATIENCE_SECONDS = 120.0
"""A server that is away for so long ends the waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """What to wait for on ``queue``. ``version`` is a build id, with or without its deployment; "" stands for every
    version but the current one, and for what the code here (version ``ours``) cannot replay."""

    queue: str
    version: str = ""
    ours: str = ""
    every: float = 2.0


@dataclass(slots=True, kw_only=True)
class Draining:
    """One waiting. ``left`` is what still needs an older version, as of the last look."""

    client: Client
    wanted: Drain
    say: Callable[[str], object]
    left: Sequence[Checked] = ()
    _stuck: dict[str, Checked] = field(default_factory=dict)
    _looked: bool = False
    _silent: float | None = None
    _told: Sequence[str] = ()

    async def wait(self) -> None:
        """Until nothing is left. Raises ServerUnavailable when the server stays away."""
        while not await self.is_over():  # noqa: ASYNC110 - the condition lies on the server
            await asyncio.sleep(self.wanted.every)

    async def is_over(self) -> bool:
        """One look: whether nothing is left. False, too, for a server that is away for a moment."""
        try:
            self.left = await self.look()
        except ServerUnavailable as error:
            if self._silent is None:
                self._silent = time.monotonic()
                self.say(f"{error}; asking again")
            elif time.monotonic() - self._silent > SERVER_PATIENCE_SECONDS:
                raise
            return False
        self._silent = None
        if self.left:
            self._tell()
        return not self.left

    async def look(self) -> Sequence[Checked]:
        """What still needs an older version now. Raises ServerUnavailable."""
        sagas = await listed(self.client, queue=self.wanted.queue)
        pinned = [Checked(saga=saga) for saga in await self._pinned(sagas)]
        if self.wanted.version:
            return pinned
        return [*pinned, *await self._unreplayable(sagas, afresh=not pinned)]

    async def _pinned(self, sagas: Sequence[UnderWay]) -> list[UnderWay]:
        held = [saga for saga in sagas if saga.pinned]
        if wanted := self.wanted.version:
            return [saga for saga in held if wanted in _names(saga.version)]
        current = await current_versions(self.client, (deployment_of(saga.version) for saga in held))
        return [saga for saga in held if saga.version != current[deployment_of(saga.version)]]

    async def _unreplayable(self, sagas: Sequence[UnderWay], *, afresh: bool) -> Sequence[Checked]:
        """Whatever could not be replayed never can: its history only grows. The rest is replayed at the first look, and
        again when nothing else is waited for: what an older version began or did meanwhile is found then."""
        open_runs = {saga.run for saga in sagas}
        self._stuck = {run: each for run, each in self._stuck.items() if run in open_runs}
        if not self._looked or (afresh and not self._stuck):
            self._looked = True
            async for each in replayed(self.client, sagas, ours=self.wanted.ours):
                if each.why:
                    self._stuck[each.saga.run] = each
        return list(self._stuck.values())

    def _tell(self) -> None:
        """When something has changed."""
        if self._told != (told := sorted(f"  {sentence(each)}" for each in self.left)):
            self._told = told
            self.say(f"waits for {len(self.left)}:")
            for line in told[:SHOWN]:
                self.say(line)
            if len(told) > SHOWN:
                self.say(f"  and {len(told) - SHOWN} more: mendwork upgrade status")


async def check_version(client: Client, wanted: Drain, *, deployment: str) -> None:
    """Raises UnknownName for a version that is none of the ``deployment``, and that no open saga is of: to wait for a
    mistyped one would end at once. Raises ServerUnavailable."""
    if not wanted.version:
        return
    known = {saga.version for saga in await listed(client, queue=wanted.queue)} - {""}
    if deployment:
        known |= set(await versions_of(client, deployment))
    if not any(wanted.version in _names(version) for version in known):
        raise UnknownName.among("version", wanted.version, sorted(known))


def _names(version: str) -> tuple[str, str]:
    """With its deployment, and without."""
    return version, version.partition(":")[2]


def sentence(each: Checked) -> str:
    """What it is, why it holds an older version, and who could end that."""
    from adapters.cli.lines import plain

    saga = each.saga
    why = f"this version cannot replay it: {plain(each.why)}" if each.why else f"stays with {saga.version}"
    answer = f"; it waits for an answer: mendwork pending {saga.name}" if saga.waits else ""
    return f"{saga.name} ({saga.kind}) {why}{answer}"
