"""What a replay reads of a record, and what it lets into its scratch world."""

from __future__ import annotations

import fcntl
import json
import os
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.exceptions import ApplicationError

from activities.models import CallModelInput
from adapters.cli.replay.answers import RecordedModels, said
from adapters.cli.replay.environments import ShownEnvironments, shown
from adapters.cli.replay.record import Part, part_of, task_input
from adapters.cli.replay.serving import Serving, _programs
from adapters.cli.replay.settling import settled
from adapters.cli.replay.toml import written
from adapters.cli.replay.world import NOWHERE, scratch
from adapters.environments import open_environments
from adapters.settings import Settings
from domain.errors import InvalidInput, KeyConflict, UnknownName
from domain.money.budget import Budget, Payer
from domain.ports.language_model import CallKey
from domain.ports.store import Event

BUILD = "build-calc-1"
BASE, HEAD, LAST = "b" * 40, "c" * 40, "d" * 40


def row(kind: str, when: int, /, *, task: str = "", attempt: int = 0, saga: str = "", **data: Any) -> Event:
    run = f"run-{saga}"
    return Event(
        first_run=run, run=run, sequence=when, build=BUILD, kind=kind, at=when, task=task, attempt=attempt, data=data
    )


def taken(number: int, at: int, *, after: str, phase: str, head: str = BASE) -> Event:
    token = f"{BUILD}@{number}"
    return row("snapshot.taken", at, token=token, number=number, after=after, phase=phase, base=BASE, head=head)


RECORD = [
    row("build.started", 1, project="calc", title="Multiply", user="ann"),
    row("build.admitted", 2, project="calc", spec="5" * 64),
    row("build.base", 3, commit=BASE),
    taken(1, 4, after="intake", phase="plan"),
    row("build.phase", 5, phase="plan"),
    taken(2, 6, after="plan", phase="tasks"),
    row("build.phase", 7, phase="tasks"),
    row("task.started", 8, task="mul", saga="mul", base=BASE, first=1, baseline="", spec="s", plan="p", at=99),
    row("task.ended", 9, task="mul", saga="mul", status="green"),
    row("task.merged", 10, task="mul", commit=HEAD, ran=4),
    taken(3, 11, after="tasks", phase="tasks", head=HEAD),
    row("task.started", 12, task="add", saga="add", base=HEAD, first=1, baseline="", spec="s", plan="p", at=99),
    row("task.ended", 13, task="add", saga="add", status="green"),
    taken(4, 14, after="tasks", phase="review", head=LAST),
    row("build.phase", 15, phase="review"),
    taken(5, 16, after="review", phase="tasks", head=LAST),
    row("build.phase", 17, phase="tasks"),
    taken(6, 18, after="tasks", phase="review", head=LAST),
    row("build.phase", 19, phase="review"),
    row("build.ended", 20, status="failed", fault="Aborted"),
]
STATE = {
    "admitted": {
        "project": "calc",
        "coding": ["coder"],
        "heartbeat": 2.0,
        "budget": {"task": 1},
        "sets_up": False,
        "limits": {
            "attempts": 3,
            "output_tokens": 100,
            "model_seconds": 5.0,
            "test_seconds": 6.0,
            "needs_rounds": 3,
            "setup_seconds": 7.0,
        },
    },
    "packages": [],
    "strategy": "",
    "base": {"commit": BASE, "ran": 3},
    "head": {"commit": BASE, "ran": 3},
}


def test_a_phase_begins_at_the_snapshot_before_it_and_ends_where_the_next_one_begins() -> None:
    part = part_of(BUILD, RECORD, phase="tasks")
    assert part.entry is not None
    assert part.entry.data["number"] == 2
    assert [event.at for event in part.rows] == [7, 8, 9, 10, 11, 12, 13, 14]
    assert (part.rows[-1].kind, dict(part.rows[-1].data)) == ("build.ended", {"commit": LAST})
    assert [rows[0].task for rows in part.sagas] == ["mul", "add"]
    assert not part.side_by_side
    assert part.commits() == (BASE, HEAD)


def test_a_phase_that_was_entered_again_is_another_round() -> None:
    second = part_of(BUILD, RECORD, phase="tasks", round=2)
    assert [event.at for event in second.rows] == [17, 18]
    with pytest.raises(InvalidInput, match="came to tasks 2 times"):
        part_of(BUILD, RECORD, phase="tasks", round=3)


def test_the_phase_in_which_a_build_failed_ends_with_its_fault() -> None:
    part = part_of(BUILD, RECORD, phase="review", round=2)
    assert part.rows[-1].data["fault"] == "Aborted"


def test_intake_needs_no_snapshot_and_has_the_spec_and_the_base() -> None:
    part = part_of(BUILD, RECORD, phase="intake")
    assert (part.entry, part.spec, part.base, part.title, part.user) == (None, "5" * 64, BASE, "Multiply", "ann")
    assert part.target() == BASE


