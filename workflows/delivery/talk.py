"""What a delivery is told: by people (signals and updates, in plain JSON, forgiving), its lane and its watch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from temporalio import workflow

from workflows.delivery.context import Delivering
from workflows.people.answering import Answering

with workflow.unsafe.imports_passed_through():
    from domain.errors import MendworkError
    from domain.human.asks import decode_saying, whole
    from domain.human.book import Ruling

ROLL_BACK = 'Take the release back now: {"by", "reason"}.'


class DeliveryTalk(Answering):
    """The handlers of DeliverySaga; they decode by themselves."""

    _delivery: Delivering
    _main: asyncio.Task[Any] | None = None
    _aborted: str = ""

    async def _say(self, what: str, raw: Any) -> dict[str, str]:
        try:
            ruling = self._rule(what, {} if raw is None else raw)
        except MendworkError as error:
            ruling = self._delivery.desk.refuse(str(error), choice=what)
        await self._delivery.recorder.flush(self._delivery.effects, heed=False)
        return asdict(ruling)

    def _rule(self, what: str, raw: Any) -> Ruling:
        desk = self._delivery.desk
        if what in ("approve", "reject"):
            return desk.receive(raw, choice=what)
        if what == "answer":
            return desk.receive(raw)
        plain = isinstance(raw, Mapping)
        said = decode_saying({name: value for name, value in raw.items() if name != "to"} if plain else raw)
        if desk.over or self._delivery.effects.shielded:
            return desk.refuse("the delivery has ended, or is taken back already", choice=what, by=said.by)
        to, back = whole(raw.get("to")) if plain else 0, self._delivery.found.snapshot.release
        if what == "roll_back" and to not in (0, back):
            why = f"while it is delivered it goes back to release {back}; to release {to} once it has ended"
            return desk.refuse(why, choice=what, by=said.by)
        return self._end_early(what, f"{said.by}: {said.reason or 'no reason given'}")

    def _end_early(self, what: str, who: str) -> Ruling:
        """Before the switch it compensates, during the switch it finishes and is led back; a watch ends first."""
        if self._delivery.phase == "watch":
            self._delivery.wanted_back = who
        else:
            self._aborted = who
            self._delivery.effects.abort()
            if self._main is not None:
                self._main.cancel()
        done = "the delivery ends, and undoes what it did" if what == "abort" else "the release is taken back"
        return Ruling(outcome="accepted", reason=done)

    @workflow.signal(name="lane", description="From its lane: granted, refused, or where it stands in the queue.")
    def lane_signal(self, raw: Any = None) -> None:
        """Facts; the last word counts."""
        said, word = raw if isinstance(raw, Mapping) else {}, self._delivery.lane
        word.granted, word.refused = bool(said.get("granted")), bool(said.get("refused"))
        word.reason, word.position = str(said.get("reason", ""))[:300], whole(said.get("position"))
        word.heard += 1

    @workflow.signal(name="undecided", description="From its watch: the figures do not tell; a person has to.")
    def undecided_signal(self, raw: Any = None) -> None:
        """Kept until the saga asks."""
        self._delivery.undecided = dict(raw) if isinstance(raw, Mapping) else {"reason": "unknown"}

    @workflow.signal(name="roll_back", description=ROLL_BACK)
    async def roll_back_signal(self, raw: Any = None) -> None:
        await self._say("roll_back", raw)

    @workflow.update(name="roll_back", description=ROLL_BACK)
    async def roll_back_update(self, raw: Any = None) -> dict[str, str]:
        return await self._say("roll_back", raw)
