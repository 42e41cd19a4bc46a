"""What one call counts for on its accounts, from its reservation to its settlement."""

from __future__ import annotations

from dataclasses import dataclass, replace

from domain.money.budget import Spent
from domain.money.usage import Bill

HELD = "held"
UNKNOWN = "unknown"
WRITTEN_OFF = "written_off"
SETTLED = "settled"
OPEN = (UNKNOWN, WRITTEN_OFF)
"""Of these nobody has said yet what the provider billed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """``bound`` counts in full until the call is settled; then ``settled`` does. Micro-dollars."""

    bound: int
    money: str = HELD
    settled: int = 0

    @property
    def counted(self) -> Spent:
        """Its part of every account that it is counted on."""
        return Spent(**{self.money: self.settled if self.money == SETTLED else self.bound}, calls=1)

    def ended(self, bill: Bill | None) -> Charge:
        """The call is over. Without a bill, or without a cost on it, nobody knows what it cost."""
        if bill is None:
            return self.lost()
        if bill.usage is None:
            return self.billed(0)
        if bill.usage.cost_micros is None:
            return self.lost() if self.bound else self.billed(0)
        return self.billed(bill.usage.cost_micros)

    def billed(self, micros: int) -> Charge:
        """The provider, or a person who read its bill, said what it cost."""
        return replace(self, money=SETTLED, settled=micros)

    def lost(self) -> Charge:
        """Nobody will hear of it any more; it may have been billed."""
        return replace(self, money=UNKNOWN) if self.money == HELD else self

    def expired(self) -> Charge:
        """Nobody could reconcile it in time: it goes on counting, and is looked for no more."""
        return replace(self, money=WRITTEN_OFF) if self.money in (HELD, UNKNOWN) else self
