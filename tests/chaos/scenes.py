"""What the disturbed builds are about: a repository, a configuration, and what its models answer.

"take" and "retry" have everything that can happen on the way to a landed change; whichever of their two parallel tasks
is written first, the one that declares the file merges first, so that the result is the same in every run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.workshop import FILES, Workshop, git
from tests.trees import files_below

TARGET = "trunk"
BY_HAND = "by-hand"
LANDS = f'branch = "{TARGET}"\nland = "target"\n'
ASKED = LANDS + 'approve = ["plan", "change"]\nreview = true\n'
UNASKED = LANDS + "approve = []\nreview = false\n"
FLEETING = "retention = { builds = 0, snapshots = 1, environments = 0 }\n"
SETUP = """[projects.calc.setup]
command = ["sh", "-c", "mkdir deps && echo WORD = 1 > deps/word.py"]
folder = "deps"
registries = []
"""

SLOW_TESTS = FILES["test_calc.py"].replace(
    "    def test_zero", "    def test_slow(self):\n        time.sleep(0.4)\n\n    def test_zero"
)
SLOW_FILES = {**FILES, "test_calc.py": "import time\n" + SLOW_TESTS}
SLOW = [{"kind": "slow", "seconds": 0.6}]
SQUARE = "def square(a):\n    return a * a\n"


def task(name: str, *, files: tuple[str, ...], depends_on: tuple[str, ...] = ()) -> dict[str, Any]:
    """One of a plan."""
    return {
        "id": name,
        "title": f"Add {name}",
        "instructions": f"Add the function {name} with a test.",
        "files": list(files),
        "tests": [f"test_{name}.py"],
        "depends_on": list(depends_on),
    }


MUL = task("mul", files=("calc.py",))
SUB = task("sub", files=("sub-notes.md",))  # it will touch calc.py all the same, which is mul's
PLAN = {"summary": "three", "tasks": [MUL, SUB, task("square", files=("square.py",), depends_on=("mul", "sub"))]}


def edit(after: str, body: str) -> dict[str, Any]:
    """Put ``body`` behind the line ``after`` of calc.py."""
    edits = [{"search": after, "replace": f"{after}\n\n{body}"}]
    return {"action": "edit", "path": "calc.py", "content": "", "edits": edits}


def file(path: str, content: str) -> dict[str, Any]:
    """A new file."""
    return {"action": "create", "path": path, "content": content, "edits": []}


def check(module: str, held: str) -> str:
    """A test file of one assertion."""
    body = f"    def test_it(self):\n        self.assertEqual({held})\n"
    return f"import unittest\n\nimport {module}\n\n\nclass T(unittest.TestCase):\n{body}"


def changed(task: str, attempt: int, *operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What the model answers to one attempt."""
    change = {"summary": f"Add {task}", "operations": list(operations)}
    return {"role": "Change", "task": task, "attempt": attempt, "answer": change, **more}


