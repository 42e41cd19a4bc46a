"""Names that go everywhere: git refs, folders, workflow ids."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain.build.names import (
    build_name,
    check_build_name,
    check_project_name,
    is_task_id,
    result_branch,
    task_saga_id,
)
from domain.delivery.requests import delivery_name
from domain.errors import InvalidName

WORDS = st.sampled_from(["build", "task", "a", "api", "1", "2"])
NAMES = st.lists(WORDS, min_size=1, max_size=6).map("-".join)
ANY_TEXT = st.one_of(
    NAMES, st.text(max_size=12), st.text(alphabet="ab.-_/\\@{}~^:?*[ \n\0\x7f", max_size=8), st.from_regex(r"\w+\.lock")
)


def valid(name: str, check: object) -> bool:
    try:
        check(name)  # type: ignore[operator]
    except InvalidName:
        return False
    return True


PROJECTS = NAMES.filter(lambda name: valid(name, check_project_name))
BUILDS = NAMES.filter(lambda name: valid(name, check_build_name))


def git_takes(branch: str) -> bool:
    """git's own opinion; text that cannot be an argument cannot be a branch either."""
    try:
        done = subprocess.run(["git", "check-ref-format", "--branch", branch], capture_output=True, check=False)
    except ValueError:
        return False
    return done.returncode == 0


@settings(max_examples=60, deadline=None)
@given(ANY_TEXT)
@example("a..b")
@example("a.lock")
@example("a.")
@example("a\n")
@example("-a")
@example("a" * 100)
def test_an_accepted_build_name_is_a_branch_that_git_takes(name: str) -> None:
    assert not valid(name, check_build_name) or git_takes(result_branch(name))


@given(ANY_TEXT)
def test_an_accepted_build_name_is_one_plain_folder_below_its_parent(name: str) -> None:
    if valid(name, check_build_name):
        assert (Path("/state") / name).resolve().relative_to("/state").parts == (name,)
        assert name.isascii()
        assert name.isprintable()


@given(PROJECTS, st.integers(1, 10**9))
@example("task", 1)
@example("task-api", 12)
@example("a" * 40, 10**9)
def test_every_project_has_names_of_builds_and_deliveries_that_are_accepted(project: str, number: int) -> None:
    for name in (build_name(project, number), delivery_name(project, number)):
        assert check_build_name(name) == name


@given(PROJECTS, st.integers(1, 99), PROJECTS, st.integers(1, 99))
def test_two_builds_never_share_a_name(one: str, first: int, other: str, second: int) -> None:
    assert (build_name(one, first) == build_name(other, second)) == ((one, first) == (other, second))


@given(BUILDS, NAMES)
@example("build-login", "x-3")
@example("deliver-login", "x-3")
@example("a", "b-task-c")
def test_a_tasks_saga_never_has_the_id_of_a_build(build: str, task: str) -> None:
    assert not valid(task_saga_id(build, task), check_build_name)


@settings(max_examples=300)
@given(BUILDS, NAMES)
@example("a", "b-task-c")
@example("a", "task-task")
def test_a_tasks_saga_id_says_build_and_task_without_doubt(build: str, task: str) -> None:
    saga = task_saga_id(build, task)
    ends = [at for at in range(len(saga)) if saga.startswith("-task-", at)]
    readings = [(saga[:at], saga[at + len("-task-") :]) for at in ends]
    assert [pair for pair in readings if valid(pair[0], check_build_name) and is_task_id(pair[1])] == [(build, task)]


@pytest.mark.parametrize(
    "name", ["", "a/b", "a b", "a..b", "a.lock", "a.", ".a", "-a", "é", "a\n", "a" * 101, "a-task-b", "a-task", "build"]
)
def test_a_name_that_cannot_be_used_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(InvalidName, match=r"build name .*(cannot be a|reads as)"):
        check_build_name(name)


@pytest.mark.parametrize("name", ["", "A", "a_b", "a.b", "-a", "a-", "a" * 41, "my-task", "my-task-app", "a\n"])
def test_a_project_name_that_cannot_be_used_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(InvalidName, match="project name"):
        check_project_name(name)


@pytest.mark.parametrize("name", ["a", "task", "tasks", "task-api", "todo-tasks", "multi-tasking"])
def test_ordinary_project_names_are_accepted(name: str) -> None:
    assert check_project_name(name) == name


def test_a_long_name_is_cut_in_the_sentence() -> None:
    with pytest.raises(InvalidName) as caught:
        check_build_name("x" * 100_000)
    assert len(str(caught.value)) < 300
