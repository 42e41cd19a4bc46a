"""What the phases of one build took, read from its log row by row."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from domain.ports.store import Event
from domain.trace.order import key_of
from domain.trace.rebuilding import Key
from domain.trace.spending import CALLS, logical_call, spending_of

ENDS = ("build.phase", "build.ended")
"""Rows that may end a phase."""
FINISHED = ("succeeded", "partial", "undelivered", "rolled back", "unclear", "stopped")
"""Ends before which the last phase did what it is for."""
BY_PEOPLE = ("aborted", "escalated")
PHASES = (
    *("intake", "base", "plan", "approve_plan", "forecast", "tasks"),
    *("review", "approve", "landing", "deliver"),
)
FOR_PEOPLE = ("approve_plan", "approve")
"""Phases that wait for an answer and do little else."""
FORECAST = "forecast"
"""The last phase of a dry run, and of no other build."""
INTAKE = "intake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One phase that ended, with the key of the row that ended it. ``millis`` is workflow time without what it waited
    for people; ``cost_micros`` is None where the cost of a call is not known. Times in ms since 1970.

    ``fit`` is False where it cannot be compared with others of its name: a person ended it, it mostly waits for people,
    a reset left the run that began it, or it only took over what another build had done. ``whole`` is False of one that
    failed: what it took says nothing about the next.
    """

    phase: str
    began: int
    ended: int
    millis: int
    cost_micros: int | None
    key: Key
    fit: bool = True
    whole: bool = True


@dataclass(slots=True, kw_only=True)
class Phases:
    """The fold of a log: ``take`` each row once, in the order of commit. ``over`` when its last row so far ends it,
    ``dry`` when the build is a dry run, as far as it can be seen by then."""

    taken: list[Taken] = field(default_factory=list)
    over: bool = False
    dry: bool = False
    _restored: bool = field(default=False, init=False)
    _phase: str = field(default=INTAKE, init=False)
    _began: int = field(default=0, init=False)
    _run: str = field(default="", init=False)
    _waited: int = field(default=0, init=False)
    _waits: dict[str, int] = field(default_factory=dict, init=False)
    _cost: int | None = field(default=0, init=False)
    _paid: set[tuple[object, ...]] = field(default_factory=set, init=False)

    def take(self, event: Event) -> None:
        """The next row; kinds that tell nothing of phases are left out."""
        match event.kind:
            case "build.phase":
                self._enter(event)
            case "build.ended":
                status = str(event.data.get("status", ""))
                self._end(event, fit=status not in BY_PEOPLE, whole=status in FINISHED)
                self.over, self._paid = True, set()
                self.dry = self.dry or status == "planned"
            case "build.started":
                self._began, self._run = event.at, event.run
            case "build.continued":
                self._run = event.run
            case "build.restored":
                self._restored = True
            case "ask.opened":
                self._waits.setdefault(str(event.data.get("id")), event.at)
            case "ask.closed":
                self._go_on(str(event.data.get("id")), event.at)
            case "build.paused":
                self._waits.setdefault("", event.at)
            case "build.resumed":
                self._go_on("", event.at)
            case _ if event.kind in CALLS:
                self._pay(event)

    def fork(self) -> Phases:
        """One that can be taken further by itself."""
        made = copy.copy(self)
        made.taken, made._waits, made._paid = list(self.taken), dict(self._waits), set(self._paid)
        return made

    def _enter(self, event: Event) -> None:
        """A phase that a run goes on with, or that is named again at its begin, is one with what was before."""
        name = str(event.data.get("phase", ""))
        if name == self._phase and event.run == self._run and not self.over:
            return
        self._end(event)
        self._phase, self._began, self._run, self.over = name, event.at, event.run, False
        self.dry = self.dry or name == FORECAST

    def _end(self, event: Event, *, fit: bool = True, whole: bool = True) -> None:
        if self._began and not self.over:
            odd = self._phase in FOR_PEOPLE or (self._restored and self._phase == INTAKE)
            self.taken.append(
                Taken(
                    phase=self._phase,
                    began=self._began,
                    ended=event.at,
                    millis=max(0, event.at - self._began - self._waited - self._since(event.at)),
                    cost_micros=self._cost,
                    key=key_of(event),
                    fit=fit and not odd and event.run == self._run,
                    whole=whole,
                )
            )
        self._cost, self._waited = 0, 0
        self._waits = dict.fromkeys(self._waits, event.at)

    def _since(self, at: int) -> int:
        """How long somebody is waited for already."""
        return max(0, at - min(self._waits.values())) if self._waits else 0

    def _go_on(self, name: str, at: int) -> None:
        if name in self._waits:
            self._waited += self._since(at)
            del self._waits[name]
            self._waits = dict.fromkeys(self._waits, at)

    def _pay(self, event: Event) -> None:
        call = logical_call(event)
        if call not in self._paid:
            self._paid.add(call)
            spent = spending_of(event)
            self._cost = None if self._cost is None or spent.unpriced else self._cost + spent.cost_micros