MUL_CHANGE = (
    edit("    return a + b\n", "def mul(a, b):\n    return a * b\n"),
    file("test_mul.py", check("calc", "calc.mul(2, 3), 6")),
)
SUB_BODY, SUB_TEST = "def sub(a, b):\n    return a - b\n", file("test_sub.py", check("calc", "calc.sub(3, 2), 1"))
SQUARE_TEST = file("test_square.py", check("square", "square.square(3), 9"))
HIGH = {"task": "sub", "file": "calc.py", "line": 9, "severity": "high", "message": "sub says nothing about itself"}
EVERYTHING: list[dict[str, Any]] = [
    {"role": "Plan", "answer": {"summary": "one", "tasks": [MUL]}, "faults": SLOW},
    changed("mul", 1, *MUL_CHANGE, faults=[{"kind": "wrong_schema"}]),
    changed("sub", 1, edit("    return a + b\n", SUB_BODY), SUB_TEST),
    changed("sub", 2, edit("    return a * b\n", SUB_BODY), SUB_TEST),
    changed("sub", 3, edit("    return a - b\n", "OPERATIONS = (add, mul, sub)\n")),
    changed("square", 1, file("square.py", "def square(a):\n    return a\n"), SQUARE_TEST),
    changed("square", 2, file("square.py", SQUARE), SQUARE_TEST),
    {"role": "Review", "attempt": 1, "answer": {"summary": "nearly", "findings": [HIGH]}},
    {"role": "Review", "attempt": 2, "answer": {"summary": "good", "findings": []}},
]
ONE_TASK: list[dict[str, Any]] = [
    {"role": "Plan", "answer": {"summary": "one", "tasks": [MUL]}},
    changed("mul", 1, *MUL_CHANGE),
]
SET_UP_FILES = {
    **SLOW_FILES,
    "test_word.py": "import sys\n\nsys.path.insert(0, 'deps')\n" + check("word", "word.WORD, 1"),
}
"""Its tests need what was set up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """``stuck`` answers the task that is stuck, ``ends`` is the status that the build comes to; ``more`` are sections
    of the configuration. ``sweep`` and ``heartbeat`` are in seconds."""

    answers: list[dict[str, Any]]
    consent: str = UNASKED
    ends: str = "succeeded"
    stuck: Mapping[str, str] = field(default_factory=dict)
    sweep: int = 60
    heartbeat: int = 3
    files: Mapping[str, str] = field(default_factory=lambda: SLOW_FILES)
    more: str = ""


SCENES: Mapping[str, Scene] = {
    "take": Scene(
        answers=EVERYTHING,
        consent=ASKED,
        stuck={"choice": "take", "commit": BY_HAND},
        files=SET_UP_FILES,
        more=SETUP,
    ),
    "retry": Scene(answers=EVERYTHING, consent=ASKED, stuck={"choice": "retry", "reason": "multiply it by itself"}),
    "aborted": Scene(answers=ONE_TASK, ends="aborted"),
    "terminated": Scene(answers=ONE_TASK, ends="aborted", sweep=2),
    "approved": Scene(answers=ONE_TASK, consent=UNASKED.replace("approve = []", 'approve = ["change"]')),
    "again": Scene(
        answers=ONE_TASK,
        consent=f'approve = ["change"]\nreview = false\n{FLEETING}',
        heartbeat=2,
        files={**SET_UP_FILES, "test_calc.py": FILES["test_calc.py"]},
        more=SETUP,
    ),
}


class Stage(Workshop):
    """A workshop whose project lands on a branch that is checked out nowhere, and is reviewed by another model."""

    def __init__(self, root: Path, scene: Scene) -> None:
        super().__init__(root, answers=scene.answers, files=scene.files)
        self.scene = scene
        git(self.repository, "branch", TARGET)
        self._commit(BY_HAND, {"square.py": SQUARE, "test_square.py": SQUARE_TEST["content"]})

    def configure(self, *, base_url: str = "", extra: str = "", test: str = "", consent: str = "") -> None:
        """As the scene has it; each task has one attempt before a person is asked."""
        more = f'[models.reviewer]\nmodel = "openai/critic"\nbase_url = "{base_url}"\n'
        more += 'api_key_env = "SCRIPTED_API_KEY"\ninput_price = 1.0\noutput_price = 4.0\n'
        more += '[roles]\nreasoning = ["coder"]\ncoding = ["coder"]\nvalidation = ["reviewer"]\n'
        more += f"[projects.calc.limits]\nattempts = 1\n{self.scene.more}"
        super().configure(base_url=base_url, extra=more + extra, test=test, consent=consent or self.scene.consent)
        told = (self.root / "mendwork.toml").read_text()
        (self.root / "mendwork.toml").write_text(
            told.replace("heartbeat = 2", f"heartbeat = {self.scene.heartbeat}", 1).replace(
                "sticky = 2", f"sticky = 2\nsweep = {self.scene.sweep}", 1
            )
        )

    def move_target(self) -> str:
        """Somebody else's commit on the branch that the build lands on; its SHA."""
        return self._commit(TARGET, {"NEWS.md": "# News\n"})

    def untouched(self) -> dict[str, str]:
        """What of the user's repository no build may change: HEAD, index, configuration, files."""
        folder = self.repository / ".git"
        locks = sorted(str(path.relative_to(folder)) for path in files_below(folder) if path.suffix == ".lock")
        named = {name: (folder / name).read_bytes().hex() for name in ("HEAD", "index", "config")}
        return {**named, "status": git(self.repository, "status", "--porcelain", "--ignored"), "locks": str(locks)}

    def refs(self) -> dict[str, str]:
        """Every ref of the user's repository."""
        listed = git(self.repository, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in listed)

    def tree_of(self, commit: str) -> str:
        """The name of a commit's tree."""
        return git(self.repository, "rev-parse", f"{commit}^{{tree}}").strip()

    def _commit(self, branch: str, files: Mapping[str, str]) -> str:
        """Put files on a branch without a checkout, as a clone that pushes does."""
        with tempfile.TemporaryDirectory(dir=self.root) as folder:
            clone = Path(folder) / "clone"
            git(self.root, "clone", "--quiet", "-b", TARGET, str(self.repository), str(clone))
            for name, text in files.items():
                (clone / name).write_text(text)
            git(clone, "add", "-A")
            git(clone, "commit", "--quiet", "-m", f"By hand: {', '.join(files)}")
            git(clone, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
            return git(clone, "rev-parse", "HEAD").strip()
