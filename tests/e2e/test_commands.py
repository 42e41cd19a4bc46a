"""The command line as a person uses it, against everything real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.workshop import MENDWORK, SPEC, Workshop, git, wait_for

Case = tuple[list[str], int, str]


def refs(at: Workshop) -> str:
    return git(at.repository, "for-each-ref") + git(at.repository, "status", "--porcelain")


def checkouts(at: Workshop) -> list[Path]:
    return list((at.state / "work").iterdir())


def mirrored(at: Workshop, build: str) -> str:
    return git(at.state / "mirrors" / "calc.git", "for-each-ref", f"refs/mendwork/builds/{build}")


class TestABuild:
    def test_ends_with_its_name_on_stdout_and_everything_for_people_on_stderr(self, shop: Workshop) -> None:
        ran = shop.mendwork("build", "spec.md", "--project", "calc")
        assert ran.code == 0, ran.err
        assert ran.out.strip().startswith("build-calc-")
        assert ran.out.count("\n") == 1
        assert "mul #1: red: 1 new failure: test_it (test_mul.T.test_it)" in ran.err
        assert "mul #2: green: 4 tests passed" in ran.err
        assert git(shop.repository, "log", "--format=%s", f"mendwork/{ran.out.strip()}").splitlines() == [
            "Add square",
            "Add mul",
            "start",
        ]

    def test_goes_on_from_tests_that_are_red_before_any_change(self, shop: Workshop) -> None:
        ran = shop.mendwork("build", "spec.md", "--project", "red")
        assert ran.code == 0, ran.err
        assert "1 of 3 tests fail before any change: test_small (test_calc.AddTest.test_small)" in ran.err
        assert "mul #2: green: 3 tests passed (1 known to fail)" in ran.err

    def test_is_shown_with_its_attempts_diffs_and_logs(self, shop: Workshop) -> None:
        name = shop.mendwork("build", "spec.md", "--project", "calc").out.strip()
        assert "+def square(a):" in shop.mendwork("show", name, "--diff").out
        wrong = shop.mendwork("show", name, "--task", "mul", "--attempt", "1", "--diff").out
        assert "+def mul(a, b):\n+    return a + b" in wrong
        log = shop.mendwork("show", name, "--task", "mul", "--attempt", "1", "--log").out
        assert "AssertionError: 5 != 6" in log
        attempts = json.loads(shop.mendwork("show", name, "--json").out)["tasks"]["mul"]["attempts"]
        assert [attempt["phase"] for attempt in attempts] == ["red", "green"]

    def test_counts_its_calls_and_their_cost(self, shop: Workshop) -> None:
        name = shop.mendwork("build", "spec.md", "--project", "calc").out.strip()
        status = shop.status(name)
        lines = [line for line in shop.billed() if line["key"].startswith(name)]
        cost = sum(line["input_tokens"] + 4 * line["output_tokens"] for line in lines)
        assert status["calls"] == len(lines) == 4
        assert cost <= status["cost_micros"] <= cost + len(lines)  # each call is rounded up to a micro-dollar

    def test_detached_goes_on_and_can_be_watched(self, shop: Workshop) -> None:
        started = shop.mendwork("build", "spec.md", "--project", "calc", "--detach")
        assert started.code == 0
        watched = shop.mendwork("watch", started.out.strip())
        assert watched.code == 0
        assert "succeeded: on branch mendwork/" in watched.err

    def test_left_by_ctrl_c_goes_on_and_says_how_to_come_back(self, shop: Workshop) -> None:
        # A shell's background job ignores SIGINT and hands that on; a person at a terminal does not.
        argv = ["env", "--default-signal=INT", *MENDWORK, "build", "spec.md", "--project", "calc"]
        with subprocess.Popen(
            argv, cwd=shop.root, env=shop.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            name = process.stderr.readline().split()[0]
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
        assert process.returncode == 130
        assert f"mendwork watch {name}" in rest
        assert shop.mendwork("watch", name).code == 0

    def test_takes_its_spec_from_standard_input(self, shop: Workshop) -> None:
        ran = shop.mendwork("build", "-", "--project", "calc", "--title", "By hand", stdin=SPEC)
        assert ran.code == 0
        assert shop.status(ran.out.strip())["title"] == "By hand"

    def test_gets_a_number_of_its_own_also_under_races(self, shop: Workshop) -> None:
        with ThreadPoolExecutor(4) as pool:
            started = list(
                pool.map(lambda _: shop.mendwork("build", "spec.md", "--project", "calc", "--detach"), range(4))
            )
        names = [ran.out.strip() for ran in started]
        assert len(set(names)) == 4
        assert [shop.mendwork("watch", name).code for name in names] == [0] * 4

    def test_prints_events_as_json_lines_when_asked(self, shop: Workshop) -> None:
        ran = shop.mendwork("build", "spec.md", "--project", "calc", "--json")
        events = [json.loads(line) for line in ran.out.splitlines()]
        assert events[0]["kind"] == "build.started"
        assert events[-1]["kind"] == "build.ended"
        assert events[-1]["data"]["status"] == "succeeded"


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "code", "sentence"),
        [
            (["build", "no-such-file.md", "--project", "calc"], 2, "cannot be read"),
            (["build", "empty.md", "--project", "calc"], 2, "the spec is empty"),
            (["build", "large.md", "--project", "calc"], 2, "at most 64000 are allowed"),
            (["build", "spec.md", "--project", "cal"], 2, "unknown project 'cal'; known: branchless, calc"),
            (["build", "spec.md"], 2, "--project: name one of"),
            (["build", "spec.md", "--project", "mute"], 3, "which tests did cannot be read"),
            (["build", "spec.md", "--project", "testless"], 3, "no test ran"),
            (["build", "spec.md", "--project", "nowhere"], 3, "does-not-exist"),
            (["build", "spec.md", "--project", "branchless"], 3, "develop"),
            (["build", "spec.md", "--project", "untold"], 2, "no-such-runner"),
            (["status", "build-calc-999"], 2, "unknown build 'build-calc-999'"),
            (["show", "build-calc-999"], 2, "unknown build 'build-calc-999'"),
            (["watch", "build-calc-999"], 1, "build-calc-999"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_ends_at_once_with_one_sentence_and_leaves_nothing_behind(
        self, shop: Workshop, arguments: list[str], code: int, sentence: str
    ) -> None:
        (shop.root / "empty.md").write_text(" \n")
        (shop.root / "large.md").write_text("x" * 64_001)
        before = refs(shop)
        ran = shop.mendwork(*arguments, seconds=60)
        assert ran.code == code, ran.err
        assert sentence in ran.err.splitlines()[-1]
        assert "Traceback" not in ran.err
        assert refs(shop) == before
        assert checkouts(shop) == []

    def test_a_taken_result_branch_is_refused_before_any_model_is_asked(self, shop: Workshop) -> None:
        last = shop.mendwork("build", "spec.md", "--project", "calc").out.strip()
        name = f"build-calc-{int(last.rpartition('-')[2]) + 1}"
        git(shop.repository, "branch", f"mendwork/{name}", "main")
        ran = shop.mendwork("build", "spec.md", "--project", "calc")
        assert ran.code == 3
        assert f"mendwork/{name}" in ran.err.splitlines()[-1]
        assert not [line for line in shop.billed() if line["key"].startswith(f"{name}/")]
        assert mirrored(shop, name) == ""
        assert shop.status(name)["status"] == "failed"
        git(shop.repository, "branch", "--delete", f"mendwork/{name}")  # it was ours: a build that failed leaves none

    def test_an_attempt_without_its_task_is_a_usage_error(self, shop: Workshop) -> None:
        name = shop.mendwork("build", "spec.md", "--project", "calc").out.strip()
        assert shop.mendwork("show", name, "--attempt", "1").code == 2
        ran = shop.mendwork("show", name, "--task", "mull")
        assert (ran.code, "known: mul, square" in ran.err) == (2, True)
        assert "has 2 attempts, not 7" in shop.mendwork("show", name, "--task", "mul", "--attempt", "7").err


class TestWithoutServer:
    @pytest.fixture
    def alone(self, tmp_path: Path) -> Workshop:
        at = Workshop(tmp_path / "w")
        at.configure()
        return at

    def test_a_build_says_how_to_start_one(self, alone: Workshop) -> None:
        ran = alone.mendwork("build", "spec.md")
        assert (ran.code, ran.out) == (1, "")
        assert "mendwork dev" in ran.err
        assert ran.err.count("\n") == 1

    def test_status_answers_from_the_store(self, alone: Workshop) -> None:
        ran = alone.mendwork("status", "--json")
        assert (ran.code, json.loads(ran.out)) == (0, [])

    def test_a_folder_without_configuration_is_told_what_is_missing(self, alone: Workshop) -> None:
        os.remove(alone.root / "mendwork.toml")
        ran = alone.mendwork("status")
        assert ran.code == 2
        assert "mendwork.toml" in ran.err

    def test_a_broken_configuration_names_file_field_and_reason(self, alone: Workshop) -> None:
        alone.configure(extra='\n[projects.x]\nrepository = "x"\ntest = "t"\nbranches = "main"\n')
        ran = alone.mendwork("status")
        assert ran.code == 2
        assert "branches" in ran.err
        assert "mendwork.toml" in ran.err

    @pytest.mark.parametrize("command", [["status"], ["build", "spec.md"], ["dev"]], ids=" ".join)
    @pytest.mark.parametrize(
        ("extra", "sentence"),
        [
            ('\n[roles]\ncoding = ["nope"]\n', "unknown model in roles.coding 'nope'; known: coder"),
            ("\n[projects.calc.limits]\nattempts = 0\n", "attempts must be a number above 0"),
            ('\n[projects.Bad_Name]\nrepository = "x"\ntest = "t"\n', "project name 'Bad_Name'"),
        ],
        ids=["role", "limit", "name"],
    )
    def test_a_configuration_that_cannot_hold_is_told_by_every_command(
        self, alone: Workshop, command: list[str], extra: str, sentence: str
    ) -> None:
        alone.configure(extra=extra)
        ran = alone.mendwork(*command, seconds=60)
        assert ran.code == 2
        assert sentence in ran.err
        assert ran.err.count("\n") == 1

    def test_the_version_is_told(self, alone: Workshop) -> None:
        assert alone.mendwork("--version").out.strip()[0].isdigit()


def test_a_server_without_workers_is_told_in_one_sentence(shop: Workshop) -> None:
    state = json.loads((shop.state / "dev.json").read_text())
    environment = {"MENDWORK_TEMPORAL__ADDRESS": state["address"], "MENDWORK_TEMPORAL__TASK_QUEUE": "nobody-here"}
    done = subprocess.run(
        [*MENDWORK, "build", "spec.md", "--project", "calc"],
        cwd=shop.root,
        env={**shop.environment, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "no worker answers on task queue 'nobody-here'" in done.stderr


def test_what_was_built_is_told_after_everything_has_ended(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w")
    with at.running():
        name = at.mendwork("build", "spec.md").out.strip()
    wait_for(lambda: not at.pids(), why="the end of all workers")
    assert at.status(name)["status"] == "succeeded"
    assert at.mendwork("watch", name).code == 0
    assert "+def mul" in at.mendwork("show", name, "--diff").out
