"""Tasks beside each other: what merges, what is sent back, what is left out; every build runs at the same time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.projects import Scene, built, change, checked, create, edit, plan, replace, result, serving, task, told
from tests.e2e.workshop import FILES, Ran, Workshop, git

SHARED = "HEAD = 1\n\n\n\n\n\n\nFOOT = 1\n"
BOTH = plan(task("left", "left.py"), task("right", "right.py"))
TWO = {**FILES, "shared.py": SHARED}
ONE_TRY = "[this.limits]\nattempts = 1\n"


LINES = Scene(
    name="lines",
    files=TWO,
    answers=[
        BOTH,
        change("left", 1, create("left.py", "L = 1\n"), edit("shared.py", "HEAD = 1", "HEAD = 2")),
        change("right", 1, create("right.py", "R = 1\n"), edit("shared.py", "FOOT = 1", "FOOT = 2")),
    ],
)
CLASH = Scene(
    name="clash",
    files=TWO,
    answers=[
        BOTH,
        change("left", 1, create("left.py", "L = 1\n"), edit("shared.py", "HEAD = 1", "HEAD = 'left'")),
        change("right", 1, create("right.py", "R = 1\n"), edit("shared.py", "HEAD = 1", "HEAD = 'right'")),
        # Whichever of the two merges second writes again on top of the other.
        change("left", 2, create("left.py", "L = 2\n"), replace("shared.py", "HEAD = 'left and right'\n")),
        change("right", 2, create("right.py", "R = 2\n"), replace("shared.py", "HEAD = 'left and right'\n")),
    ],
)
RED = Scene(
    name="red",
    answers=[
        plan(task("rename", "calc.py", "test_calc.py"), task("use", "double.py")),
        change(
            "rename",
            1,
            edit("calc.py", "def add", "def plus"),
            replace("test_calc.py", FILES["test_calc.py"].replace("import add", "import plus as add")),
        ),
        change(
            "use",
            1,
            create("double.py", "from calc import add\n\n\ndef double(a):\n    return add(a, a)\n"),
            checked("double", "import double; self.assertEqual(double.double(2), 4)"),
        ),
        change("rename", 2, edit("calc.py", "def add(a, b):\n    return a + b\n", "plus = add = lambda a, b: a + b\n")),
        change(
            "use",
            2,
            create("double.py", "from calc import plus\n\n\ndef double(a):\n    return plus(a, a)\n"),
            checked("double", "import double; self.assertEqual(double.double(2), 4)"),
        ),
    ],
)
PARTIAL = Scene(
    name="partial",
    more=ONE_TRY,
    answers=[
        plan(task("good", "good.py"), task("bad", "bad.py"), task("after", "after.py", depends_on=["bad"])),
        change("good", 1, create("good.py", "G = 1\n")),
        change("bad", 1, create("bad.py", "B = 1\n"), checked("bad", "self.assertEqual(1, 2)")),
    ],
)
HOPELESS = Scene(
    name="hopeless",
    more=ONE_TRY,
    answers=[
        plan(task("one", "one.py"), task("two", "two.py")),
        change("one", 1, create("one.py", "A = 1\n"), checked("one", "self.assertEqual(1, 2)")),
        change("two", 1, create("two.py", "B = 1\n"), checked("two", "self.assertEqual(1, 3)")),
    ],
)
SCENES = (LINES, CLASH, RED, PARTIAL, HOPELESS)
Builds = tuple[Workshop, dict[str, Ran]]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builds]:
    """All scenes built beside each other, by nobody who could answer."""
    with serving(tmp_path_factory.mktemp("together"), SCENES) as at:
        yield at, built(at, SCENES, "--unattended")


def sent_back(at: Workshop, build: str) -> list[str]:
    return [data["why"] for data in told(at, build, "task.sent_back")]


def test_two_tasks_that_change_other_lines_of_one_file_both_land(builds: Builds) -> None:
    at, ran = builds
    assert ran["lines"].code == 0, ran["lines"].err
    build = ran["lines"].out.strip()
    files = result(at, LINES, build)
    assert files["shared.py"] == SHARED.replace("HEAD = 1", "HEAD = 2").replace("FOOT = 1", "FOOT = 2")
    assert {"left.py", "right.py"} <= set(files)
    assert sent_back(at, build) == []
    assert len(told(at, build, "gates.ran", label="merge")) == 1  # the second is tested on top of the first


def test_a_conflict_is_sent_back_to_be_written_on_top_of_the_other(builds: Builds) -> None:
    at, ran = builds
    assert ran["clash"].code == 0, ran["clash"].err
    build = ran["clash"].out.strip()
    assert sent_back(at, build) == ["conflict"]
    tried = told(at, build, "merge.tried")[0]
    assert tried["conflicts"] == ["shared.py"]
    second = told(at, build, "task.sent_back")[0]["of"]
    files = result(at, CLASH, build)
    assert files["shared.py"] == "HEAD = 'left and right'\n"
    assert (files["left.py"], files["right.py"]) == ("L = 2\n" if second == "left" else "L = 1\n",
                                                     "R = 2\n" if second == "right" else "R = 1\n")  # fmt: skip
    assert "sent back (conflict" in ran["clash"].err


def test_the_task_that_conflicted_was_shown_both_sides(builds: Builds) -> None:
    at, ran = builds
    build = ran["clash"].out.strip()
    second = told(at, build, "task.sent_back")[0]["of"]
    digest = told(at, build, "call.answered", of=second)[-1]["prompt"]
    prompt = (at.state / "blobs" / digest[:2] / digest[2:]).read_text()
    assert "HEAD = 'left'" in prompt
    assert "HEAD = 'right'" in prompt


def test_what_is_red_only_together_is_sent_back_and_mended(builds: Builds) -> None:
    at, ran = builds
    assert ran["red"].code == 0, ran["red"].err
    build = ran["red"].out.strip()
    assert sent_back(at, build) == ["red"]
    assert told(at, build, "gates.ran", label="merge")[0]["green"] is False
    assert "double.py" in result(at, RED, build)


def test_a_task_that_never_gets_green_leaves_the_build_partial_and_says_what_is_missing(builds: Builds) -> None:
    at, ran = builds
    assert ran["partial"].code == 6, ran["partial"].err
    build = ran["partial"].out.strip()
    status = at.status(build)
    assert status["status"] == "partial"
    assert {item["task"]: item["why"] for item in status["missing"]}.keys() == {"bad", "after"}
    assert "without bad" in ran["partial"].err.splitlines()[-1]
    files = result(at, PARTIAL, build)
    assert "good.py" in files
    assert not {"bad.py", "after.py"} & set(files)


def test_when_nothing_gets_green_the_build_fails_and_leaves_no_branch(builds: Builds) -> None:
    at, ran = builds
    assert ran["hopeless"].code == 5, ran["hopeless"].err
    build = ran["hopeless"].out.strip()
    assert at.status(build)["status"] == "failed"
    assert git(at.root / HOPELESS.project, "for-each-ref", "refs/heads/mendwork") == ""
    assert git(at.state / "mirrors" / f"{HOPELESS.project}.git", "for-each-ref", f"refs/mendwork/builds/{build}") == ""


def test_the_newest_builds_are_listed_with_how_they_ended(builds: Builds) -> None:
    at, ran = builds
    listed = {row["build"]: row["status"] for row in json.loads(at.mendwork("status", "--json").out)}
    ended = {"lines": "succeeded", "clash": "succeeded", "red": "succeeded", "partial": "partial", "hopeless": "failed"}
    assert listed == {ran[name].out.strip(): status for name, status in ended.items()}


def test_watching_what_has_ended_gives_the_same_exit_code_again(builds: Builds) -> None:
    at, ran = builds
    watched = at.mendwork("watch", ran["partial"].out.strip(), "--json")
    assert watched.code == 6
    assert json.loads(watched.out.splitlines()[-1])["data"]["status"] == "partial"
