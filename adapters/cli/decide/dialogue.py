"""Asking on the terminal: what a person decides about is shown first, then each choice is a word."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters.cli.decide.packet import Packet, read_packet
from adapters.cli.decide.saying import Said, deliver, spoken
from adapters.cli.decide.terminal import BAR, page, read_line, show
from adapters.cli.decide.waiting import SHOWN_DIGITS, until
from adapters.cli.lines import plain
from adapters.cli.session import say
from adapters.settings import Settings
from domain.build.view import ENDED
from domain.errors import MendworkError
from domain.trace.asks import AskDetails, opened
from domain.trace.delivery.told import OVER

if TYPE_CHECKING:
    from temporalio.client import Client

    from domain.ports.blobs import Blobs
    from domain.ports.store import Event, Store

FIRST_LINES = 40
"""How much of a diff is shown before anybody asks for it."""
LOOK_SECONDS = 1.0
HINTS = {
    "approve": "approve",
    "reject": "reject REASON",
    "retry": "retry [HINT]",
    "raise": "raise USD",
    "skip": "skip",
    "take": "take COMMIT",
    "abort": "abort [REASON]",
    "promote": "promote",
    "extend": "extend",
    "roll_back": "roll_back [REASON]",
}
NEEDS = {"reject": "a reason: it goes back into planning", "take": "a branch or a commit", "raise": "a limit in USD"}
DELIVERED = ("release", "final")
"""What is rejected for good: nothing of it goes back into planning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What the dialogue works with; ``by`` is who answers."""

    settings: Settings
    client: Client
    store: Store
    blobs: Blobs
    by: str


class Dialogue:
    """Asks the person at this terminal about one build, ask by ask: ``on_ask`` of ``follow``."""

    def __init__(self, desk: Desk, build: str) -> None:
        self._desk = desk
        self._build = build
        self._packet = Packet(lines=())
        self._sending = False

    async def __call__(self, event: Event) -> None:
        """Ask until it is decided, here or elsewhere, or put off."""
        ask = opened(event)
        self._packet = await read_packet(self._desk.blobs, ask)
        self._show(ask)
        closed = await self._unless_closed(ask, self._ask(ask))
        if closed is not None:
            say(f"\n{plain(ask.id)} is closed: {closed}")
        say(BAR)

    async def _ask(self, ask: AskDetails) -> None:
        more = ["diff"] if self._packet.diff else []
        words = (*ask.choices, *more, "later")
        prompt = " | ".join(HINTS.get(word, word) for word in words)
        while True:
            typed = await read_line(f"{plain(prompt)}? ")
            word, rest = ("later", "") if typed is None else _meant(typed, words)
            if word == "later":
                say(f"later, then: `mendwork pending {self._build}` shows the commands")
                return
            if word == "diff":
                await page(self._packet.diff)
            elif not word:
                say(f"answer with one of {', '.join(map(plain, words))}; its first letters will do")
            elif await self._decided(ask, word, rest):
                return

    async def _decided(self, ask: AskDetails, word: str, rest: str) -> bool:
        """Send it, with what it needs; whether it was accepted."""
        if word in NEEDS and not rest:
            needed = "a reason" if word == "reject" and ask.about in DELIVERED else NEEDS[word]
            rest = await read_line(f"{word} needs {needed}: ") or ""
            if not rest:
                return False
        try:
            said = Said(build=ask.saga or self._build, **answer(ask, word, rest, by=self._desk.by))
        except ValueError:
            say(f"{plain(rest)} is no number of dollars")
            return False
        self._sending = True
        try:
            answered = await deliver(self._desk.settings, self._desk.client, said)
        except MendworkError as error:
            say(f"mendwork: {error}")
            return False
        finally:
            self._sending = False
        say(spoken(answered))
        return answered.outcome != "refused"

    def _show(self, ask: AskDetails) -> None:
        what = f"your approval of the {ask.about}" if ask.kind == "approval" else "an answer"
        names = f"{plain(ask.id)}, digest {plain(ask.digest)[:SHOWN_DIGITS]}, {until(ask)}"
        say(f"{BAR}\n{self._build} asks for {plain(what)}  ({names})")
        for line in self._packet.lines:
            say(f"  {line}")
        diff = self._packet.diff
        show(diff[:FIRST_LINES])
        if len(diff) > FIRST_LINES:
            say(f"… {len(diff) - FIRST_LINES} more lines: `diff` shows them all")

    async def _unless_closed(self, ask: AskDetails, asking: Coroutine[Any, Any, None]) -> str | None:
        """Ask, and stop when somebody else decided it: how, then."""
        tasks = [asyncio.ensure_future(asking), asyncio.ensure_future(self._closed(ask))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._sending:  # what closed it is our own answer, most likely: see what comes of it
                await asyncio.wait(tasks[:1])
            return None if tasks[0].done() else str(tasks[1].result())
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _closed(self, ask: AskDetails) -> str:
        """How it was closed, as soon as the log says so."""
        position = 0
        while True:
            for at, event in await self._desk.store.events.read(self._build, after=position):
                position = at
                if event.kind in (ENDED, OVER):
                    what = "build" if event.kind == ENDED else "delivery"
                    return f"the {what} has ended ({plain(event.data.get('status', ''))})"
                if event.kind == "ask.closed" and event.data.get("id") == ask.id:
                    by = plain(event.data.get("by", ""))
                    return plain(event.data.get("choice", "")) + (f" by {by}" if by else "")
            await asyncio.sleep(LOOK_SECONDS)


def answer(ask: AskDetails, word: str, rest: str, *, by: str) -> dict[str, Any]:
    """``what`` and ``words`` of the answer ``word`` with its argument. Raises ValueError for what is no number."""
    if ask.kind == "approval":
        return {"what": word, "words": {"digest": ask.digest, "by": by, "reason": rest}}
    words: dict[str, Any] = {"ask": ask.id, "choice": word, "by": by}
    if word == "raise":
        words["task_budget" if ask.task else "build_budget"] = float(rest.lstrip("$"))
    elif rest:
        words["commit" if word == "take" else "reason"] = rest
    return {"what": "answer", "words": words}


def _meant(typed: str, words: Sequence[str]) -> tuple[str, str]:
    """The only one of ``words`` that begins with what was typed ("" when there is none, or several), and the rest."""
    first, _, rest = typed.partition(" ")
    meant = [word for word in words if first and word.startswith(first.lower())]
    word = first.lower() if first.lower() in words else meant[0] if len(meant) == 1 else ""
    return word, rest.strip()
