"""Whether a phase took much more than the project's earlier phases of that name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from domain.money.usage import dollars
from domain.ports.store import Event
from domain.trace.rebuilding import DERIVED
from domain.trace.usual.taken import Taken

KIND = "phase.anomaly"
MEASURES = ("duration", "cost")
TIMES = 3
LEAST = 5
"""Earlier phases without which nothing is usual."""
LATEST = 20
"""Earlier phases that count, the newest: a project changes."""
MOST_SPARE_MILLIS = 10_000
MOST_SPARE_MICROS = 10_000
"""What may always be more, ten seconds and a cent: three times almost nothing is no news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """Medians of ``count`` earlier phases; ``cost_micros`` None where the cost of too few is known."""

    count: int
    millis: int
    cost_micros: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """``measures`` are those that are TIMES as much as usual: duration, cost."""

    taken: Taken
    usual: Usual
    measures: tuple[str, ...]


def usual_of(earlier: Sequence[Taken]) -> Usual | None:
    """Of phases of one name, the newest first; None where too few were whole."""
    whole = [each for each in earlier if each.fit and each.whole][:LATEST]
    if len(whole) < LEAST:
        return None
    costs = [each.cost_micros for each in whole if each.cost_micros is not None]
    return Usual(
        count=len(whole),
        millis=round(median(each.millis for each in whole)),
        cost_micros=round(median(costs)) if len(costs) >= LEAST else None,
    )


def judge(taken: Taken, earlier: Sequence[Taken]) -> Anomaly | None:
    """What stands out of a phase beside ``earlier`` ones of its name, the newest first; None where nothing does, where
    it is not fit to be compared, or where there is too little to compare with."""
    usual = usual_of(earlier)
    if usual is None or not taken.fit:
        return None
    found = []
    if _stands_out(taken.millis, usual.millis, spare=MOST_SPARE_MILLIS):
        found.append("duration")
    if _stands_out(taken.cost_micros, usual.cost_micros, spare=MOST_SPARE_MICROS):
        found.append("cost")
    return Anomaly(taken=taken, usual=usual, measures=tuple(found)) if found else None


def row_of(build: str, anomaly: Anomaly) -> Event:
    """As the log has it: beside the row that ended the phase, in a chain of its own that no saga counts on, and just
    before it in time, so that it is of the phase that it tells of."""
    taken, (_, run, sequence) = anomaly.taken, anomaly.taken.key
    return Event(
        first_run=f"{DERIVED}{run}",
        run=f"{DERIVED}{run}",
        sequence=sequence,
        build=build,
        kind=KIND,
        at=max(taken.began, taken.ended - 1),
        data=_data(anomaly),
    )


def _data(anomaly: Anomaly) -> dict[str, Any]:
    taken, usual = anomaly.taken, anomaly.usual
    return {
        "phase": taken.phase,
        "measures": list(anomaly.measures),
        "seconds": taken.millis / 1000,
        "usual_seconds": usual.millis / 1000,
        "cost_micros": taken.cost_micros,
        "usual_cost_micros": usual.cost_micros,
        "phases": usual.count,
        "sentence": sentence_of(anomaly),
    }


def sentence_of(anomaly: Anomaly) -> str:
    """For people."""
    taken, usual = anomaly.taken, anomaly.usual
    parts = {
        "duration": f"took {taken.millis / 1000:.1f} s, usually {usual.millis / 1000:.1f} s",
        "cost": f"cost {dollars(taken.cost_micros or 0)}, usually {dollars(usual.cost_micros or 0)}",
    }
    return f"{taken.phase} " + " and ".join(parts[measure] for measure in anomaly.measures)


def of_phase(phase: str, builds: Iterable[Sequence[Taken]]) -> list[Taken]:
    """The phases of one name, of builds that come newest first."""
    return [each for taken in builds for each in reversed(taken) if each.phase == phase]


def _stands_out(value: int | None, usual: int | None, *, spare: int) -> bool:
    """Three times nothing is nothing: where it is usually free, nothing is said."""
    return bool(value is not None and usual and value >= TIMES * usual and value - usual >= spare)
