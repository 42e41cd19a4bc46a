"""One phase again, from its record: equal, or the first digest that differs; without a call, a key or a trace."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.projects import (
    Scene,
    answered,
    begun,
    change,
    checked,
    create,
    edit,
    events,
    plan,
    repository,
    serving,
    started,
    task,
    waiting,
)
from tests.e2e.smuggling import WORKER
from tests.e2e.workshop import MENDWORK, Workshop, git, wait_for
from tests.trees import files_below

MUL = checked("mul", "import mul; self.assertEqual(mul.mul(2, 3), 6)")
CHAIN = Scene(
    name="chain",
    consent="approve = []\nreview = true\n",
    answers=[
        plan(task("mul", "mul.py"), task("note", "note.py", depends_on=["mul"])),
        change("mul", 1, create("mul.py", "def mul(a, b):\n    return a + b\n"), MUL),
        change("mul", 2, create("mul.py", "def mul(a, b):\n    return a * b\n"), MUL),
        change("note", 1, create("note.py", "N = 1\n"), edit("calc.py", "a + b", "b + a")),
        {"role": "Review", "answer": {"summary": "fine", "findings": []}},
    ],
)
PAIR = [plan(task("one", "one.py"), task("two", "two.py"))]
PAIR += [change(name, 1, create(f"{name}.py", "A = 1\n")) for name in ("one", "two")]
PERSON = Scene(name="person", consent='approve = ["change"]\nreview = false\n', answers=PAIR)
SMUGGLED = Scene(name="smuggled", answers=PAIR)
TABLES = ("accounts", "builds", "calls", "events", "numbers", "places", "undo")
BUILDS = {scene.name: f"build-{scene.project}-1" for scene in (CHAIN, PERSON, SMUGGLED)}
REPLAYS = [
    *((CHAIN, "--phase", phase) for phase in ("intake", "plan", "tasks", "review", "land")),
    (CHAIN, "--task", "mul"),
    (PERSON, "--phase", "tasks"),
    (PERSON, "--phase", "approve"),
]


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """Three builds that have ended: one after the other, side by side with a person at its end, and smuggling."""
    with serving(tmp_path_factory.mktemp("replay"), (CHAIN, PERSON, SMUGGLED), dev=(*WORKER, "dev")) as at:
        for scene in (CHAIN, PERSON, SMUGGLED):
            assert begun(at, scene) == BUILDS[scene.name]
        ask = waiting(at, BUILDS["person"])
        assert answered(at, "approve", BUILDS["person"], ask["digest"])["outcome"] == "accepted"
        for build in BUILDS.values():
            ended = at.mendwork("watch", build, seconds=180)
            assert ended.code == 0, ended.err
        yield at


@dataclass(frozen=True, kw_only=True)
class Untouched:
    """Everything of the original that a replay might have changed."""

    tables: dict[str, list[Any]]
    files: dict[str, str]
    refs: dict[str, str]
    billed: int


def untouched(at: Workshop) -> Untouched:
    """Now. The server's database and the logs of running workers are theirs."""
    with closing(sqlite3.connect(at.state / "mendwork.db")) as connection:
        tables = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in TABLES}  # noqa: S608
    paths = [path for folder in ("blobs", "mirrors") for path in files_below(at.state / folder)]
    return Untouched(
        tables=tables,
        files={str(path): f"{path.stat().st_mtime_ns} {hash_of(path)}" for path in sorted(paths)},
        refs={scene.name: git(repository(at, scene), "for-each-ref") for scene in (CHAIN, PERSON, SMUGGLED)},
        billed=len(at.billed()),
    )


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def replayed(at: Workshop, build: str, *words: str) -> dict[str, Any]:
    """What ``mendwork replay --json`` says, with its exit code."""
    ran = at.mendwork("replay", build, *words, "--json", seconds=240)
    assert ran.out, ran.err
    return {**json.loads(ran.out), "code": ran.code, "err": ran.err}