def test_a_build_that_went_on_from_a_snapshot_begins_where_that_was_taken() -> None:
    restored = row("build.restored", 2, token=f"{BUILD}@2", parent=BUILD, phase="tasks")
    child = [replace(event, build="build-calc-2") for event in [RECORD[0], restored, *RECORD[6:14]]]
    part = part_of("build-calc-2", child, phase="tasks", earlier=RECORD)
    assert part.entry is not None
    assert (part.entry.build, part.entry.data["number"], part.rows[0].at) == (BUILD, 2, 7)
    with pytest.raises(InvalidInput, match="no intake of its own"):
        part_of("build-calc-2", child, phase="intake", earlier=RECORD)


def test_a_phase_without_a_snapshot_or_without_an_end_cannot_be_run_again() -> None:
    with pytest.raises(UnknownName, match="land"):
        part_of(BUILD, RECORD, phase="land")
    with pytest.raises(InvalidInput, match="has not ended yet"):
        part_of(BUILD, RECORD[:7], phase="tasks")
    with pytest.raises(InvalidInput, match="its beginning"):
        part_of(BUILD, RECORD[3:], phase="tasks")


def test_a_tasks_input_comes_from_its_row_and_from_what_was_carried() -> None:
    part = part_of(BUILD, RECORD, phase="tasks")
    mul, add = (task_input(part, rows, STATE) for rows in part.sagas)
    assert (mul["base"], mul["base_ran"], mul["at"], mul["chain"]) == (BASE, 3, 99, ["coder"])
    assert (add["base"], add["base_ran"], add["trusted"]) == (HEAD, 4, BASE)
    old = [replace(part.sagas[0][0], data={"base": BASE, "first": 1})]
    with pytest.raises(InvalidInput, match="'baseline' is missing"):
        task_input(part, old, STATE)


def call(prompt: str = "p1", *, attempt: int = 1) -> CallModelInput:
    return CallModelInput(
        key=CallKey(saga=f"{BUILD}-task-mul", step="change", attempt=attempt, turn=1),
        build=BUILD,
        model="coder",
        prompt=prompt,
        schema_name="Change",
        output_tokens=10,
        seconds=1.0,
        payer=Payer(project="calc", build=BUILD),
        budget=Budget(),
    )


async def test_an_answer_is_the_recorded_one_or_none_at_all() -> None:
    asked: dict[str, Any] = {"step": "change", "turn": 1, "model": "coder", "prompt": "p1"}
    usage = {"input_tokens": 1, "output_tokens": 2, "cost_micros": 3}
    answered = row("call.answered", 1, task="mul", attempt=1, **asked, answer="a", value="v", usage=usage)
    limited = [{"kind": "RateLimited", "sentence": "later"}]
    failed = row("call.failed", 2, task="mul", attempt=2, **asked, faults=limited)
    models = RecordedModels(BUILD, [answered, failed])
    assert (await models.call_model(call())).value == "v"
    with pytest.raises(KeyConflict, match="another prompt: recorded p1, now p2"):
        await models.call_model(call("p2"))
    with pytest.raises(KeyConflict, match="not in the record"):
        await models.call_model(call(attempt=3))
    with pytest.raises(ApplicationError, match="later") as caught:
        await models.call_model(call(attempt=2))
    assert (caught.value.type, caught.value.non_retryable) == ("RateLimited", True)


def test_what_a_person_said_is_said_again_to_what_is_asked_now() -> None:
    ask = row("ask.opened", 1, id="change-1", digest="now" * 8)
    yes = row("ask.closed", 2, id="change-1", choice="approve", by="ann", reason="")
    skip = row("ask.closed", 2, id="change-1", choice="skip", by="ann", reason="never mind")
    assert said([yes], ask) == ("approve", {"digest": "now" * 8, "by": "ann", "reason": ""})
    assert said([skip], ask) == (
        "answer",
        {"ask": "change-1", "choice": "skip", "by": "ann", "reason": "never mind"},
    )
    assert said([replace(skip, data={**skip.data, "choice": "take"})], ask) is None
    assert said([], ask) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"Ran 3 tests in 0.001s\n\nFAILED", b"Ran 3 tests in 12.5s\n\nFAILED"),
        (b"=== 1 failed in 0.04s ===", b"=== 1 failed in 1.30s ==="),
        (b"<calc.A object at 0x7f3a10b2>", b"<calc.A object at 0x7fffe0c4>"),
        (b"at 2026-11-21 10:00:01.5 it", b"at 2026-11-22T11:12:13 it"),
        (b"duration_ms: 1.2", b"duration_ms: 33.9"),
    ],
)
def test_a_report_is_the_same_at_another_time(one: bytes, other: bytes) -> None:
    assert settled(one) == settled(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(b"1 failed", b"2 failed"), (b"5 != 6", b"5 != 7"), (b"Ran 3 tests in 0.1s", b"Ran 4 tests in 0.1s")],
)
def test_a_report_that_tells_something_else_is_another(one: bytes, other: bytes) -> None:
    assert settled(one) != settled(other)


texts = st.text(st.characters(codec="utf-8"), max_size=20)
scalars = st.one_of(texts, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, width=32))
tables = st.recursive(
    st.dictionaries(texts, st.one_of(scalars, st.lists(scalars, max_size=3)), max_size=4),
    lambda below: st.dictionaries(texts, st.one_of(scalars, below), max_size=3),
    max_leaves=8,
)


