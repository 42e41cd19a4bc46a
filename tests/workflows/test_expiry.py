"""Nobody ever answers: every kind of ask ends by itself after its time, as the README's table of asks says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.repository.merging import RebasedCommit
from activities.reviewing import FoundHigh
from domain.build.project import Consent, Limits
from domain.delivery.project import Delivery, Step
from domain.kpi.window import Window
from tests.workflows.deliveries import GOOD, PRODUCTION_BEFORE, QUICK, Outside
from tests.workflows.fakes import CLEAN, GREEN, RED, World
from tests.workflows.running import build
from tests.workflows.test_delivery_saga import failure

SOON = Consent(approve=(), review=False, question_seconds=0.4, approval_seconds=0.6)
LENGTHS = {"task": 400, "review": 400, "landing": 400, "plan": 600, "change": 600, "release": 600, "final": 600}
HIGH = replace(CLEAN, high=(FoundHigh(task="store", sentence="store.py:3: loses data", report="told"),))
THIN = replace(GOOD, asked=20, failed=0)
FINAL = Step(name="drop", run=("drop", "old"), kind="final")
UNSURE = Delivery(
    target="local", run=("serve",), watch=replace(QUICK, seconds=2, on_no_data="ask", on_inconclusive="ask")
)


@dataclass(frozen=True, kw_only=True)
class Silence:
    """A build whose ``asks`` come to nothing, in this order: its ``status``, whether anything ``landed`` on a branch of
    its own, and a part of the ``sentence`` that it ends with. ``world`` is what makes it ask."""

    asks: tuple[str, ...]
    status: str
    landed: bool
    sentence: str
    consent: Consent = SOON
    world: dict[str, Any] = field(default_factory=dict)


REVIEWED = {"review": lambda _: HIGH, "limits": Limits(sent_back=0)}
SILENCES = (
    Silence(
        asks=("plan",),
        consent=replace(SOON, approve=("plan",)),
        status="escalated",
        landed=False,
        sentence="nobody approved the plan within 0.6 s",
    ),
    Silence(
        asks=("change",),
        consent=replace(SOON, approve=("change",)),
        status="escalated",
        landed=False,
        sentence="nobody approved the change within 0.6 s; it was not landed",
    ),
    Silence(
        asks=("task",),
        status="partial",
        landed=True,
        sentence="without api (3 attempts were not enough",
        world={"gates": lambda r: RED if "-task-api" in r.label else GREEN},
    ),
    Silence(
        asks=("review",),
        consent=replace(SOON, review=True),
        status="succeeded",
        landed=True,
        sentence="on branch mendwork/",
        world=REVIEWED,
    ),
    Silence(
        asks=("review", "change"),
        consent=replace(SOON, review=True, approve=("change",)),
        status="escalated",
        landed=False,
        sentence="nobody approved the change",
        world=REVIEWED,
    ),
    Silence(
        asks=("landing",),
        consent=replace(SOON, land="target"),
        status="succeeded",
        landed=True,
        sentence="conflicts in app.py; the result is on its own branch",
        world={
            "target": lambda: "c9",
            "rebase": lambda _: RebasedCommit(commit="", conflicts=("app.py",), report="both"),
        },
    ),
)


@pytest.mark.parametrize("silence", SILENCES, ids=lambda silence: "-".join(silence.asks))
async def test_what_nobody_answers_ends_after_its_time_as_the_table_says(client: Client, silence: Silence) -> None:
    world = World(consent=silence.consent, **silence.world)
    if silence.status == "escalated":
        with pytest.raises(WorkflowFailureError):
            await build(client, world)
    else:
        assert (await build(client, world))["status"] == silence.status
    closed = [(e.data["about"], e.data["choice"]) for e in world.events if e.kind == "ask.closed"]
    assert closed == [(about, "expired") for about in silence.asks]
    opened = [e.data for e in world.events if e.kind == "ask.opened"]
    assert all(data["deadline"] - data["opened"] == LENGTHS[data["about"]] for data in opened)
    ended = next(e.data for e in world.events if e.kind == "build.ended")
    assert (ended["status"], silence.sentence in ended["sentence"]) == (silence.status, True), ended
    assert bool(world.of("land_result")) == silence.landed
    assert world.of("forward_target") == []
    if silence.asks == ("review", "change"):
        findings = world.of("pack")[-1].document["findings"]  # what the approval shows
        assert (findings["high"], findings["by"]) == (1, "nobody: not answered in time")
        assert "store: store.py:3: loses data" in findings["left"]


@pytest.mark.parametrize(
    ("about", "status", "kind", "more"),
    [
        ("release", "undelivered", "Escalated", {"consent": replace(SOON, approve=("release",))}),
        ("final", "undelivered", "Escalated", {"delivery": replace(UNSURE, steps=(FINAL,))}),
        ("watch", "rolled back", "WatchEnded", {"window": lambda o: thin(o.number)}),
    ],
)
async def test_a_release_that_nobody_decides_about_changes_nothing_in_the_end(
    client: Client, about: str, status: str, kind: str, more: dict[str, Any]
) -> None:
    outside = Outside(**{"delivery": UNSURE, "consent": SOON, **more})
    error = await failure(client, outside)
    assert (error.type, outside.releases[-1].status) == (kind, status)
    assert [e.data["choice"] for e in outside.events if e.kind == "ask.closed"] == ["expired"]
    opened = outside.event("ask.opened")
    assert (opened["about"], opened["deadline"] - opened["opened"]) == (about, 600)
    assert outside.production.seen() == PRODUCTION_BEFORE
    assert "run_step" not in outside.names()
    assert ("switch_production" in outside.names()) == (about == "watch")


def thin(number: int) -> Window:
    """A window that decides nothing."""
    return Window(number=number, seconds=1, candidate=THIN, baseline=THIN)