@pytest.fixture(scope="module")
def equal(at: Workshop) -> tuple[dict[Any, dict[str, Any]], Untouched, Untouched]:
    """Every phase again, three at a time, and what was there before and after."""
    before = untouched(at)
    with ThreadPoolExecutor(3) as pool:
        said = pool.map(lambda each: replayed(at, BUILDS[each[0].name], *each[1:]), REPLAYS)
        found: dict[Any, dict[str, Any]] = {
            (each[0].name, *each[1:]): one for each, one in zip(REPLAYS, said, strict=True)
        }
    return found, before, untouched(at)


@pytest.mark.parametrize("which", [(each[0].name, *each[1:]) for each in REPLAYS], ids=" ".join)
def test_a_phase_again_is_equal_and_costs_nothing(equal: Any, which: tuple[str, ...]) -> None:
    said = equal[0][which]
    assert (said["code"], said["equal"], said["difference"]) == (0, True, None), said
    assert said["cost_micros"] == 0
    assert said["facts"] > 0


def test_the_original_is_as_it_was_and_nothing_is_left_behind(at: Workshop, equal: Any) -> None:
    _, before, after = equal
    assert after == before
    assert not (at.state / "replay").exists()
    assert serving_in(at.state / "replay") == []


def test_nothing_reaches_a_phase_but_through_what_it_is_given(at: Workshop) -> None:
    """The same workers, which carry something past the phases in a global and in a file: the record has it, a phase
    that begins from its value alone has not, and that is the first digest that differs."""
    rows = [event for event in events(at, BUILDS["smuggled"]) if event.kind == "call.answered" and event.task]
    recorded = {event.task: event.data["prompt"] for event in rows}
    running = {name: smuggled(at, name) for name in ("one", "two")}
    for name, process in running.items():
        out, err = process.communicate(timeout=240)
        difference = json.loads(out)["difference"]
        assert (process.returncode, difference["task"], difference["what"]) == (5, name, "prompt"), err
        assert difference["recorded"] == recorded[name] != difference["now"]
        assert "prompt" in difference["sentence"]


