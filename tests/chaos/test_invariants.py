"""The checker of invariants finds what it is there for: one sound build, spoiled in one way after the other."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from domain.build.details import fold_details
from domain.ports.store import Event
from tests.chaos.playing import BUILD
from tests.chaos.scenes import SCENES, SET_UP_FILES, SETUP, Stage
from tests.e2e.workshop import git
from tests.invariants import (
    check_effects,
    check_invariants,
    check_leftovers,
    check_limits,
    check_log,
    check_orphans,
    check_undo,
)
from tests.observed import Seen
from tests.snapshot_invariants import check_environments, check_parent, check_snapshots


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """A build that succeeded, and everything that the checker reads of it."""
    scene = replace(SCENES["aborted"], files=SET_UP_FILES, more=SETUP)
    at = Stage(tmp_path_factory.mktemp("sound") / "w", scene)
    with at.running():
        ran = at.mendwork("build", "spec.md")
        assert ran.code == 0, ran.err
        yield check_invariants(at, BUILD)


def copied(seen: Seen, folder: Path) -> Seen:
    """The same on files of its own, to be spoiled."""
    at = copy.copy(seen.at)
    shutil.copytree(at.root, folder, symlinks=True)
    at.root, at.state, at.bill, at.repository = (
        folder / path.relative_to(seen.at.root)
        for path in (seen.at.root, seen.at.state, seen.at.bill, seen.at.repository)
    )
    return replace(seen, at=at, settings=seen.settings.model_copy(update={"root": folder}))


def without_row(seen: Seen) -> Seen:
    return replace(seen, events=[event for event in seen.events if event.kind != "change.applied"])


def without_beginning(seen: Seen) -> Seen:
    """The first row of a run is not there, and no reset went back to it."""
    return replace(seen, events=[event for event in seen.events if event.task or event.sequence > 1])


def with_row_of_nobody(seen: Seen) -> Seen:
    last = max((event for event in seen.events if not event.task), key=lambda event: event.sequence)
    return replace(seen, events=[*seen.events, replace(last, sequence=last.sequence + 1, kind="build.note")])


def with_effect_that_nobody_tells(seen: Seen) -> Seen:
    """The history of the build, with the end of its first try of the tests told twice."""

    def again(history: WorkflowHistory) -> WorkflowHistory:
        names = [e.activity_task_scheduled_event_attributes.activity_type.name for e in history.events]
        if "run_gates" not in names:
            return history
        scheduled = history.events[names.index("run_gates")].event_id
        ended = [
            event
            for event in history.events
            if event.activity_task_completed_event_attributes.scheduled_event_id == scheduled
        ]
        return replace(history, events=[*history.events, *ended])

    return replace(seen, histories={run: again(history) for run, history in seen.histories.items()})


def with_history_gone(seen: Seen) -> Seen:
    return replace(seen, histories=dict(list(seen.histories.items())[1:]))


def with_open_undo(seen: Seen) -> Seen:
    key, action, _ = seen.undo[0]
    return replace(seen, undo=[*seen.undo[1:], (key, action, "")])


def with_secret_failure(seen: Seen) -> Seen:
    key, action, _ = seen.undo[0]
    return replace(seen, undo=[*seen.undo[1:], (key, action, "failed: no")])


def with_place(seen: Seen) -> Seen:
    return replace(seen, places=["somebody"])


def with_other_row(seen: Seen) -> Seen:
    assert seen.row
    return replace(seen, row=replace(seen.row, status="failed"))


def with_running_child(seen: Seen) -> Seen:
    return replace(seen, running=[f"{BUILD}-task-mul"])


def with_open_ask(seen: Seen) -> Seen:
    last = seen.events[-1]
    return replace(seen, events=[*seen.events, replace(last, kind="ask.opened", data={"id": "task-1"})])


def with_unknown_bill(seen: Seen) -> Seen:
    line = {"key": f"{BUILD}/plan/9/1", "model": "scripted", "fault": "", "input_tokens": 9, "output_tokens": 9}
    with seen.at.bill.open("a") as bill:
        bill.write(json.dumps(line) + "\n")
    return seen


def with_overdraft(seen: Seen) -> Seen:
    return replace(seen, spent=replace(seen.spent, unknown=seen.spent.unknown + 10_000_001))


def with_one_attempt_too_many(seen: Seen) -> Seen:
    begun = next(event for event in seen.events if event.kind == "attempt.started")
    return replace(seen, events=[*seen.events, begun])


def with_checkout(seen: Seen) -> Seen:
    (seen.at.state / "work" / f"{BUILD}-task-mul-gates-1-0123456789ab-01234567").mkdir()
    return seen


def with_ref(seen: Seen) -> Seen:
    mirror = seen.at.state / "mirrors" / "calc.git"
    git(mirror, "update-ref", f"refs/mendwork/builds/{BUILD}/fetched-01234567", seen.details.commit)
    return seen


def without_branch(seen: Seen) -> Seen:
    git(seen.at.repository, "branch", "-D", f"mendwork/{BUILD}")
    return seen


def first(seen: Seen, kind: str) -> Event:
    return next(event for event in seen.events if event.kind == kind)


def with_other_snapshot(seen: Seen, **data: object) -> Seen:
    """The first one's row tells something else."""
    row = first(seen, "snapshot.taken")
    others = [event for event in seen.events if event is not row]
    return replace(seen, events=[replace(row, data={**row.data, **data}), *others])


