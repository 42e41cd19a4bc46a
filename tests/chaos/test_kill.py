"""kill -9 of any worker at any step: the build goes on to the tree of an undisturbed one, and nothing is done twice."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adapters.settings import load_settings
from adapters.store import open_store
from domain.ports.store import Event
from tests.chaos.mortal_worker import deaths, order_death
from tests.e2e.workshop import ANSWERS, FILES, TESTS, Workshop, git

BACK_WITHIN_SECONDS = 15
MORTAL_DEV = (sys.executable, "-P", "-m", "tests.chaos.dev")
SLOW_TESTS = TESTS.replace(
    "    def test_zero", "    def test_slow(self):\n        time.sleep(0.5)\n\n    def test_zero"
)
SLOW_FILES = {**FILES, "test_calc.py": "import time\n" + SLOW_TESTS}
SLOW_ANSWERS: list[dict[str, Any]] = [{**entry, "faults": [{"kind": "slow", "seconds": 0.6}]} for entry in ANSWERS]

# Each build loses several workers, some more than once; together they cover every step of a build, each before, in the
# middle of or after its effect. Three deaths in one activity use up its tries: it has to start afresh all the same.
ORDERS = {
    "each worker once": ["admit_build.after", "call_model.during", "run_gates.during", "record_events.before"],
    "around the plan": ["fetch_base.after", "render_plan_prompt.before", "call_model.after", "check_plan.after"],
    "around the tests": ["render_change_prompt.after", "call_model.before", "run_gates.before", "run_gates.after"],
    "one step thrice": ["apply_change.before", "apply_change.during", "apply_change.after", "record_events.after"],
    "around the commits": ["advance_head.before", "advance_head.after", "land_result.before", "land_result.after"],
    "the writer": ["record_events.during", "register_undo.after", "close_undo.before"],
}


def workshop(folder: Path) -> Workshop:
    return Workshop(folder, answers=SLOW_ANSWERS, files=SLOW_FILES)


def tree_of(at: Workshop, build: str) -> str:
    return git(at.repository, "rev-parse", f"mendwork/{build}^{{tree}}").strip()


def subjects(at: Workshop, build: str) -> list[str]:
    return git(at.repository, "log", "--format=%s", f"mendwork/{build}").splitlines()


def events_of(at: Workshop, build: str) -> list[Event]:
    async def read() -> list[Event]:
        settings = load_settings(start=at.root, environment=at.environment)
        async with await open_store(settings.store_url) as store:
            return [event for _, event in await store.events.read(build)]

    return asyncio.run(read())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    at = workshop(tmp_path_factory.mktemp("undisturbed") / "w")
    with at.running():
        ran = at.mendwork("build", "spec.md")
    assert ran.code == 0, ran.err
    return at


@pytest.mark.parametrize("orders", ORDERS.values(), ids=ORDERS)
def test_a_build_survives_the_death_of_its_workers(orders: list[str], undisturbed: Workshop, tmp_path: Path) -> None:
    at = workshop(tmp_path / "w")
    for order in orders:
        order_death(at.state, *order.split("."))
    with at.running(dev=MORTAL_DEV):
        ran = at.mendwork("build", "spec.md", seconds=110)
        status = at.status("build-calc-1")

    assert ran.code == 0, ran.err
    died = deaths(at.state)
    assert set(died) == set(orders)
    assert all(seconds is not None and seconds <= BACK_WITHIN_SECONDS for seconds in died.values()), died
    assert tree_of(at, "build-calc-1") == tree_of(undisturbed, "build-calc-1")
    assert subjects(at, "build-calc-1") == ["Add square", "Add mul", "start"]

    events = events_of(at, "build-calc-1")
    for run in {event.run for event in events}:
        assert sorted(e.sequence for e in events if e.run == run) == list(
            range(1, sum(e.run == run for e in events) + 1)
        )
    kinds = Counter(event.kind for event in events)
    assert kinds == Counter(event.kind for event in events_of(undisturbed, "build-calc-1"))

    answered = Counter(line["key"] for line in at.billed() if line["fault"] in ("", "slow"))
    lost = 1 if "call_model.during" in orders else 0
    assert sum(answered.values()) <= len(answered) + lost
    assert len(answered) == 4
    assert status["calls_unknown"] == lost  # an unknown cost is not a cost of zero
