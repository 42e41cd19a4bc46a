"""A workflow that hears what the command line says to a delivery, or to a lane."""

from __future__ import annotations

from typing import Any

from temporalio import workflow


@workflow.defn(name="DeliverySaga")
class Heard:
    """A saga, or a lane, that only hears."""

    @workflow.init
    def __init__(self, words: Any = None) -> None:
        self._heard: list[Any] = [words]
        self._over = False

    @workflow.run
    async def run(self, words: Any = None) -> None:
        """Until ``end``."""
        await workflow.wait_condition(lambda: self._over)

    @workflow.signal
    def end(self) -> None:
        """It is over."""
        self._over = True

    @workflow.query
    def heard(self) -> list[Any]:
        """The input, and what was said."""
        return self._heard

    @workflow.query
    def state(self) -> Any:
        """As the lane's."""
        return self._heard[0]

    def _hear(self, what: str, words: Any) -> dict[str, str]:
        self._heard.append([what, words])
        return {"outcome": "accepted", "reason": f"{what} is heard", "ask": ""}

    @workflow.update
    def roll_back(self, words: Any) -> dict[str, str]:
        """As DeliverySaga's."""
        return self._hear("roll_back", words)

    @workflow.update
    def approve(self, words: Any) -> dict[str, str]:
        """As DeliverySaga's."""
        return self._hear("approve", words)

    @workflow.update
    def answer(self, words: Any) -> dict[str, str]:
        """As DeliverySaga's."""
        return self._hear("answer", words)

    @workflow.update
    def acknowledge(self, words: Any) -> dict[str, str]:
        """As the lane's."""
        return self._hear("acknowledge", words)
