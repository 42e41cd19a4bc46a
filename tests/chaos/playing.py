"""One build from its start to its end, with the deaths that a case orders, and what is left of it."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import kill
from pathlib import Path

from temporalio.client import WorkflowHistory

from domain.build.names import task_saga_id
from domain.trace.parts import BuildDetails
from tests.chaos.mortal_worker import deaths, forks, held, order_death, order_hold, parsed
from tests.chaos.people import People, people
from tests.chaos.scenes import SCENES, TARGET, Stage
from tests.chaos.story import Story, story_of
from tests.grafting import grafted
from tests.invariants import check_invariants

BUILD = "build-calc-1"
PATIENCE_SECONDS = 240
GONE_AFTER_A_DAY = "index-"
"""Names of git indexes belong to nobody who could come back for them; every later use sweeps the old ones."""
HELD = "land_result.after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``orders`` are deaths as ``order_death`` takes them; with ``strikes``, so many workers die at moments that
    ``seed`` draws."""

    name: str
    scene: str
    orders: tuple[str, ...] = ()
    strikes: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """``refs`` are those of the user's repository, by name the tree that each has; ``lost`` are tries of model calls
    that nobody knows the end of, ``asked`` how often the provider was asked each; ``died`` as ``deaths`` gives it;
    ``struck`` the workers that were struck; ``begun_again`` is how often Temporal began each call again."""

    details: BuildDetails
    before: Mapping[str, str]
    refs: Mapping[str, str]
    story: Story
    lost: tuple[str, ...]
    asked: Counter[str]
    died: Mapping[str, float | None]
    struck: tuple[str, ...]
    begun_again: Counter[str] = field(default_factory=Counter)


def play(case: Case, folder: Path) -> Played:
    """Run the case in a workshop of its own, check the invariants, and say what came of it."""
    at = Stage(folder, SCENES[case.scene])
    before, untouched = trees_of(at), at.untouched()
    with at.running(dev=grafted("mortal"), unchecked="each build is, below"):
        played = asyncio.run(_play(case, at, before))
        seen = check_invariants(at, BUILD)
    assert at.untouched() == untouched
    left = [path.name for path in (at.state / "work").iterdir() if not path.name.startswith(GONE_AFTER_A_DAY)]
    assert left == [], "what a killed worker left goes with the next try"
    return replace(played, begun_again=_begun_again(seen.histories.values()))


def trees_of(at: Stage) -> dict[str, str]:
    """Every branch of the user's repository, and its tree."""
    return {name: at.tree_of(name) for name in at.refs()}


async def _play(case: Case, at: Stage, before: Mapping[str, str]) -> Played:
    if SCENES[case.scene].ends == "aborted":
        order_hold(at.state, HELD)
    else:
        _order(at, case)
    started = await asyncio.to_thread(at.mendwork, "build", "spec.md", "--detach")
    assert started.code == 0, started.err
    async with people(at, BUILD) as crowd:
        striking = asyncio.create_task(_strike(case, at))
        if case.scene == "aborted":
            await _abort(case, crowd)
        elif case.scene == "terminated":
            await _terminate(case, crowd)
        details = await crowd.ended(seconds=PATIENCE_SECONDS)
        striking.cancel()
        struck = await striking
        tries = await crowd.store.calls.tries(BUILD)
        return Played(
            details=details,
            before=before,
            refs=trees_of(at),
            story=story_of(await crowd.events()),
            lost=tuple(f"{each.key}#{each.number}" for each in tries if each.state == "unknown"),
            asked=Counter(line["key"] for line in at.billed()),
            died=deaths(at.state),
            struck=struck,
        )


def _begun_again(histories: Iterable[WorkflowHistory]) -> Counter[str]:
    """By the key of the call: its tries that Temporal itself saw lost."""
    found: Counter[str] = Counter()
    for history in histories:
        keys: dict[int, str] = {}
        for event in history.events:
            scheduled, started = (
                event.activity_task_scheduled_event_attributes,
                event.activity_task_started_event_attributes,
            )
            if scheduled.activity_type.name == "call_model":
                key = json.loads(scheduled.input.payloads[0].data)["key"]
                keys[event.event_id] = "/".join(str(key[name]) for name in ("saga", "step", "attempt", "turn"))
            elif started.scheduled_event_id in keys:
                found[keys[started.scheduled_event_id]] += started.attempt - 1
            elif (late := event.activity_task_timed_out_event_attributes.scheduled_event_id) in keys:
                found[keys[late]] += 1
    return found


def _order(at: Stage, case: Case) -> None:
    for each in case.orders:
        order, spared = parsed(each)
        order_death(at.state, order, spared=spared)


async def _standing(crowd: People) -> None:
    """Wait until the result has landed, and its worker has not said so yet."""
    await crowd.until(lambda _: held(crowd.at.state, HELD), seconds=PATIENCE_SECONDS, why="the landing")
    refs = await asyncio.to_thread(crowd.at.refs)
    assert f"refs/heads/mendwork/{BUILD}" in refs
    assert refs[f"refs/heads/{TARGET}"] == refs[f"refs/heads/mendwork/{BUILD}"]


async def _abort(case: Case, crowd: People) -> None:
    await _standing(crowd)
    _order(crowd.at, case)
    await crowd.say("landing", "abort", {"by": "cyd", "reason": "not today"})


async def _terminate(case: Case, crowd: People) -> None:
    await _standing(crowd)
    await crowd.saga.terminate("by hand")
    with suppress(Exception):
        await crowd.client.get_workflow_handle(task_saga_id(BUILD, "mul")).terminate("by hand")
    _order(crowd.at, case)


async def _strike(case: Case, at: Stage) -> tuple[str, ...]:
    """kill -9 of workers at moments that nobody chose, until the build has ended."""
    chance = random.Random(case.seed)
    struck: list[str] = []
    with suppress(asyncio.CancelledError):
        while len(struck) < case.strikes:
            await asyncio.sleep(chance.uniform(0.5, 4.0))
            name = chance.choice(("saga", "saga", "workspace", "model", "sandbox"))
            with suppress(ProcessLookupError, KeyError):
                kill(forks(at.state)[name], signal.SIGKILL)
                struck.append(name)
    return tuple(struck)
