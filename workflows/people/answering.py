"""What every saga that asks people can be told: approve, reject, answer, abort; as a signal (a fact) and as an update
(answered), in plain JSON, forgiving."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.human.asks import decode_answer

APPROVE = 'Approve what waits: {"digest": at least 8 hex digits, "by": who}.'
REJECT = 'Reject what waits: {"digest", "reason", "by"}; the reason goes back into planning, a release is taken back.'
ANSWER = 'Answer a question: {"ask", "choice": one of those that it names, "reason", "commit", "by"}.'
ABORT = 'End it and undo what it did: {"by", "reason"}.'


class Answering:
    """One pair of handlers for each thing that can be said; what it means is the saga's, in ``_say``."""

    async def _say(self, what: str, raw: Any) -> dict[str, str]:
        """Rule on what was said, and record it. Returns the ruling as plain JSON, and raises nothing of ours."""
        raise NotImplementedError

    @workflow.signal(name="approve", description=APPROVE)
    async def approve_signal(self, raw: Any = None) -> None:
        await self._say("approve", raw)

    @workflow.signal(name="reject", description=REJECT)
    async def reject_signal(self, raw: Any = None) -> None:
        await self._say("reject", raw)

    @workflow.signal(name="answer", description=ANSWER)
    async def answer_signal(self, raw: Any = None) -> None:
        await self._say("answer", raw)

    @workflow.signal(name="abort", description=ABORT)
    async def abort_signal(self, raw: Any = None) -> None:
        await self._say("abort", raw)

    @workflow.update(name="approve", description=APPROVE)
    async def approve_update(self, raw: Any = None) -> dict[str, str]:
        return await self._say("approve", raw)

    @workflow.update(name="reject", description=REJECT)
    async def reject_update(self, raw: Any = None) -> dict[str, str]:
        return await self._say("reject", raw)

    @workflow.update(name="answer", description=ANSWER)
    async def answer_update(self, raw: Any = None) -> dict[str, str]:
        return await self._say("answer", raw)

    @workflow.update(name="abort", description=ABORT)
    async def abort_update(self, raw: Any = None) -> dict[str, str]:
        return await self._say("abort", raw)

    @approve_update.validator
    def _approve_well_formed(self, raw: Any = None) -> None:
        decode_answer(raw, choice="approve")

    @reject_update.validator
    def _reject_well_formed(self, raw: Any = None) -> None:
        decode_answer(raw, choice="reject")

    @answer_update.validator
    def _answer_well_formed(self, raw: Any = None) -> None:
        decode_answer(raw)
