"""The kill table: before, during and after every activity, which build loses its worker there."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence

from tests.chaos.mortal_worker import MOMENTS, parsed
from tests.chaos.playing import Case

SOAK = os.environ.get("MENDWORK_SOAK") == "1"
SEED = int(os.environ.get("MENDWORK_SEED", "4"))
"""Which third is played when it is no soak."""

KILLS: Mapping[str, tuple[str, ...]] = {
    "take": (
        *("admit_build", "render_plan_prompt", "check_plan", "render_change_prompt", "apply_change"),
        *("rebase_commits", "take_commit", "fetch_target", "forward_target"),
        *("record_events", "register_undo", "count_spent", "take_place", "prepare_environment"),
    ),
    "retry": (
        *("fetch_base", "measure_base", "pin_snapshot+3", "adopt_plan", "render_again_prompt"),
        *("render_review_prompt", "check_review"),
        *("pack", "advance_head", "land_result", "call_model", "run_gates"),
        *("give_place", "close_undo", "release_build"),
    ),
    "aborted": ("retract_result", "rewind_target", "forget_build", "release_build", "close_undo"),
    "terminated": ("find_orphans", "examine_build", "expire_holds", "retract_result"),
}
"""By scene: what dies in it; "+3" spares the first three, which come before the tasks. In "aborted" and "terminated"
that is in the middle of the undoing (F39)."""

LOST = {"retry, during": ("build-calc-1/plan/1/1#1",)}
"""The tries of model calls that die in flight: the first call of a build is that for its plan. Of a worker that dies
before or after its call nothing is lost: then the call was not made, or its answer is in the store."""


def _cases() -> tuple[Case, ...]:
    table = [
        Case(name=f"{scene}, {moment}", scene=scene, orders=tuple(f"{activity}.{moment}" for activity in activities))
        for scene, activities in KILLS.items()
        for moment in MOMENTS
    ]
    # Three deaths use up an activity's tries: it has to start afresh all the same.
    thrice = tuple(f"{activity}.{moment}" for activity in ("apply_change", "record_events") for moment in MOMENTS)
    more = [
        Case(name="one step thrice", scene="retry", orders=thrice),
        Case(name="struck at random", scene="take", strikes=6, seed=SEED),
        Case(name="struck at random again", scene="retry", strikes=6, seed=SEED + 1),
    ]
    return (*table, *more)


CASES = _cases()
UNDISTURBED = tuple(Case(name=scene, scene=scene) for scene in KILLS)


def chosen() -> Sequence[Case]:
    """All cases in a soak; else a third, of every kind one."""
    if SOAK:
        return CASES
    chance = random.Random(SEED)
    return [chance.choice(CASES[first : first + 3]) for first in range(0, len(CASES), 3)]


def ordered() -> set[str]:
    """Every death that some case orders."""
    return {parsed(order)[0] for case in CASES for order in case.orders}
