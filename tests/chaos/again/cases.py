"""The kill table of what comes after a build: a dry run, a build that goes on from a snapshot, and the housekeeper."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.cases import SEED, SOAK
from tests.chaos.mortal_worker import MOMENTS

PLANNING, RESUMING, KEEPING = "a dry run", "going on", "keeping house"

KILLS: Mapping[str, tuple[str, ...]] = {
    PLANNING: ("forecast_build",),
    RESUMING: ("find_snapshot", "restore_snapshot", "pin_snapshot"),
    KEEPING: ("sweep_blobs", "list_pins", "judge_pins", "drop_pins", "sweep_environments", "clear_folders"),
}
"""By chapter: what dies in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``orders`` are the deaths of each chapter."""

    name: str
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _turned(turn: int) -> Case:
    """Every activity dies once, each at another moment than the next; after three turns each died at all."""
    orders, number = {}, turn
    for chapter, activities in KILLS.items():
        orders[chapter] = tuple(f"{name}.{MOMENTS[(number + n) % 3]}" for n, name in enumerate(activities))
        number += len(activities)
    return Case(name=f"every step, turn {turn + 1}", orders=orders)


UNDISTURBED = Case(name="undisturbed")
CASES = tuple(_turned(turn) for turn in range(3))


def chosen() -> Sequence[Case]:
    """All cases in a soak, else one."""
    return CASES if SOAK else [random.Random(SEED).choice(CASES)]


def ordered() -> set[str]:
    """Every death that some case orders."""
    return {order for case in CASES for orders in case.orders.values() for order in orders}
