"""The demo's pieces, without Mendwork running: its folder, its programs, and checks that can fail."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.settings import load_settings
from examples.stage import scene as stage_scene
from examples.stage.checks import Promise, bill_promises, report, repository_promises, suite_promises
from examples.stage.narrator import Narrator
from examples.stage.processes import Program, StageFailure, run
from examples.stage.scene import Scene, fresh_scene, git, make_repository, stage_environment, write_config

TASKS = ["tag-storage", "tag-api"]
HOLD = """
import pathlib, sys, time
sys.path.insert(0, "examples")
from stage.scene import fresh_scene
with fresh_scene(pathlib.Path(sys.argv[1]), tell=print):
    print("holding", flush=True)
    time.sleep(60)
"""

PARENT = """
import os, pathlib, sys, time
sys.path.insert(0, "examples")
from stage.processes import Program
code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
program = Program([sys.executable, "-c", code], environment=os.environ, log=pathlib.Path(sys.argv[1]))
print(program.first_line(), flush=True)
time.sleep(60)
"""


def eventually(condition: Callable[[], bool], *, seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()


def over(pid: int) -> bool:
    """Whether the process has ended; nobody may have collected it yet."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with fresh_scene(tmp_path / "demo", tell=print) as made:
        yield made


@pytest.fixture
def repository(scene: Scene) -> str:
    """The base commit of a repository in which ``mendwork/b`` was built well."""
    base = make_repository(scene)
    elsewhere = scene.folder / "elsewhere"
    run(["git", "clone", "-q", str(scene.repository), str(elsewhere)])
    for number, task in enumerate(TASKS):
        passing = f"import unittest\nclass T{number}(unittest.TestCase):\n    def test_it(self): pass\n"
        (elsewhere / "tests" / f"test_new_{number}.py").write_text(passing)
        commit(elsewhere, f"Something\n\nMendwork-Task: {task}")
    run(["git", "-C", str(elsewhere), "push", "-q", "origin", "HEAD:refs/heads/mendwork/b"])
    return base


def commit(folder: Path, message: str) -> None:
    run(["git", "-C", str(folder), "add", "--all"])
    run(["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", message])


def broken(promises: list[Promise]) -> list[int]:
    return [number for number, promise in enumerate(promises) if not promise.holds]


