"""Money as a whole, and the places of a project's tasks. All methods are safe across processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.money.budget import Spent

COST_BY = ("build", "phase", "task", "role", "model", "day", "project", "user")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """What the calls of one group took. ``name`` is the group's: a task's id, a model, a UTC date; "" for calls that
    belong to none, as planning does to no task. ``unpriced`` answers have a cost that nobody knows."""

    name: str
    spent: Spent
    input_tokens: int = 0
    output_tokens: int = 0
    unpriced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A try of which nobody knows what the provider billed: ``bound`` micro-dollars count for it. ``money`` is
    "unknown" or "written_off"; ``at`` its start in ms since 1970."""

    key: str
    number: int
    build: str
    model: str
    money: str
    bound: int
    at: int


class Ledger(Protocol):
    """Sums over calls, and what becomes of those that were lost in flight."""

    async def spent(self, account: str) -> Spent:
        """The state of an account (``domain.money.accounts`` names them); zeros for one that was never charged."""
        ...

    async def costs(self, by: str, *, build: str = "", project: str = "") -> Sequence[CostLine]:
        """All calls, of one build, or of one project, grouped by one of COST_BY and in order of its names.

        Raises UnknownName for another group.
        """
        ...

    async def open_calls(self, *, build: str = "") -> Sequence[OpenCall]:
        """Calls that a person could reconcile with the provider's bill, oldest first."""
        ...

    async def lose(self, build: str) -> int:
        """The build's running calls become unknown: nobody waits for them any more. Returns how many."""
        ...

    async def expire(self, *, before: int) -> int:
        """Write off what is held or unknown for calls that started before ``before`` (ms since 1970): it still counts,
        but is looked for no more. Returns how many."""
        ...

    async def reconcile(self, key: str, number: int, *, micros: int) -> None:
        """Settle an open call by the provider's bill. Repeating the same changes nothing.

        Raises KeyConflict when there is no such call, or it is settled otherwise.
        """
        ...


class Places(Protocol):
    """How many of a project's tasks run at once, over all its builds."""

    async def take(self, project: str, holder: str, *, build: str, limit: int) -> None:
        """Hold one of ``limit`` places; a repeat holds the same one. Raises Busy when all are taken."""
        ...

    async def give(self, project: str, holder: str) -> None:
        """Give it back; without one this changes nothing."""
        ...

    async def free(self, build: str) -> int:
        """Give back every place of a build. Returns how many it held."""
        ...
