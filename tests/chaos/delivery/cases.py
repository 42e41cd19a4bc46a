"""The kill table of deliveries: in which chapter which activity's worker dies, and at which moment."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.cases import SEED, SOAK
from tests.chaos.mortal_worker import MOMENTS, parsed

FIRST, BREACHED, ABORTED, BUILT, UNCLEAR = "first", "breached", "aborted", "built", "unclear"

KILLS: Mapping[str, tuple[str, ...]] = {
    FIRST: (
        *("admit_delivery", "open_release", "find_release", "pin_commit", "record_release", "join_lane"),
        *("recall_releases", "snapshot_site", "assess_change", "build_artifact", "start_unit", "switch_traffic"),
        *("prove_live", "run_integration", "count_past", "pack", "run_step", "measure_window"),
    ),
    BREACHED: (
        *("start_unit+1", "find_unit", "switch_traffic+1", "prove_live+1", "restore_traffic", "undo_step"),
        *("retire_unit", "forget_build", "close_undo+2", "register_undo+3", "record_events+5"),
    ),
    ABORTED: ("restore_traffic", "retire_unit", "close_undo+1"),
    BUILT: ("look_at_holder", "prune_units"),
    UNCLEAR: ("restore_traffic", "retire_unit"),
}
"""By chapter: what dies in it; "+1" spares the first one, as that of staging. Where something is undone, that is in the
middle of the undoing (F37 to F39)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``orders`` are the deaths of each chapter, as "start_unit+1.after"; with ``strikes``, so many workers die at
    moments that ``seed`` draws."""

    name: str
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    strikes: int = 0
    seed: int = 0


def _turned(turn: int, half: int) -> Case:
    """Every other activity dies once, each at another moment than the next; after three turns each died at all."""
    orders, number = {}, 0
    for chapter, activities in KILLS.items():
        each = [f"{name}.{MOMENTS[(number + n + turn) % 3]}" for n, name in enumerate(activities)]
        orders[chapter] = tuple(order for n, order in enumerate(each, number) if n % 2 == half)
        number += len(activities)
    return Case(name=f"every other step, {('even', 'odd')[half]}, turn {turn + 1}", orders=orders)


UNDISTURBED = Case(name="undisturbed")
CASES = (
    *(_turned(turn, 0) for turn in range(3)),
    *(_turned(turn, 1) for turn in range(3)),
    Case(name="struck at random", strikes=10, seed=SEED),
    Case(name="struck at random again", strikes=10, seed=SEED + 1),
    Case(name="struck at random once more", strikes=20, seed=SEED + 2),
)


def chosen() -> Sequence[Case]:
    """All cases in a soak; else a third, of every kind one."""
    if SOAK:
        return CASES
    chance = random.Random(SEED)
    return [chance.choice(CASES[first : first + 3]) for first in range(0, len(CASES), 3)]


def ordered() -> set[str]:
    """Every death that some case orders."""
    return {parsed(order)[0] for case in CASES for orders in case.orders.values() for order in orders}
