"""A workflow that hears what the command line says to a build, and rules as it is told to."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError


@workflow.defn(name="RuledBuild")
class RuledBuild:
    """``heard`` lists ("update" or "signal", its name, its words). What names "nonsense" is malformed."""

    @workflow.init
    def __init__(self, rulings: dict[str, Any]) -> None:
        self._rulings = rulings
        self._heard: list[tuple[str, str, Any]] = []
        self._over = False

    @workflow.run
    async def run(self, rulings: dict[str, Any]) -> None:
        """Until ``end``."""
        await workflow.wait_condition(lambda: self._over)

    @workflow.signal
    def end(self) -> None:
        """The build is over."""
        self._over = True

    @workflow.query
    def heard(self) -> list[tuple[str, str, Any]]:
        """Everything, in order."""
        return self._heard

    def _rule(self, what: str, words: Any) -> dict[str, Any]:
        self._heard.append(("update", what, words))
        queue = self._rulings.get(what) or [{"outcome": "accepted", "reason": f"{what} accepted", "ask": ""}]
        ruling: dict[str, Any] = queue.pop(0) if len(queue) > 1 else queue[0]
        return ruling

    @workflow.update
    async def approve(self, words: Any) -> dict[str, Any]:
        """As BuildSaga's."""
        return self._rule("approve", words)

    @approve.validator
    def _well_formed(self, words: Any) -> None:
        if words.get("reason") == "nonsense":
            raise ApplicationError("the reason is nonsense", type="InvalidInput")

    @workflow.update
    async def reject(self, words: Any) -> dict[str, Any]:
        """As BuildSaga's."""
        return self._rule("reject", words)

    @workflow.update
    async def answer(self, words: Any) -> dict[str, Any]:
        """As BuildSaga's."""
        return self._rule("answer", words)

    @workflow.update
    async def edit_plan(self, words: Any) -> dict[str, Any]:
        """As BuildSaga's."""
        return self._rule("edit_plan", words)

    @workflow.update
    async def raise_limits(self, words: Any) -> dict[str, Any]:
        """As BuildSaga's."""
        return self._rule("raise_limits", words)

    @workflow.update
    async def abort(self, words: Any) -> dict[str, Any]:
        """As BuildSaga's."""
        return self._rule("abort", words)

    @workflow.signal(name="approve")
    def approve_signal(self, words: Any) -> None:
        """As BuildSaga's."""
        self._heard.append(("signal", "approve", words))
