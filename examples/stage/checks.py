"""What the demo promises, looked up where it counts: in the user's repository, in a fresh clone, on the bill."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .narrator import Narrator
from .processes import run
from .scene import Scene, git


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A sentence, and whether it holds."""

    sentence: str
    holds: bool


def repository_promises(scene: Scene, *, branch: str, base: str, tasks: list[str]) -> list[Promise]:
    """One branch more, commits of the tasks and of nobody else on it, nothing else touched."""
    branches = set(git(scene, "for-each-ref", "--format=%(refname:short)").split())
    trailer = "--format=%(trailers:key=Mendwork-Task,valueonly,separator=%x2C)"
    made_by = git(scene, "log", trailer, f"{base}..{branch}").splitlines()
    untouched = git(scene, "rev-parse", "HEAD").strip() == base and not git(scene, "status", "--porcelain")
    return [
        Promise(sentence=f"the result is on {branch}, the only new branch", holds=branches == {"main", branch}),
        Promise(
            sentence=f"{len(made_by)} commits, every one by one of {', '.join(tasks)}",
            holds=set(made_by) == set(tasks),
        ),
        Promise(sentence="your branch, index and working tree are as they were", holds=untouched),
    ]


def suite_promises(scene: Scene, *, branch: str) -> list[Promise]:
    """The tests of the result, run in a fresh clone by nobody but us."""
    with ThreadPoolExecutor() as pool:
        before, after = pool.map(lambda revision: run_tests(scene, revision), ("main", branch))
    return [
        Promise(sentence=f"all {after.count} tests pass in a fresh clone of {branch}", holds=after.green),
        Promise(sentence=f"{after.count - before.count} of them are new", holds=after.count > before.count),
    ]


def bill_promises(bill: Path) -> list[Promise]:
    """No answer was paid for twice, and the call that died with its worker was made again."""
    entries = [json.loads(line) for line in bill.read_text(encoding="utf-8").splitlines()]
    answered = Counter(entry["key"] for entry in entries if not entry["fault"])
    twice = [key for key, times in answered.items() if times > 1]
    lost = [entry["key"] for entry in entries if entry["fault"] == "slow"]
    sentence = f"the provider's bill: {len(entries)} requests, {len(answered)} answers, none of them twice"
    return [
        Promise(sentence=sentence, holds=bool(answered) and not twice),
        Promise(sentence="the call that died with its worker was made again, once", holds=_once(lost, answered)),
    ]


def _once(lost: list[str], answered: Counter[str]) -> bool:
    return len(lost) == 1 and answered[lost[0]] == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """How the tests of a commit went."""

    green: bool
    count: int


def run_tests(scene: Scene, revision: str) -> SuiteRun:
    """Clone the user's repository at ``revision`` and run the tests there."""
    clone = scene.folder / "clones" / revision.replace("/", "-")
    run(["git", "clone", "--quiet", "--no-local", f"--branch={revision}", str(scene.repository), str(clone)])
    done = subprocess.run(scene.test_command(), cwd=clone, capture_output=True, encoding="utf-8", check=False)
    counted = re.search(r"^Ran (\d+) tests?", done.stderr, re.MULTILINE)
    return SuiteRun(green=done.returncode == 0, count=int(counted[1]) if counted else 0)


def report(narrator: Narrator, promises: list[Promise]) -> bool:
    """Tell each promise and whether all hold."""
    for promise in promises:
        (narrator.good if promise.holds else narrator.bad)(promise.sentence)
    return all(promise.holds for promise in promises)
