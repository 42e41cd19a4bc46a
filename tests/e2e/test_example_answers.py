"""The demo's scripted answers, applied in plan order: wrong ones are red, right ones are green and add tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from adapters.models.scripted.script import load_script
from domain.build.change import Change, edited, path_problem
from domain.build.plan import Plan, problems, run_order

EXAMPLE = Path(__file__).parents[2] / "examples" / "notes"
FAULTS_SHOWN = {"rate_limited", "slow", "malformed_json"}


class Answers:
    """The answers file, by role, task and attempt."""

    def __init__(self) -> None:
        self.entries: list[Mapping[str, Any]] = yaml.safe_load((EXAMPLE / "answers.yaml").read_text(encoding="utf-8"))
        self.plan = TypeAdapter(Plan).validate_python(self._entry("Plan", None, 1)["answer"])

    def _entry(self, role: str, task: str | None, attempt: int) -> Mapping[str, Any]:
        (entry,) = [e for e in self.entries if (e["role"], e.get("task"), e.get("attempt", 1)) == (role, task, attempt)]
        return entry

    def attempts(self, task: str) -> int:
        return sum(e.get("task") == task for e in self.entries)

    def change(self, task: str, attempt: int) -> Change:
        return TypeAdapter(Change).validate_python(self._entry("Change", task, attempt)["answer"], strict=False)


def apply(change: Change, tree: Path) -> None:
    for operation in change.operations:
        assert path_problem(operation.path) is None
        path = tree / operation.path
        assert path.exists() is (operation.action != "create"), operation.path
        if operation.action == "edit":
            text = edited(operation.path, path.read_text(encoding="utf-8"), operation.edits)
        else:
            text = operation.content
        path.write_text(text, encoding="utf-8")


@cache
def run_tests(tree: Path) -> tuple[bool, int, str]:
    """Whether the suite of ``tree`` is green, how many tests ran, and its output."""
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "discover", "-s", "tests", "-t", "."],
        cwd=tree, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    counted = re.search(r"^Ran (\d+) tests? in", done.stderr, re.MULTILINE)
    return done.returncode == 0, int(counted[1]) if counted else 0, done.stderr


def broken_files(tree: Path) -> list[str]:
    found = []
    for path in sorted(tree.rglob("*.py")):
        try:
            compile(path.read_bytes(), str(path), "exec")
        except SyntaxError:
            found.append(str(path.relative_to(tree)))
    return found


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers()


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory, answers: Answers) -> dict[tuple[str, int], Path]:
    """The tree before (key ``("", 0)``) and after every attempt, which starts where the task before ended."""
    base = tmp_path_factory.mktemp("base") / "tree"
    shutil.copytree(EXAMPLE / "repo", base, ignore=shutil.ignore_patterns("__pycache__"))
    made: dict[tuple[str, int], Path] = {("", 0): base}
    for task in run_order(answers.plan):
        for attempt in range(1, answers.attempts(task) + 1):
            made[task, attempt] = tmp_path_factory.mktemp(task) / "tree"
            shutil.copytree(base, made[task, attempt])
            apply(answers.change(task, attempt), made[task, attempt])
        base = made[task, answers.attempts(task)]
    return made


def test_the_plan_is_usable_and_has_dependencies_and_shared_files(answers: Answers) -> None:
    assert problems(answers.plan, max_tasks=3) == ()
    storage, api, export = answers.plan.tasks
    assert (storage.depends_on, api.depends_on) == ((), ("tag-storage",))
    assert export.depends_on == ("tag-storage", "tag-api")
    assert set(api.files) & set(export.files) == {"notes/api.py", "README.md"}
    assert set(storage.files) & set(export.files) == {"notes/store.py"}


def test_the_scripted_server_takes_the_file() -> None:
    assert load_script(EXAMPLE / "answers.yaml")


def test_every_change_touches_exactly_the_files_that_the_plan_names(answers: Answers) -> None:
    for task in answers.plan.tasks:
        for attempt in range(1, answers.attempts(task.id) + 1):
            touched = {operation.path for operation in answers.change(task.id, attempt).operations}
            assert touched == set(task.files), (task.id, attempt)


def test_the_script_holds_the_faults_that_the_demo_promises(answers: Answers) -> None:
    kinds = [fault["kind"] for entry in answers.entries for fault in entry.get("faults", [])]
    assert sorted(kinds) == sorted(FAULTS_SHOWN)
    actions = {operation.action for task, n in [("tag-storage", 2), ("tag-export", 1)]
               for operation in answers.change(task, n).operations}  # fmt: skip
    assert actions == {"create", "edit", "replace"}


def test_the_right_answers_are_green_and_each_adds_tests(trees: dict[tuple[str, int], Path]) -> None:
    counts = []
    for key in (("", 0), ("tag-storage", 2), ("tag-api", 2), ("tag-export", 1)):
        green, count, output = run_tests(trees[key])
        assert green, output
        counts.append(count)
    assert counts[0] >= 40
    assert counts == sorted(set(counts)), "every task adds tests"


def test_the_first_tag_storage_is_caught_by_the_tests_that_it_brings(trees: dict[tuple[str, int], Path]) -> None:
    tree = trees["tag-storage", 1]
    assert broken_files(tree) == []
    green, count, output = run_tests(tree)
    assert not green
    assert count == run_tests(trees["tag-storage", 2])[1]
    assert re.findall(r"^FAIL: (\w+)", output, re.MULTILINE) == [
        "test_a_change_replaces_the_tags",
        "test_a_listing_by_two_tags_needs_both",
    ]


def test_the_first_tag_api_is_no_python(trees: dict[tuple[str, int], Path]) -> None:
    assert broken_files(trees["tag-api", 1]) == ["notes/validation.py"]
    assert broken_files(trees["tag-api", 2]) == []


def test_the_example_is_large_enough_and_needs_the_standard_library_alone() -> None:
    sources = sorted((EXAMPLE / "repo" / "notes").rglob("*.py"))
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources) >= 500
    imported = {name for path in sources for name in re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.M)}
    assert imported - set(sys.stdlib_module_names) == {"notes"}