@given(tables)
def test_what_is_written_as_toml_reads_back(values: dict[str, Any]) -> None:
    finite = json.loads(json.dumps(values), parse_constant=lambda _: 0.5)
    assert tomllib.loads(written(finite)) == finite


@pytest.fixture
def original(make_settings: Callable[..., Settings], tmp_path: Path) -> Settings:
    delivery = {"target": "local", "run": "python3 serve.py", "health": "/", "secrets": ["DEPLOY_SECRET"]}
    return make_settings(
        temporal={"port": 0, "ui_port": 0},
        models={"coder": {"model": "openai/x", "base_url": "http://10.0.0.1/v1", "api_key_env": "MY_PROVIDER_KEY"}},
        projects={
            "calc": {
                "repository": "../mine",
                "test": "python3 -m unittest",
                "toolchain": ["tools"],
                "budget": {"build": "none"},
                "delivery": {**delivery, "port": 8080, "staging_port": 8081},
            },
            "other": {"repository": "elsewhere", "test": "true"},
        },
    )


def test_a_scratch_world_is_configured_without_a_way_out(original: Settings, tmp_path: Path) -> None:
    part = Part(build=BUILD, project="calc", phase="plan", entry=None, rows=())
    with scratch(original, keep=False) as world:
        made = world.settings(part, address="127.0.0.1:1", live=False)
        project = made.allowlist()["calc"]
        assert set(made.projects) == {"calc"}
        assert project.repository == str(world.root / "repository.git")
        assert project.toolchain == (str((tmp_path / "tools").resolve()),)
        assert (project.delivery, project.budget.build) == (None, None)
        assert (made.models["coder"].base_url, made.models["coder"].api_key_env) == (NOWHERE, "")
        assert made.store_url.endswith(f"{world.root}/.mendwork/mendwork.db")
        live = world.settings(part, address="127.0.0.1:1", live=True)
        assert live.models["coder"] == original.models["coder"]
        with pytest.raises(InvalidInput, match="any more"):
            world.settings(replace(part, project="gone"), address="127.0.0.1:1", live=False)


SECRETS = {
    "MY_PROVIDER_KEY": "k1",
    "OPENAI_API_KEY": "k2",
    "DEPLOY_SECRET": "k3",
    "MENDWORK_STORE": "k4",
    "TEMPORAL_API_KEY": "k5",
}


def test_no_worker_of_a_replay_has_a_key_and_live_only_that_of_the_models(original: Settings) -> None:
    part = Part(build=BUILD, project="calc", phase="plan", entry=None, rows=())
    environment = {"PATH": "/usr/bin", **SECRETS}
    with scratch(original, keep=False) as world:
        made = world.settings(part, address="127.0.0.1:1", live=False)
        closed = Serving(part=part, environment=environment, answers=RecordedModels(BUILD, []))
        programs = {each.name: each.environment for each in _programs(world, made, closed)}
        assert set(programs) == {"saga", "workspace", "sandbox"}
        assert not any(set(given) & set(SECRETS) for given in programs.values())
        live = world.settings(part, address="127.0.0.1:1", live=True)
        called = {each.name: each.environment for each in _programs(world, live, replace(closed, answers=None))}
        assert set(called["model"]) & set(SECRETS) == {"MY_PROVIDER_KEY", "OPENAI_API_KEY"}
        assert not any(set(called[name]) & set(SECRETS) for name in programs)


def test_a_scratch_world_goes_unless_it_is_kept_and_takes_what_a_killed_one_left(original: Settings) -> None:
    folder = original.state / "replay"
    with scratch(original, keep=True) as kept:
        pass
    left = folder / "killed"
    left.mkdir()
    (left / "lock").touch()
    running = folder / "running"
    running.mkdir()
    with (running / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with scratch(original, keep=False) as world:
            assert {path.name for path in folder.iterdir()} == {kept.root.name, "running", world.root.name}
            assert os.stat(world.root).st_mode & 0o077 == 0
        assert {path.name for path in folder.iterdir()} == {kept.root.name, "running"}


async def test_environments_are_shown_as_they_are_and_no_other_is_made(tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    key, foreign = "1" * 64, "2" * 64
    for name, project in ((key, "calc"), (foreign, "other")):
        async with open_environments(theirs).making(name, project=project) as tree:
            (tree / "installed").write_text(project)
    record = theirs / "environments" / key / "record.json"
    os.utime(record, (1, 1))
    with shown(theirs, mine, project="calc"):
        here = ShownEnvironments(mine / "environments")
        async with here.using(key) as used:
            assert used is not None
            assert (used.folder / "installed").read_text() == "calc"
        async with here.using(foreign) as used:
            assert used is None
        assert not await open_environments(theirs).remove(key)
        with pytest.raises(InvalidInput, match="a replay fetches nothing"):
            async with here.making(foreign, project="calc"):
                pass
    assert record.stat().st_mtime == 1
    assert await open_environments(theirs).remove(key)
