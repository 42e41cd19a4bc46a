"""Where a saga waits for a person: asks open and close, answers come at any time, each gets a ruling and a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from temporalio import workflow

from workflows.policies import Effects
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    from domain.errors import MendworkError
    from domain.human.asks import Answer, Ask, decode_answer, how, one_line
    from domain.human.book import Book, Ruling


ROOM = "\u00a0"
"""The web UI cuts off the last line of what it shows: let it be an empty one."""


class Desk:
    """``book`` is carried from run to run. ``saga`` is the workflow to answer where that is not the build itself."""

    def __init__(self, *, book: Book, recorder: Recorder, effects: Effects, saga: str = "") -> None:
        self._book = book
        self._recorder = recorder
        self._effects = effects
        self._saga = {"saga": saga} if saga else {}
        self.over = False

    def receive(self, raw: Any, *, choice: str = "") -> Ruling:
        """Rule on an answer as it came; what is malformed is a refusal with a row, never a failure."""
        try:
            answer = decode_answer(raw, choice=choice)
        except MendworkError as error:
            return self.refuse(str(error), choice=choice)
        if self.over:
            return self.refuse("the build has ended", choice=answer.choice, by=answer.by)
        self._expire()
        ruling = self._book.receive(answer)
        if ruling.outcome == "refused":
            self._note_refused(answer.choice, answer.by, ruling)
        return ruling

    def refuse(self, reason: str, *, choice: str, by: str = "") -> Ruling:
        """Record an answer that does not count."""
        ruling = Ruling(outcome="refused", reason=reason)
        self._note_refused(choice, by, ruling)
        return ruling

    async def ask(self, ask: Ask, *, unless: Callable[[], bool] = lambda: False) -> Answer | None:
        """Wait for the answer that counts. Its choice is "expired" when none came, "superseded" when it was replaced.

        None when ``unless`` came true before: the ask stays open. Asking again, also in a later run, goes on waiting
        for the same answer until the same deadline.
        """
        if ask.id not in self._book.open and ask.id not in self._book.answers:
            self._recorder.note("ask.opened", task=ask.task, **{**_row(ask), **self._saga})
            self._book.opening(ask)
            await self._recorder.flush(self._effects)
        if not await self._answered(ask, unless):
            self._time_out(ask)
        if ask.id not in self._book.answers:
            return None
        answer = self._book.answers.pop(ask.id)
        self._effects.heed_cancellation()  # an abort in the same instant wins
        self._note_closed(ask, answer)
        await self._recorder.flush(self._effects)
        return answer

    def supersede(self, ask_id: str) -> None:
        """Nobody can answer ``ask_id`` any more: a newer one takes its place."""
        if ask_id in self._book.open:
            self._book.close(ask_id, "superseded")
            self._book.answers[ask_id] = Answer(choice="superseded")

    def close_all(self) -> None:
        """The build has ended: nobody is asked any more, and every answer is told so."""
        self.over = True
        for ask in self.pending():
            self._book.close(ask.id, "superseded")
            self._note_closed(ask, Answer(choice="superseded", reason="the build has ended"))

    def pending(self) -> list[Ask]:
        """What waits for a person, oldest first."""
        return list(self._book.open.values())

    def shown(self, saga: str) -> list[dict[str, Any]]:
        """What waits, and the commands that answer it: for queries."""
        return [asdict(ask) | {"kind": ask.kind, "how": how(saga, ask)} for ask in self.pending()]

    def _expire(self) -> None:
        """What came while no worker ran is heard in one step, answers before timers: too late stays too late."""
        now = workflow.now().timestamp() * 1000
        for ask in self.pending():
            if ask.deadline <= now:
                self._time_out(ask)

    def _time_out(self, ask: Ask) -> None:
        self._book.close(ask.id, "expired")
        self._book.answers[ask.id] = Answer(choice="expired")

    async def _answered(self, ask: Ask, unless: Callable[[], bool]) -> bool:
        """Whether the wait ended before the deadline."""
        left = ask.deadline / 1000 - workflow.now().timestamp()
        if ask.id in self._book.answers:
            return True
        try:
            await workflow.wait_condition(
                lambda: ask.id in self._book.answers or unless(),
                timeout=timedelta(seconds=max(left, 0.001)),
                timeout_summary=f"{ask.id} expires",
            )
        except TimeoutError:
            return ask.id in self._book.answers
        return True

    def _note_closed(self, ask: Ask, answer: Answer) -> None:
        self._recorder.note(
            "ask.closed",
            task=ask.task,
            id=ask.id,
            about=ask.about,
            choice=answer.choice,
            by=answer.by,
            reason=one_line(answer.reason)[:300],
        )

    def _note_refused(self, choice: str, by: str, ruling: Ruling) -> None:
        self._recorder.note(
            "answer.refused", choice=choice, by=one_line(by)[:100], reason=ruling.reason[:300], ask=ruling.ask
        )


def _row(ask: Ask) -> dict[str, Any]:
    row = asdict(ask)
    row.pop("task")
    return {**row, "choices": list(ask.choices), "kind": ask.kind}


def details(saga: str, ask: Ask) -> str:
    """What Temporal's UI shows while a person is waited for."""
    head = f"**waiting for a person** ({ask.id}, digest `{ask.digest[:12]}`)"
    commands = "\n".join(f"* {choice}: `{command}`" for choice, command in how(saga, ask).items())
    return "\n\n".join((head, ask.sentence, commands, f"all that waits: `mendwork pending {saga}`", ROOM))
