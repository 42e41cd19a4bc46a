"""Ledger and places in one process's memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adapters.store.content import no_place
from adapters.store.money.memory import MemoryCalls
from domain.errors import KeyConflict, UnknownName
from domain.money.accounts import day_of
from domain.money.budget import Spent
from domain.money.charge import HELD, OPEN, SETTLED, UNKNOWN, Charge
from domain.ports.ledger import COST_BY, CostLine, OpenCall
from domain.ports.store import CallTry


class MemoryLedger:
    """``domain.ports.ledger.Ledger``."""

    def __init__(self, calls: MemoryCalls) -> None:
        self._calls = calls

    async def spent(self, account: str) -> Spent:
        return self._calls.spent(account)

    async def costs(self, by: str, *, build: str = "", project: str = "") -> Sequence[CostLine]:
        if by not in COST_BY:
            raise UnknownName.among("grouping of costs", by, COST_BY)
        groups: dict[str, list[CallTry]] = {}
        for call in self._calls.all():
            if build in ("", call.build) and project in ("", call.payer.project):
                groups.setdefault(_group(call, by), []).append(call)
        return [_line(name, groups[name]) for name in sorted(groups)]

    async def open_calls(self, *, build: str = "") -> Sequence[OpenCall]:
        return [
            OpenCall(
                key=call.key,
                number=call.number,
                build=call.build,
                model=call.model,
                money=call.charge.money,
                bound=call.charge.bound,
                at=call.at,
            )
            for call in self._calls.all()
            if call.charge.money in OPEN and build in ("", call.build)
        ]

    async def lose(self, build: str) -> int:
        return self._calls.change(lambda call: call.build == build and call.state == "running", Charge.lost)

    async def expire(self, *, before: int) -> int:
        return self._calls.change(
            lambda call: call.charge.money in (HELD, UNKNOWN) and call.at < before, Charge.expired
        )

    async def reconcile(self, key: str, number: int, *, micros: int) -> None:
        found = [call.charge for call in self._calls.all() if (call.key, call.number) == (key, number)]
        if not found or found[0].money == HELD:
            raise KeyConflict(f"call {key}, try {number}, is not one of those whose cost is unknown")
        if found[0].money == SETTLED and found[0].settled != micros:
            raise KeyConflict(f"call {key}, try {number}, is settled already, by another amount")
        self._calls.change(lambda call: (call.key, call.number) == (key, number), lambda charge: charge.billed(micros))


class MemoryPlaces:
    """``domain.ports.ledger.Places``."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], str] = {}

    async def take(self, project: str, holder: str, *, build: str, limit: int) -> None:
        if (project, holder) in self._places:
            return
        if sum(place[0] == project for place in self._places) >= limit:
            raise no_place(project, limit)
        self._places[project, holder] = build

    async def give(self, project: str, holder: str) -> None:
        self._places.pop((project, holder), None)

    async def free(self, build: str) -> int:
        held = [place for place, holder in self._places.items() if holder == build]
        for place in held:
            del self._places[place]
        return len(held)


def _group(call: CallTry, by: str) -> str:
    if by == "day":
        return day_of(call.at)
    name: str = call.model if by == "model" else getattr(call.payer, by)
    return name


def _line(name: str, calls: Iterable[CallTry]) -> CostLine:
    line = CostLine(name=name, spent=Spent())
    for call in calls:
        usage = call.usage
        line = CostLine(
            name=name,
            spent=line.spent + call.charge.counted,
            input_tokens=line.input_tokens + (usage.input_tokens if usage else 0),
            output_tokens=line.output_tokens + (usage.output_tokens if usage else 0),
            unpriced=line.unpriced + (call.state == "answered" and usage is not None and usage.cost_micros is None),
        )
    return line
