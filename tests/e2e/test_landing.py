"""Onto the project's own branch: forwards only, from where it was read, or not at all, with a sentence."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace as altered
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
    plan,
    repository,
    serving,
    task,
    told,
    waiting,
)
from tests.e2e.workshop import Workshop, git

ONTO_TARGET = 'review = false\nland = "target"\n'
FREE = Scene(
    name="free",
    consent=f"approve = []\n{ONTO_TARGET}",
    answers=[
        plan(task("one", "one.py")),
        change("one", 1, create("one.py", "A = 1\n"), edit("calc.py", "a + b", "b + a")),
    ],
)
BARE = altered(FREE, name="bare")
HELD = altered(FREE, name="held")
MOVED = altered(FREE, name="moved", consent=f'approve = ["change"]\n{ONTO_TARGET}')
CLASH = altered(MOVED, name="clash")
REDDENED = altered(MOVED, name="reddened")
BRANCHED = (FREE, MOVED, CLASH, REDDENED)
SCENES = (*BRANCHED, BARE, HELD)


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """main is checked out in HELD's repository only: in the others a person works on a branch of their own."""
    with serving(tmp_path_factory.mktemp("landing"), SCENES) as at:
        for scene in BRANCHED:
            git(repository(at, scene), "checkout", "-q", "-b", "mine")
        folder = repository(at, BARE)
        folder.rename(at.root / "work")
        git(at.root, "clone", "-q", "--bare", "work", folder.name)
        yield at


@pytest.fixture(scope="module")
def builds(at: Workshop) -> dict[str, str]:
    return {scene.name: begun(at, scene) for scene in SCENES}


def person(at: Workshop, scene: Scene) -> dict[str, Any]:
    """What of the repository is a person's: HEAD, the index, the files, the configuration, the other branches."""
    folder = repository(at, scene)
    inner = folder if scene is BARE else folder / ".git"
    refs = git(folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    index = inner / "index"
    return {
        "head": (inner / "HEAD").read_text(),
        "index": index.read_bytes() if index.exists() else b"",
        "config": (inner / "config").read_text(),
        "files": {} if scene is BARE else files(folder),
        "refs": [ref for ref in refs if "/mendwork/" not in ref and "heads/main " not in ref],
    }


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def shown(at: Workshop, scene: Scene, path: str) -> str:
    """A file as main has it."""
    return git(repository(at, scene), "show", f"main:{path}")


def push(at: Workshop, scene: Scene, path: str, text: str) -> str:
    """A colleague's commit on main, from a clone of their own."""
    clone = at.root / f"clone-{scene.name}-{len(list(at.root.glob('clone-*')))}"
    git(at.root, "clone", "-q", "-b", "main", str(repository(at, scene)), str(clone))
    (clone / path).write_text(text)
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", f"by a colleague: {path}")
    git(clone, "push", "-q", "origin", "HEAD:main")
    return git(clone, "rev-parse", "HEAD").strip()


def is_ancestor(at: Workshop, scene: Scene, commit: str) -> bool:
    argv = ["git", "-C", str(repository(at, scene)), "merge-base", "--is-ancestor", commit, "main"]
    return subprocess.run(argv, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("scene", [FREE, BARE], ids=["not checked out", "bare"])
def test_main_is_forwarded_where_nobody_has_it_checked_out(at: Workshop, builds: dict[str, str], scene: Scene) -> None:
    before = person(at, scene)
    build = builds[scene.name]
    assert at.mendwork("watch", build).code == 0
    assert shown(at, scene, "one.py") == "A = 1\n"
    assert "b + a" in shown(at, scene, "calc.py")
    tips = git(repository(at, scene), "rev-parse", "main", f"mendwork/{build}").split()
    assert tips[0] == tips[1] == at.status(build)["target"]
    assert person(at, scene) == before


def test_main_is_left_where_a_person_works_on_it_and_that_is_said(at: Workshop, builds: dict[str, str]) -> None:
    before = person(at, HELD)
    start = git(repository(at, HELD), "rev-parse", "main")
    watched = at.mendwork("watch", builds["held"])
    assert watched.code == 0, watched.err
    assert "left as it is" in watched.err.splitlines()[-1]
    assert git(repository(at, HELD), "rev-parse", "main") == start
    assert git(repository(at, HELD), "show", f"mendwork/{builds['held']}:one.py") == "A = 1\n"
    assert person(at, HELD) == before


def test_a_target_that_moved_gets_the_result_on_top_tested_again(at: Workshop, builds: dict[str, str]) -> None:
    build = builds["moved"]
    ask = waiting(at, build)
    theirs = push(at, MOVED, "theirs.py", "T = 1\n")
    assert answered(at, "approve", build, ask["digest"])["outcome"] == "accepted"
    assert at.mendwork("watch", build).code == 0
    assert (shown(at, MOVED, "one.py"), shown(at, MOVED, "theirs.py")) == ("A = 1\n", "T = 1\n")
    assert is_ancestor(at, MOVED, theirs)
    assert [data["green"] for data in told(at, build, "gates.ran", label="landing")] == [True]


def test_a_target_that_conflicts_is_a_question_and_skipping_leaves_it(at: Workshop, builds: dict[str, str]) -> None:
    build = builds["clash"]
    ask = waiting(at, build)
    theirs = push(at, CLASH, "calc.py", "def add(a, b):\n    return sum((a, b))\n")
    assert answered(at, "approve", build, ask["digest"])["outcome"] == "accepted"
    question = waiting(at, build, "landing")
    assert "conflicts in calc.py" in question["sentence"]
    assert git(repository(at, CLASH), "rev-parse", "main").strip() == theirs
    assert answered(at, "answer", build, question["id"], "skip")["outcome"] == "accepted"
    watched = at.mendwork("watch", build)
    assert watched.code == 0, watched.err
    assert "on its own branch" in watched.err.splitlines()[-1]
    assert git(repository(at, CLASH), "rev-parse", "main").strip() == theirs
    assert git(repository(at, CLASH), "show", f"mendwork/{build}:one.py") == "A = 1\n"


def test_after_a_question_the_landing_can_be_tried_again(at: Workshop, builds: dict[str, str]) -> None:
    """On top of the target the tests are red; the colleague mends that, and a retry goes through."""
    build = builds["reddened"]
    ask = waiting(at, build)
    red = checked("one", "import one; self.assertEqual(one.A, 2)")["content"]
    push(at, REDDENED, "test_theirs.py", red)
    assert answered(at, "approve", build, ask["digest"])["outcome"] == "accepted"
    question = waiting(at, build, "landing")
    assert "tests are red" in question["sentence"]
    push(at, REDDENED, "test_theirs.py", red.replace("A, 2", "A, 1"))
    assert answered(at, "answer", build, "retry")["outcome"] == "accepted"
    assert at.mendwork("watch", build).code == 0
    assert shown(at, REDDENED, "one.py") == "A = 1\n"
