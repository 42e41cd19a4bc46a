"""Turns at the providers: at most so many calls of this process at once, and none that keeps the others out."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from domain.errors import Crowded
from domain.flow.turns import Caller, Crowd, Room, come_again, may_call, may_wait

LOBBY_SECONDS = 20.0
"""So long a call waits in this process. Its activity has a minute more than the call itself may take."""
SLACK_SECONDS = 5.0


class Away:
    """Who was turned away and has not come back yet, by project, as far as this process knows."""

    def __init__(self) -> None:
        self._due: dict[str, dict[str, float]] = {}

    def back(self, project: str, who: str) -> None:
        """It is here again."""
        self._due.get(project, {}).pop(who, None)

    def send(self, project: str, who: str) -> float:
        """Seconds until it may ask again: the more of its project there are, the later. Who does not come when it is
        time went elsewhere, and is forgotten."""
        now = time.monotonic()
        self._due.setdefault(project, {})[who] = now
        self._forget(now - SLACK_SECONDS)
        away, projects = len(self._due[project]), len(self._due)
        seconds = come_again(away, projects=projects, jitter=random.random())  # noqa: S311 - spread
        self._due[project][who] = now + seconds
        return seconds

    def _forget(self, before: float) -> None:
        late = [(project, who) for project, all_due in self._due.items() for who, at in all_due.items() if at < before]
        for project, who in late:
            self._due[project].pop(who)
        self._due = {project: all_due for project, all_due in self._due.items() if all_due}


@dataclass(slots=True, kw_only=True, eq=False)
class _Ticket:
    caller: Caller
    called: asyncio.Event = field(default_factory=asyncio.Event)


class Turnstile:
    """Lets calls through as ``room`` says, the first come first; ``providers`` by our names of the models."""

    def __init__(self, room: Room, *, providers: Mapping[str, str]) -> None:
        self.room = room
        self._providers = dict(providers)
        self._inside: Counter[Caller] = Counter()
        self._lobby: list[_Ticket] = []
        self._away = Away()

    @property
    def inside(self) -> Crowd:
        """The calls that are made now."""
        return dict(self._inside)

    @contextlib.asynccontextmanager
    async def turn(self, key: str, *, project: str, model: str) -> AsyncIterator[None]:
        """Hold a place among the calls. Raises Crowded when there is none, nor soon."""
        caller = Caller(project=project, provider=self._providers.get(model, model), model=model)
        await self._enter(key, caller)
        try:
            yield
        finally:
            self._leave(caller)

    async def _enter(self, key: str, caller: Caller) -> None:
        self._away.back(caller.project, key)
        before = Counter(ticket.caller for ticket in self._lobby)
        ticket = _Ticket(caller=caller)
        self._lobby.append(ticket)
        self._call()  # those who came earlier first, and perhaps this one at once
        try:
            if may_wait(self.room, caller, before):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOBBY_SECONDS):  # not wait_for: it may swallow a cancellation
                        await ticket.called.wait()
        except BaseException:
            if ticket.called.is_set():
                self._leave(caller)
            raise
        finally:
            if ticket in self._lobby:
                self._lobby.remove(ticket)
        if not ticket.called.is_set():
            raise Crowded(
                f"other calls have the turns of project {caller.project} at {caller.provider}",
                retry_after=self._away.send(caller.project, key),
            )

    def _leave(self, caller: Caller) -> None:
        self._inside[caller] -= 1
        self._inside += Counter()  # without those that are none any more
        self._call()

    def _call(self) -> None:
        """Let in who may, in the order in which they came."""
        for ticket in list(self._lobby):
            if may_call(self.room, ticket.caller, self._inside):
                self._inside[ticket.caller] += 1
                self._lobby.remove(ticket)
                ticket.called.set()
