"""The demo's scripted answers, applied in plan order: wrong ones are red, right ones are green and add tests."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from adapters.models.scripted.script import load_script
from domain.build.change import Change, edited, path_problem
from domain.build.plan import Plan, problems
from domain.flow.board import Node, TaskState, startable, undeclared
from domain.review.findings import Review
from examples.stage.traffic import fetch
from tests.e2e.workshop import git, make_repository

EXAMPLE = Path(__file__).parents[2] / "examples" / "notes"
FAULTS_SHOWN = {"rate_limited", "slow", "malformed_json"}
Attempt = tuple[str, int]
BASE: Attempt = ("", 0)


# Where the build writes each attempt: on top of which other one, or of the base.
WRITTEN_ON = {
    ("tag-storage", 1): BASE,
    ("tag-storage", 2): BASE,
    ("tag-api", 1): ("tag-storage", 2),
    ("tag-api", 2): ("tag-storage", 2),
    ("tag-export", 1): ("tag-storage", 2),
    ("tag-export", 2): ("tag-api", 2),
    ("tag-export", 3): ("tag-export", 2),
}
UNPLANNED = {"notes/api.py", "README.md"}


class Answers:
    """An answers file, by role, task and attempt."""

    def __init__(self, name: str = "answers.yaml") -> None:
        self.entries: list[Mapping[str, Any]] = yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8"))
        self.plan = TypeAdapter(Plan).validate_python(self._entry("Plan", None, 1)["answer"])

    def _entry(self, role: str, task: str | None, attempt: int) -> Mapping[str, Any]:
        (entry,) = [e for e in self.entries if (e["role"], e.get("task"), e.get("attempt", 1)) == (role, task, attempt)]
        return entry

    def changes(self) -> list[Attempt]:
        return [(e["task"], e["attempt"]) for e in self.entries if e["role"] == "Change"]

    def change(self, task: str, attempt: int) -> Change:
        return TypeAdapter(Change).validate_python(self._entry("Change", task, attempt)["answer"], strict=False)

    def review(self, attempt: int) -> Review:
        return TypeAdapter(Review).validate_python(self._entry("Review", None, attempt)["answer"], strict=False)


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
def trees(tmp_path_factory: pytest.TempPathFactory, answers: Answers) -> dict[Attempt, Path]:
    """The tree of the base and of every attempt."""
    base = tmp_path_factory.mktemp("base") / "tree"
    shutil.copytree(EXAMPLE / "repo", base, ignore=shutil.ignore_patterns("__pycache__"))
    made: dict[Attempt, Path] = {BASE: base}
    for (task, attempt), before in WRITTEN_ON.items():
        made[task, attempt] = tmp_path_factory.mktemp(task) / "tree"
        shutil.copytree(made[before], made[task, attempt], ignore=shutil.ignore_patterns("__pycache__"))
        apply(answers.change(task, attempt), made[task, attempt])
    return made


def nodes(plan: Plan) -> list[Node]:
    return [Node(id=task.id, depends_on=task.depends_on, files=(*task.files, *task.tests)) for task in plan.tasks]


def test_the_plan_is_usable_and_two_of_its_tasks_run_side_by_side(answers: Answers) -> None:
    assert problems(answers.plan, max_tasks=3) == ()
    states = {task.id: TaskState() for task in answers.plan.tasks}
    assert startable(nodes(answers.plan), states, limit=4) == ("tag-storage",)
    states["tag-storage"].status = "merged"
    assert startable(nodes(answers.plan), states, limit=4) == ("tag-api", "tag-export")


def test_every_answer_is_asked_for(answers: Answers) -> None:
    assert answers.changes() == list(WRITTEN_ON)
    assert len(answers.entries) == 1 + len(WRITTEN_ON) + 2


@pytest.mark.parametrize("name", ["answers.yaml", "busy.yaml"])
def test_the_scripted_server_takes_the_file(name: str) -> None:
    assert load_script(EXAMPLE / name)


def test_only_the_export_touches_files_that_the_plan_does_not_name_for_it(answers: Answers) -> None:
    for task, attempt in answers.changes():
        (node,) = [node for node in nodes(answers.plan) if node.id == task]
        touched = {operation.path for operation in answers.change(task, attempt).operations}
        unplanned = UNPLANNED if task == "tag-export" and attempt < 3 else set()
        assert set(undeclared(node, touched)) == unplanned, (task, attempt)


def test_the_script_holds_the_faults_that_the_demo_promises(answers: Answers) -> None:
    kinds = [fault["kind"] for entry in answers.entries for fault in entry.get("faults", [])]
    assert sorted(kinds) == sorted(FAULTS_SHOWN)
    actions = {operation.action for each in answers.changes() for operation in answers.change(*each).operations}
    assert actions == {"create", "edit", "replace"}


def test_the_right_answers_are_green_and_each_adds_tests(trees: dict[Attempt, Path]) -> None:
    counts = []
    for key in (BASE, ("tag-storage", 2), ("tag-api", 2), ("tag-export", 2), ("tag-export", 3)):
        green, count, output = run_tests(trees[key])
        assert green, output
        counts.append(count)
    assert counts[0] >= 40
    assert counts == sorted(set(counts)), "every task adds tests"


def test_the_first_export_is_green_by_itself_and_conflicts_with_the_api(
    trees: dict[Attempt, Path], tmp_path: Path
) -> None:
    green, _, output = run_tests(trees["tag-export", 1])
    assert green, output
    repository = make_repository(tmp_path / "merge", {".keep": ""})
    for branch, attempt in (("main", ("tag-storage", 2)), ("api", ("tag-api", 2)), ("export", ("tag-export", 1))):
        git(repository, "checkout", "-q", *([] if branch == "main" else ["-b", branch, "main"]))
        shutil.copytree(trees[attempt], repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "-m", branch)
    merged = subprocess.run(
        ["git", "-C", str(repository), "merge-tree", "--write-tree", "--name-only", "api", "export"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert merged.returncode == 1
    assert set(merged.stdout.split("\n\n")[0].splitlines()[1:]) == UNPLANNED


def test_the_reviewer_is_right_and_what_it_found_is_mended(
    answers: Answers, trees: dict[Attempt, Path], tmp_path: Path
) -> None:
    serious = [finding for finding in answers.review(1).findings if finding.severity == "high"]
    assert [(finding.task, finding.file) for finding in serious] == [("tag-export", "notes/__main__.py")]
    line = (trees["tag-export", 2] / serious[0].file).read_text().splitlines()[serious[0].line - 1]
    assert line.strip() == "store = NoteStore(config.database)"
    for attempt, code, made in ((2, 0, True), (3, 1, False)):
        folder = tmp_path / str(attempt)
        done = subprocess.run(
            [sys.executable, "-m", "notes", "export"],
            cwd=trees["tag-export", attempt], env={"DATA_DIR": str(folder)}, capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode, (folder / "notes.db").exists()) == (code, made)


def test_the_second_review_finds_nothing_serious_and_every_finding_has_its_file(
    answers: Answers, trees: dict[Attempt, Path]
) -> None:
    assert {finding.severity for finding in answers.review(2).findings} == {"low"}
    for number in (1, 2):
        for finding in answers.review(number).findings:
            assert (trees["tag-export", number + 1] / finding.file).is_file()


def test_the_first_tag_storage_is_caught_by_the_tests_that_it_brings(trees: dict[Attempt, Path]) -> None:
    tree = trees["tag-storage", 1]
    assert broken_files(tree) == []
    green, count, output = run_tests(tree)
    assert not green
    assert count == run_tests(trees["tag-storage", 2])[1]
    assert re.findall(r"^FAIL: (\w+)", output, re.MULTILINE) == [
        "test_a_change_replaces_the_tags",
        "test_a_listing_by_two_tags_needs_both",
    ]


def test_the_first_tag_api_is_no_python(trees: dict[Attempt, Path]) -> None:
    assert broken_files(trees["tag-api", 1]) == ["notes/validation.py"]
    assert broken_files(trees["tag-api", 2]) == []


def test_the_example_is_large_enough_and_needs_the_standard_library_alone() -> None:
    sources = sorted((EXAMPLE / "repo" / "notes").rglob("*.py"))
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources) >= 500
    imported = {name for path in sources for name in re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.M)}
    assert imported - set(sys.stdlib_module_names) == {"notes"}


@pytest.fixture(scope="module")
def busy(trees: dict[Attempt, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree with the second feature, on top of the first."""
    tree = tmp_path_factory.mktemp("busy") / "tree"
    shutil.copytree(trees["tag-export", 3], tree, ignore=shutil.ignore_patterns("__pycache__"))
    apply(Answers("busy.yaml").change("places", 1), tree)
    return tree


