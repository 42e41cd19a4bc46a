"""What holds after every build, however it ended and whatever died on the way: ``check_invariants``.

The numbers are those of the design: I1 the log, I2 effects and histories, I4 compensations, I5 orphans, I8 money and
attempts, I10 leftovers; those of deliveries are in ``delivery_invariants``, those of
what is kept in ``snapshot_invariants``. Everything is read from outside: the
database file, Temporal, git, /proc, the provider's bill.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

from activities.sweeping import open_asks
from adapters.settings import Settings, load_settings
from domain.build.details import fold_details
from domain.build.view import fold_row
from domain.ports.store import Event
from tests.canaries import check_files, secrets_of
from tests.delivery_invariants import check_deliveries
from tests.e2e.workshop import Workshop, git, wait_for
from tests.observed import Seen, builds_of, ended_in, look, recorded_in
from tests.snapshot_invariants import check_environments, check_parents, check_snapshots

ROWS = {
    "apply_change": ("change.applied", "change.refused"),
    "call_model": ("call.answered", "call.failed"),
    "run_gates": ("gates.ran",),
    "measure_base": ("build.base",),
    "pin_snapshot": ("snapshot.taken", "snapshot.skipped"),
    "find_snapshot": ("build.restored",),
    "restore_snapshot": ("build.restored",),
    "forecast_build": ("build.forecast",),
    "rebase_commits": ("merge.tried",),
    "build_artifact": ("artifact.built",),
    "run_integration": ("integration.ran",),
    "run_step": ("step.ran",),
}
"""The rows that tell of an effect, one each. Compensations have their undo record instead; of moves of the head and of
landings the rows tell only when something moved."""


def check_invariants(at: Workshop, build: str) -> Seen:
    """``check_build``, and what holds of the deliveries where a project has a target."""
    seen = check_build(at, build)
    if delivers(seen.settings):
        check_deliveries(at)
    return seen


def check_build(at: Workshop, build: str) -> Seen:
    """Read everything of it and assert; Temporal and the workers still run. An open build may have open things."""
    seen = asyncio.run(look(at, build))
    check_log(seen)
    check_effects(seen)
    check_undo(seen)
    check_orphans(seen)
    check_limits(seen)
    check_leftovers(seen)
    check_snapshots(seen)
    check_parents(seen)
    check_environments(seen)
    return seen


def check_all(at: Workshop) -> list[str]:
    """Everything that holds of a workshop: of each build whose log can be read, and of its deliveries, where a project
    has a target. Returns the builds' names."""
    builds = asyncio.run(builds_of(at))
    for build in builds:
        check_build(at, build)
    settings = load_settings(start=at.root, environment=at.environment)
    if delivers(settings):
        check_deliveries(at)
    else:
        check_files(at, secrets_of(at, settings), allowed={})
    return builds


def delivers(settings: Settings) -> bool:
    """Whether any project has a target."""
    return any(project.delivery is not None for project in settings.allowlist().values())


def check_log(seen: Seen) -> None:
    """I1: sequences have no gap in any run, any order of rows folds to the same, and that is what is shown. A run that
    a reset began counts on from the last row that its history took over."""
    for run in {event.run for event in seen.events}:
        sequences = sorted(event.sequence for event in seen.events if event.run == run)
        begins = taken_over(seen, run) + 1
        assert sequences == list(range(begins, begins + len(sequences))), f"run {run} has rows {sequences}"
    shuffled = list(seen.events)
    random.Random(len(shuffled)).shuffle(shuffled)
    assert fold_details(seen.build, shuffled) == seen.details
    assert seen.row is not None
    if seen.over:
        assert seen.row == fold_row(seen.events)
        assert (seen.row.status, seen.row.phase) == (seen.details.status, seen.details.phase)


def taken_over(seen: Seen, run: str) -> int:
    """The last row that the run's history has from the runs before a reset; 0 of a run that began afresh."""
    history = seen.histories.get(run)
    earlier = [sequence for of, sequence in recorded_in(history) if of != run] if history else []
    return max(earlier, default=0)


