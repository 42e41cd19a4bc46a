"""Calls, ledger and places in one process's memory: every account is the sum of its calls, reckoned when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from adapters.store.content import canonical
from domain.errors import KeyConflict, Overtaken
from domain.money.accounts import accounts_of, day_of, limits_of
from domain.money.budget import Spent
from domain.money.charge import Charge
from domain.money.reserving import admission, warnings
from domain.money.usage import Quote
from domain.ports.language_model import CallKey
from domain.ports.store import BegunCall, CallTry, FailedCall, RecordedCall


@dataclass(slots=True)
class Kept:
    """A try with what began and ended it."""

    shown: CallTry
    begun: BegunCall
    ended: RecordedCall | FailedCall | None = None
    told: tuple[str, ...] = ()


class MemoryCalls:
    """``domain.ports.store.Calls``."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], Kept] = {}
        self._prices: dict[str, list[Quote]] = {}
        self._warned: set[tuple[str, int]] = set()

    def kept(self) -> list[Kept]:
        """Every try, in order of their start."""
        return list(self._kept.values())

    async def find(self, key: CallKey, *, request: str) -> RecordedCall | None:
        kept = self._answered(str(key))
        if kept is None or not isinstance(kept.ended, RecordedCall):
            return None
        if kept.begun.request != request:
            raise KeyConflict(f"call {key} has answered another request")
        return replace(kept.ended, bound=kept.begun.bound, warnings=kept.told)

    async def begin(self, key: CallKey, call: BegunCall) -> int:
        if self._answered(str(key)) is not None:
            raise Overtaken(f"call {key} was answered meanwhile")
        earlier = [kept for kept in self._kept.values() if kept.shown.key == str(key)]
        for kept in earlier:
            self.lose(kept)
        bound = call.bound or 0
        spent = {account: self.spent(account) for account in accounts_of(call.payer, day=day_of(call.at))}
        refused = admission(spent, call.payer, call.budget, bound=bound, at=call.at)
        if refused is not None:
            raise refused
        number = len(earlier) + 1
        shown = CallTry(
            key=str(key),
            build=call.payer.build,
            number=number,
            model=call.model,
            state="running",
            fault="",
            usage=None,
            payer=call.payer,
            attempt=key.attempt,
            at=call.at,
            charge=Charge(bound=bound),
            price=self._version(call),
        )
        self._kept[str(key), number] = Kept(shown, call)
        return number

    async def end(self, key: CallKey, number: int, *, outcome: RecordedCall | FailedCall) -> tuple[str, ...]:
        kept = self._kept.get((str(key), number))
        if kept is None:
            raise KeyConflict(f"call {key} has no try {number}")
        if isinstance(outcome, RecordedCall) and outcome.request != kept.begun.request:
            raise KeyConflict(f"call {key}, try {number}, answers another request than it began")
        if isinstance(outcome, RecordedCall):
            canonical("pinned", dict(outcome.pinned))
        other = self._answered(str(key))
        overtaken = isinstance(outcome, RecordedCall) and other is not None and other is not kept
        if kept.shown.state in ("running", "unknown"):
            kept.ended = outcome
            kept.shown = _ended(kept.shown, outcome, overtaken=overtaken)
            kept.told = self._near_limits(kept)
        elif kept.ended != outcome:
            raise KeyConflict(f"call {key}, try {number}, has ended otherwise")
        if overtaken:
            raise Overtaken(f"call {key} was answered by another try before try {number}")
        return kept.told

    async def tries(self, build: str) -> Sequence[CallTry]:
        return [call for call in self.all() if call.build == build]

    def all(self) -> list[CallTry]:
        """Of every build."""
        return [kept.shown for kept in self._kept.values()]

    def spent(self, account: str) -> Spent:
        """The sum of the calls that are counted there."""
        counted = (call.charge.counted for call in self.all() if account in _accounts(call))
        return sum(counted, start=Spent())

    def lose(self, kept: Kept) -> None:
        """What runs runs no more."""
        if kept.shown.state == "running":
            kept.shown = replace(kept.shown, state="unknown", charge=kept.shown.charge.lost())

    def change(self, which: Callable[[CallTry], bool], change: Callable[[Charge], Charge]) -> int:
        """Change the charge of every such call; none of them runs any more. Returns how many."""
        found = [kept for kept in self._kept.values() if which(kept.shown)]
        for kept in found:
            self.lose(kept)
            kept.shown = replace(kept.shown, charge=change(kept.shown.charge))
        return len(found)

    def _answered(self, key: str) -> Kept | None:
        kept = (each for each in self._kept.values() if each.shown.key == key and each.shown.state == "answered")
        return next(kept, None)

    def _version(self, call: BegunCall) -> int:
        if call.quote is None:
            return 0
        known = self._prices.setdefault(call.model, [])
        if not known or known[-1] != call.quote:
            known.append(call.quote)
        return len(known)

    def _near_limits(self, kept: Kept) -> tuple[str, ...]:
        call = kept.shown
        if call.state != "answered":
            return ()
        limits = limits_of(call.payer, kept.begun.budget, day=day_of(call.at))
        near = warnings({account: self.spent(account) for account in _accounts(call)}, limits)
        told = tuple(sentence for account, sentence in near.items() if (account, limits[account]) not in self._warned)
        self._warned |= {(account, limits[account]) for account in near}
        return told


def _accounts(call: CallTry) -> tuple[str, ...]:
    return accounts_of(call.payer, day=day_of(call.at))


def _ended(call: CallTry, outcome: RecordedCall | FailedCall, *, overtaken: bool) -> CallTry:
    charge = call.charge.ended(outcome.bill)
    usage = outcome.bill.usage if outcome.bill else None
    if isinstance(outcome, FailedCall):
        state = "unknown" if outcome.bill is None else "failed"
        return replace(call, state=state, fault=outcome.fault, usage=usage, charge=charge)
    state, fault = ("failed", Overtaken.__name__) if overtaken else ("answered", "")
    answered = replace(call, model=outcome.model, pinned=dict(outcome.pinned), usage=usage, charge=charge)
    return replace(answered, state=state, fault=fault)