class Service:
    """The notes service of a tree, as production runs it."""

    def __init__(self, tree: Path, data: Path) -> None:
        variables = {"PATH": os.environ["PATH"], "PORT": "0", "DATA_DIR": str(data), "AT_ONCE": "3"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "notes"], cwd=tree, env=variables, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        self.port = int(json.loads(self.process.stderr.readline())["port"])
        self.url = f"http://127.0.0.1:{self.port}"

    def ask(self, path: str) -> int:
        return fetch(self.url, path)[0]


@contextlib.contextmanager
def serving(tree: Path, data: Path) -> Iterator[Service]:
    service = Service(tree, data)
    try:
        yield service
    finally:
        service.process.terminate()
        service.process.communicate(timeout=20)


def test_the_bad_change_fits_its_plan_and_is_green_in_every_test(busy: Path, trees: dict[Attempt, Path]) -> None:
    answers = Answers("busy.yaml")
    assert problems(answers.plan, max_tasks=3) == ()
    (node,) = nodes(answers.plan)
    assert undeclared(node, {operation.path for operation in answers.change("places", 1).operations}) == ()
    assert all(finding.severity == "low" for finding in answers.review(1).findings)
    assert broken_files(busy) == []
    green, count, output = run_tests(busy)
    assert green, output
    assert count > run_tests(trees["tag-export", 3])[1]


def test_the_bad_change_passes_the_integration_tests_and_fails_in_production_after_a_while(
    busy: Path, trees: dict[Attempt, Path], tmp_path: Path
) -> None:
    for tree, after in ((trees["tag-export", 3], 200), (busy, 503)):
        with serving(tree, tmp_path / str(after)) as service:
            done = subprocess.run(
                [sys.executable, "-m", "unittest", "discover", "-s", "integration"],
                cwd=tree, env={"MENDWORK_TARGET_URL": service.url}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert service.ask("/notes") == 200
            missed = [service.ask("/notes/gone") for _ in range(4)]
            assert missed[0] == 404
            assert service.ask("/notes") == after
            assert service.ask("/healthz") == 200, "the health check alone does not find it"