def smuggled(at: Workshop, task: str) -> subprocess.Popen[str]:
    """A replay of one task whose workers smuggle as those of the record did."""
    argv = [*WORKER, "replay", BUILDS["smuggled"], task]
    return subprocess.Popen(
        argv, cwd=at.root, env=at.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_what_differs_is_told_with_both_sides_and_where_to_look(at: Workshop, tmp_path: Path) -> None:
    """The project's test command has changed since: it counts one test now."""
    settings = (at.root / "mendwork.toml").read_text()
    other = at.root / "other.toml"
    wanted = 'repository = "task-chain"\ntest = "python3 -m unittest'
    assert settings.count(wanted) == 1
    other.write_text(settings.replace(wanted, f"{wanted} -k test_it"))
    elsewhere = {**at.environment, "MENDWORK_CONFIG": str(other)}
    ran = subprocess.run(
        [*MENDWORK, "replay", BUILDS["chain"], "--task", "note"],
        cwd=at.root,
        env=elsewhere,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    lines = ran.stdout.splitlines()
    assert ran.returncode == 5, ran.stderr
    assert lines[0] == f"differs: tasks of {BUILDS['chain']}, task note: task note, attempt 1, gates.ran: green"
    assert [line.split()[0] for line in lines[1:3]] == ["recorded", "now"]
    assert lines[-1].strip() == f"look at   mendwork show {BUILDS['chain']} --task note --attempt 1 --log"


def test_live_calls_the_models_on_a_budget_of_its_own(at: Workshop) -> None:
    before, bill = untouched(at), at.bill.read_text()
    said = replayed(at, BUILDS["chain"], "--task", "note", "--live", "--budget", "0.5")
    assert (said["code"], said["equal"], said["live"]) == (0, True, True), said
    assert said["cost_micros"] > 0
    after = untouched(at)
    assert (after.tables, after.refs, after.billed) == (before.tables, before.refs, before.billed + 1)
    poor = replayed(at, BUILDS["chain"], "--task", "note", "--live", "--budget", "0.000001")
    assert (poor["code"], poor["equal"], poor["cost_micros"]) == (0, False, 0), poor
    assert "0.0000" in poor["difference"]["sentence"]
    assert len(at.billed()) == after.billed
    at.bill.write_text(bill)  # what the build itself has to account for, at the end of all tests


def test_ctrl_c_leaves_no_process_and_no_folder(at: Workshop) -> None:
    with started(at, "replay", BUILDS["chain"], "--phase", "tasks") as process:
        wait_for(lambda: len(serving_in(at.state / "replay")) >= 4, why="the scratch world's processes")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.splitlines()[-1]) == (130, "stopped: nothing of the build was touched")
    assert not (at.state / "replay").exists()
    assert serving_in(at.state / "replay") == []


def test_after_a_kill_no_process_is_left_and_the_next_replay_takes_the_folder_away(at: Workshop) -> None:
    with started(at, "replay", BUILDS["chain"], "--phase", "plan") as process:
        wait_for(lambda: len(serving_in(at.state / "replay")) >= 4, why="the scratch world's processes")
        process.kill()
        process.communicate(timeout=60)
    wait_for(lambda: not serving_in(at.state / "replay"), why="the end of the scratch world's processes")
    left = {path.name for path in (at.state / "replay").iterdir()}
    said = replayed(at, BUILDS["chain"], "--phase", "land", "--keep")
    kept = Path(said["kept"])
    assert {path.name for path in (at.state / "replay").iterdir()} == {kept.name} != left
    key = at.environment["SCRIPTED_API_KEY"]
    assert key not in "".join(text_of(path) for path in kept.rglob("*") if path.is_file())


def serving_in(folder: Path) -> list[int]:
    """The processes whose working folder is inside."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                where = os.readlink(entry / "cwd")
            except OSError:  # it ended while we look
                continue
            if where.startswith(f"{folder}/"):
                found.append(int(entry.name))
    return found


def text_of(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("build-calc-77", "--phase", "plan"), 2, "build-calc-77"),
        ((BUILDS["chain"],), 2, "--phase"),
        ((BUILDS["chain"], "--phase", "cooking"), 2, "cooking"),
        ((BUILDS["chain"], "--phase", "deliver"), 2, "outside"),
        ((BUILDS["chain"], "--phase", "tasks", "--round", "2"), 2, "no round 2"),
        ((BUILDS["chain"], "--task", "nobody"), 2, "known: mul, note"),
        ((BUILDS["chain"], "--phase", "plan", "--task", "mul"), 2, "--task"),
        ((BUILDS["chain"], "--phase", "plan", "--budget", "1"), 2, "--live"),
    ],
)
def test_what_cannot_be_run_again_is_one_sentence(
    at: Workshop, words: tuple[str, ...], code: int, sentence: str
) -> None:
    ran = at.mendwork("replay", *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1), ran.err
    assert sentence in ran.err


def test_a_record_that_is_damaged_is_told_and_leaves_nothing(at: Workshop) -> None:
    value = next(e.data["value"] for e in events(at, BUILDS["person"]) if (e.kind, e.task) == ("call.answered", "two"))
    blob = at.state / "blobs" / value[:2] / value[2:]
    whole = blob.read_bytes()
    for damage in (lambda: blob.write_bytes(b"{}"), blob.unlink):
        damage()
        ran = at.mendwork("replay", BUILDS["person"], "--task", "two")
        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1), ran.err
        assert value in ran.err
        blob.write_bytes(whole)
    assert len(list((at.state / "replay").iterdir()) if (at.state / "replay").exists() else []) <= 1


def test_without_temporals_server_program_that_is_one_sentence(at: Workshop) -> None:
    at.environment["MENDWORK_TEMPORAL__SERVER"] = "/nonexistent/temporal"
    ran = at.mendwork("replay", BUILDS["chain"], "--phase", "plan")
    del at.environment["MENDWORK_TEMPORAL__SERVER"]
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert "/nonexistent/temporal does not start" in ran.err
