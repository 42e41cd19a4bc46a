"""Money and places: what a build has spent, and how many of a project's tasks may run at once."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from activities.accounts.turns import Away
from activities.repository.landing import CompensateInput
from domain.errors import Busy
from domain.money.accounts import build_account
from domain.money.budget import Spent
from domain.ports.ledger import Ledger, Places


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentInput:
    """Whose money to count; ``task`` "" means the whole build."""

    build: str
    task: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceInput:
    """``holder`` is the task's saga, ``limit`` how many of the project's tasks may run at once."""

    project: str
    build: str
    holder: str
    limit: int


class Money:
    """Runs beside the store."""

    def __init__(self, *, ledger: Ledger, places: Places) -> None:
        self._ledger = ledger
        self._places = places
        self._away = Away()

    @activity.defn
    async def count_spent(self, request: SpentInput) -> Spent:
        """The account's state now."""
        return await self._ledger.spent(build_account(request.build, task=request.task))

    @activity.defn
    async def take_place(self, request: PlaceInput) -> None:
        """Hold one of the project's places; a repeat holds the same one. Raises Busy when all are taken: with the time
        after which to ask again, which grows with those who wait."""
        self._away.back(request.project, request.holder)
        try:
            await self._places.take(request.project, request.holder, build=request.build, limit=request.limit)
        except Busy as error:
            raise Busy(str(error), retry_after=self._away.send(request.project, request.holder)) from error

    @activity.defn
    async def give_place(self, request: PlaceInput) -> None:
        """Give the place back; a repeat is success."""
        await self._places.give(request.project, request.holder)

    @activity.defn
    async def release_build(self, request: CompensateInput) -> bool:
        """Compensation: every place of the build is free, and no call of it counts as running any more."""
        await self._places.free(request.build)
        await self._ledger.lose(request.build)
        return True