def check_effects(seen: Seen) -> None:
    """I2: each row was the input of a record_events of that very run, and each effect's end has its row."""
    rows = {(event.run, event.sequence) for event in seen.events}
    written = {run: set(recorded_in(history)) for run, history in seen.histories.items()}
    assert {run for run, _ in rows} == set(written), "a row names a run that never was"
    assert rows <= set().union(*written.values()), "a row was never the input of an activity"
    assert rows >= set().union(*written.values()) or not seen.over, "a row got lost"
    left = {of for run in written for of, _ in written[run] if of != run}
    for run, history in seen.histories.items():
        if any(of != run for of, _ in written[run]):
            continue  # a reset: its history begins with that of the run before
        ended = Counter(ended_in(history))
        for activity, kinds in ROWS.items():
            told = sum(event.run == run and event.kind in kinds and not untested(event) for event in seen.events)
            assert told <= ended[activity], f"{told} rows tell of {ended[activity]} times {activity} in run {run}"
            whole = seen.whole and run not in left  # a run that was reset may have ended before a row
            assert told == ended[activity] or not whole, f"{activity} has {ended[activity] - told} rows too few"


def untested(event: Event) -> bool:
    """A verdict on what could not even be set up: no run came before it."""
    return event.kind == "gates.ran" and not event.data["log"]


def check_undo(seen: Seen) -> None:
    """I4: each undo record of an ended build is closed, and what could not be undone is in the build's sentence."""
    for key, action, outcome in seen.undo:
        if not seen.over or seen.details.alone:
            continue  # of a delivery: see check_compensations
        if outcome.startswith("failed: "):
            assert f"could not be undone: {action}" in seen.details.sentence
        else:
            assert outcome == ("final" if seen.whole and action != "release_build" else "undone"), (key, outcome)


def check_orphans(seen: Seen) -> None:
    """I5: nothing waits for a workflow that is gone, and nothing runs that has ended."""
    if not seen.over:
        assert seen.build in seen.running, "the build shows as running, and no workflow does"
        return
    assert not seen.running, f"{seen.running} still run"
    assert not open_asks(seen.events)
    assert not seen.details.open_asks()
    assert not seen.places


def check_limits(seen: Seen) -> None:
    """I8: settled ≤ the provider's bill ≤ all that counts ≤ the limit; attempts and calls within theirs."""
    project = seen.settings.allowlist().get(seen.details.project)
    if project is None:
        assert not seen.tries, "a build of no project has asked a model"
        return
    budget = project.budget
    assert seen.spent.settled <= billed(seen) <= seen.spent.used
    assert not (seen.over and seen.spent.held), "money is held for a build that has ended"
    if seen.details.raised or any(ask.choice == "raise" for ask in seen.details.asks.values()):
        return
    assert budget.build is None or seen.spent.used <= budget.build
    calls = Counter(each.payer.task for each in seen.tries if each.payer.task)
    assert all(number <= budget.calls for number in calls.values()), calls
    begun = Counter(event.run for event in seen.events if event.kind == "attempt.started")
    assert all(number <= project.limits.attempts for number in begun.values()), begun


def billed(seen: Seen) -> int:
    """What the provider wrote down for this build, in micro-dollars at the configured prices."""
    prices = {settings.model.partition("/")[2]: settings.price() for settings in seen.settings.models.values()}
    total = 0
    for line in seen.at.billed():
        if line["key"].startswith((f"{seen.build}/", f"{seen.build}-task-")) and (price := prices[line["model"]]):
            total += price.cost(input_tokens=line["input_tokens"], output_tokens=line["output_tokens"])
    return total


def check_leftovers(seen: Seen) -> None:
    """I10: no process, no checkout, no ref but those that the design keeps."""
    if not seen.over:
        return
    work = seen.at.state / "work"
    wait_for(lambda: not _sandboxes(work, seen.build), seconds=10, why="the end of every sandbox")
    assert [path.name for path in work.iterdir() if path.name.startswith(f"{seen.build}-")] == []
    project = seen.settings.allowlist().get(seen.details.project)
    mirror = seen.at.state / "mirrors" / f"{seen.details.project}.git"
    if project is None or not mirror.exists():
        return
    listed = git(mirror, "for-each-ref", "--format=%(refname)", f"refs/mendwork/builds/{seen.build}").splitlines()
    kinds = {name.split("/")[4] for name in listed}
    if seen.details.alone:
        assert not kinds or seen.whole, listed
        return
    result = git(Path(project.repository), "for-each-ref", f"refs/heads/mendwork/{seen.build}")
    if seen.whole:
        spared = {"candidates"} if seen.details.parent else set()  # it may go on where all its tasks were merged
        assert kinds | spared == {"base", "head", "candidates"}, listed
        assert result
    elif "could not be undone" not in seen.details.sentence:
        assert not kinds, listed
        assert not result


def _sandboxes(work: Path, build: str) -> list[int]:
    """Processes that were started on one of the build's checkouts."""
    mark, found = f"{work}/{build}-".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # ended while we look
                found += [int(entry.name)] if mark in (entry / "cmdline").read_bytes() else []
    return found