def with_state_gone(seen: Seen) -> Seen:
    digest = first(seen, "snapshot.taken").data["state"]
    (seen.at.state / "blobs" / digest[:2] / digest[2:]).write_text("{}")
    return seen


def with_pins_gone(seen: Seen) -> Seen:
    mirror = seen.at.state / "mirrors" / "calc.git"
    git(mirror, "update-ref", "-d", f"refs/mendwork/snapshots/{BUILD}/1/1")
    return seen


def with_head_of_another(seen: Seen) -> Seen:
    return with_other_snapshot(seen, head=seen.details.commit)


def with_name_taken_twice(seen: Seen) -> Seen:
    return with_other_snapshot(seen, number=2, token=f"{BUILD}@2")


def with_snapshot_too_dear(seen: Seen) -> Seen:
    return with_other_snapshot(seen, spent=seen.spent.used + 1)


def with_half_environment(seen: Seen) -> Seen:
    place = seen.at.state / "environments" / first(seen, "environment.built").data["key"]
    place.chmod(0o755)
    shutil.rmtree(place / "tree")
    return seen


SPOILED: Mapping[Callable[[Seen], Seen], Callable[[Seen], None]] = {
    without_row: check_log,
    with_other_row: check_log,
    with_row_of_nobody: check_effects,
    with_effect_that_nobody_tells: check_effects,
    with_history_gone: check_effects,
    with_open_undo: check_undo,
    with_secret_failure: check_undo,
    with_place: check_orphans,
    with_running_child: check_orphans,
    with_open_ask: check_orphans,
    with_unknown_bill: check_limits,
    without_beginning: check_log,
    with_overdraft: check_limits,
    with_one_attempt_too_many: check_limits,
    with_checkout: check_leftovers,
    with_ref: check_leftovers,
    without_branch: check_leftovers,
    with_state_gone: check_snapshots,
    with_pins_gone: check_snapshots,
    with_head_of_another: check_snapshots,
    with_name_taken_twice: check_snapshots,
    with_snapshot_too_dear: check_snapshots,
    with_half_environment: check_environments,
}


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_it_sees_a_build(spoil: Callable[[Seen], Seen], sound: Seen, tmp_path: Path) -> None:
    check, seen = SPOILED[spoil], copied(sound, tmp_path / "copy")
    check(seen)
    with pytest.raises(AssertionError):
        check(spoil(seen))


@pytest.mark.parametrize("spoiled", [{"spent": 0}, {"token": f"{BUILD}@9"}, {"head": "0" * 40}], ids=str)
def test_it_sees_a_build_that_is_not_what_its_parent_was(spoiled: Mapping[str, object], sound: Seen) -> None:
    taken = [event for event in sound.events if event.kind == "snapshot.taken"][-1]
    data = {**taken.data, "parent": BUILD}
    check_parent(*gone_on(sound, data), sound.events)
    with pytest.raises(AssertionError):
        check_parent(*gone_on(sound, {**data, **spoiled}), sound.events)


def gone_on(sound: Seen, data: Mapping[str, object]) -> tuple[Seen, Event]:
    """A build of which only this row is known."""
    restored = replace(sound.events[0], build="build-calc-2", kind="build.restored", data=data)
    return replace(sound, events=[restored], details=fold_details("build-calc-2", [restored])), restored


def test_a_workshop_is_checked_at_the_end_of_what_held(sound: Seen) -> None:
    """This is what every end-to-end run is in; a run that failed has its own say."""
    at, bill = sound.at, sound.at.bill.read_text()
    with at.checked():
        pass
    at.bill.write_text("")
    try:
        with pytest.raises(AssertionError), at.checked():
            pass
        with at.checked(unless="nothing answers"):
            pass
        with pytest.raises(KeyError), at.checked():
            raise KeyError
    finally:
        at.bill.write_text(bill)