class TestScene:
    def test_a_folder_is_emptied_and_ignores_itself(self, tmp_path: Path) -> None:
        (tmp_path / "old" / "deep").mkdir(parents=True)
        outside = tmp_path.parent / "outside"
        outside.mkdir(exist_ok=True)
        (tmp_path / "link").symlink_to(outside)
        with fresh_scene(tmp_path, tell=print):
            assert sorted(path.name for path in tmp_path.iterdir()) == [".gitignore", "demo.lock"]
        assert outside.is_dir()

    def test_a_demo_that_still_runs_is_stopped_first(self, tmp_path: Path) -> None:
        root = Path(__file__).parents[2]
        argv = [sys.executable, "-c", HOLD, str(tmp_path)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=root) as old:
            assert old.stdout is not None
            assert old.stdout.readline() == b"holding\n"
            told: list[str] = []
            with fresh_scene(tmp_path, tell=told.append):
                assert old.wait(30) == -signal.SIGTERM
            assert told == [f"Another demo (pid {old.pid}) runs in {tmp_path}: it is stopped."]

    def test_the_repository_is_clean_and_has_one_commit(self, scene: Scene) -> None:
        base = make_repository(scene)
        assert git(scene, "rev-list", "--all").split() == [base]
        assert git(scene, "status", "--porcelain", "--ignored") == ""
        assert git(scene, "branch", "--show-current").strip() == "main"

    def test_the_configuration_is_one_that_mendwork_reads(self, scene: Scene) -> None:
        make_repository(scene)
        write_config(scene, model="", base_url="http://127.0.0.1:1/v1")
        environment = stage_environment(scene, {"PATH": os.environ["PATH"]}, scripted=True)
        settings = load_settings(start=Path("/"), environment=environment)
        project = settings.allowlist()["notes"]
        assert project.repository == str(scene.repository)
        assert project.test[1:] == ("-m", "unittest", "discover", "-s", "tests", "-t", ".")
        assert settings.chain("coding") == settings.chain("reasoning") == ("writer",)
        assert settings.chain("validation") == ("reviewer",)
        assert {model.api_key_env for model in settings.models.values()} <= set(environment)
        consent = project.consent
        assert (consent.approve, consent.review, consent.land) == (("change", "release"), True, "branch")
        assert (settings.temporal.port, settings.timeouts.heartbeat) == (0, 2.0)

    def test_a_release_is_watched_for_ninety_seconds_and_a_short_watch_has_as_many_requests_as_it_needs(
        self, scene: Scene
    ) -> None:
        make_repository(scene)
        environment = stage_environment(scene, {"PATH": os.environ["PATH"]}, scripted=False)
        found = {}
        for seconds in (90.0, 8.0):
            write_config(scene, model="a/b", base_url="", watch=seconds)
            project = load_settings(start=Path("/"), environment=environment).allowlist()["notes"]
            assert project.delivery is not None
            watch = project.delivery.watch
            found[seconds] = watch
            assert watch.rate * watch.window >= watch.min_asked
            assert (project.delivery.run[1:], project.delivery.target) == (("-m", "notes"), "local")
            assert (scene.repository / "integration").is_dir()
        assert (found[90.0].seconds, found[90.0].window, found[8.0].window) == (90.0, 10.0, 2.0)
        assert found[90.0].window * found[90.0].guard_windows < 45

    def test_what_the_last_demo_left_in_production_is_stopped_before_its_folder_is_emptied(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fake = tmp_path / "mendwork"
        fake.write_text(f'#!/bin/sh\necho "$@" "$MENDWORK_CONFIG" > {tmp_path}/said\nls {tmp_path}/demo/.mendwork\n')
        fake.chmod(0o755)
        monkeypatch.setattr(stage_scene, "MENDWORK", str(fake))
        (tmp_path / "demo" / ".mendwork").mkdir(parents=True)
        with fresh_scene(tmp_path / "demo", tell=print):
            assert not (tmp_path / "said").exists(), "without a configuration nothing was started"
        (tmp_path / "demo" / ".mendwork").mkdir(parents=True)
        (tmp_path / "demo" / "mendwork.toml").touch()
        told: list[str] = []
        with fresh_scene(tmp_path / "demo", tell=told.append):
            assert (tmp_path / "said").read_text().split() == ["target", "stop", f"{tmp_path}/demo/mendwork.toml"]
        assert told == []

    def test_a_real_model_is_configured_without_server_or_key(self, scene: Scene) -> None:
        make_repository(scene)
        write_config(scene, model="anthropic/some-model", base_url="")
        environment = stage_environment(scene, {"ANTHROPIC_API_KEY": "k"}, scripted=False)
        (model,) = load_settings(start=Path("/"), environment=environment).models.values()
        assert (model.model, model.base_url, model.api_key_env) == ("anthropic/some-model", "", "")
        assert "k" not in scene.config.read_text().split()

    def test_somebody_elses_temporal_and_proxy_are_left_out(self, scene: Scene) -> None:
        mine = {"TEMPORAL_ADDRESS": "prod:7233", "MENDWORK_STORE": "x", "HTTP_PROXY": "http://p", "NO_PROXY": "a.b"}
        environment = stage_environment(scene, mine, scripted=True)
        assert "TEMPORAL_ADDRESS" not in environment
        assert "MENDWORK_STORE" not in environment
        assert environment["NO_PROXY"] == "a.b,127.0.0.1,localhost"
        assert not Path(environment["TEMPORAL_CONFIG_FILE"]).exists()


class TestProgram:
    def start(self, code: str, tmp_path: Path, heard: list[str] | None = None) -> Program:
        argv = [sys.executable, "-u", "-c", code]
        hear = None if heard is None else heard.append
        return Program(argv, environment=os.environ, log=tmp_path / "log", hear=hear)

    def test_lines_are_heard_and_kept(self, tmp_path: Path) -> None:
        heard: list[str] = []
        program = self.start("import sys; print('a', file=sys.stderr); print('out'); sys.exit(3)", tmp_path, heard)
        assert program.result() == (3, "out\n")
        assert (heard, program.said()) == (["a"], "a")

    def test_stopping_takes_the_whole_process_group(self, tmp_path: Path) -> None:
        code = "import subprocess, time; p = subprocess.Popen(['sleep', '60']); print(p.pid); time.sleep(60)"
        program = self.start(code, tmp_path)
        child = int(program.first_line())
        program.stop()
        assert program.code == -signal.SIGTERM
        assert eventually(lambda: over(child))

    def test_a_program_that_ignores_sigterm_is_killed(self, tmp_path: Path) -> None:
        code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf'); time.sleep(60)"
        program = self.start(code, tmp_path)
        assert program.first_line() == "deaf"
        program.stop(grace=0.2)
        assert program.code == -signal.SIGKILL

    def test_it_dies_with_a_demo_that_is_killed(self, tmp_path: Path) -> None:
        argv = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as demo:
            assert demo.stdout is not None
            child = int(demo.stdout.readline())
            demo.kill()
        assert eventually(lambda: over(child))

    def test_a_command_that_fails_is_told_with_its_own_words(self) -> None:
        with pytest.raises(StageFailure, match="fails with 1: oh no"):
            run([sys.executable, "-c", "import sys; sys.exit('oh no')"])
        with pytest.raises(StageFailure, match="No such file"):
            run(["/nowhere/at/all"])


class TestChecks:
    def test_a_good_repository_keeps_every_promise(self, scene: Scene, repository: str) -> None:
        promises = repository_promises(scene, branch="mendwork/b", base=repository, tasks=TASKS)
        assert broken(promises + suite_promises(scene, branch="mendwork/b")) == []

    def test_another_branch_a_missing_commit_and_a_touched_tree_are_seen(self, scene: Scene, repository: str) -> None:
        git(scene, "branch", "other")
        (scene.repository / "README.md").write_text("changed")
        promises = repository_promises(scene, branch="mendwork/b", base=repository, tasks=[*TASKS, "tag-export"])
        assert broken(promises) == [0, 1, 2]

    def test_a_commit_of_nobodys_task_is_seen(self, scene: Scene, repository: str) -> None:
        promises = repository_promises(scene, branch="mendwork/b", base=repository, tasks=TASKS[:1])
        assert broken(promises) == [1]

    def test_a_task_may_have_several_commits_in_any_order(self, scene: Scene, repository: str) -> None:
        elsewhere = scene.folder / "elsewhere"
        (elsewhere / "more").write_text("more")
        commit(elsewhere, f"Mended\n\nMendwork-Task: {TASKS[0]}")
        run(["git", "-C", str(elsewhere), "push", "-q", "origin", "HEAD:refs/heads/mendwork/b"])
        promises = repository_promises(scene, branch="mendwork/b", base=repository, tasks=TASKS[::-1])
        assert broken(promises) == []

    def test_red_tests_and_lost_tests_are_seen(self, scene: Scene, repository: str) -> None:
        worse = scene.folder / "worse"
        run(["git", "clone", "-q", "--branch=mendwork/b", str(scene.repository), str(worse)])
        shutil.rmtree(worse / "tests")
        (worse / "tests").mkdir()
        (worse / "tests" / "__init__.py").touch()
        failing = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.fail()\n"
        (worse / "tests" / "test_one.py").write_text(failing)
        commit(worse, "Worse")
        run(["git", "-C", str(worse), "push", "-q", "origin", "HEAD:refs/heads/mendwork/c"])
        assert broken(suite_promises(scene, branch="mendwork/c")) == [0, 1]

    def test_an_answer_that_was_paid_twice_is_seen(self, tmp_path: Path) -> None:
        bill = tmp_path / "bill.jsonl"
        lost, answered = {"key": "b/plan/1/1", "fault": "slow"}, {"key": "b/plan/1/1", "fault": ""}
        other = {"key": "b/plan/2/1", "fault": ""}
        cases = {(0,): [lost, answered, other, other], (1,): [answered, other], (0, 1): [lost], (): [lost, answered]}
        for expected, lines in cases.items():
            bill.write_text("".join(json.dumps(line) + "\n" for line in lines))
            assert tuple(broken(bill_promises(bill))) == expected

    def test_a_report_tells_what_does_not_hold(self, capsys: pytest.CaptureFixture[str]) -> None:
        promises = [Promise(sentence="water is wet", holds=True), Promise(sentence="fire is cold", holds=False)]
        assert report(Narrator(), promises) is False
        assert capsys.readouterr().out == "   ✓ water is wet\n   ✗ fire is cold\n"
