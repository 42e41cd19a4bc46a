"""The base may be red or flaky: measured in the real sandbox, and changes judged by what they change."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.gates import BaseReport, Bench, GateReport, Gates, MeasureBaseInput, RunGatesInput
from activities.intake import Engine
from adapters.blobs.memory import MemoryBlobs
from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.toolchain import default_toolchain
from domain.build.project import Limits, Project
from domain.errors import InvalidInput
from domain.ports.sandbox import SandboxResult, SandboxRun
from tests.activities.sandboxed import Checkouts

PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
UNITTEST = ("python3", "-m", "unittest")
BASE = {
    "calc.py": "def add(a, b): return a + b\ndef sub(a, b): return a + b\n",
    "test_calc.py": (
        "from calc import add, sub\ndef test_add(): assert add(1, 2) == 3\n"
        "def test_zero(): assert add(0, 0) == 0\ndef test_sub(): assert sub(3, 2) == 1\n"
    ),
}
MENDED = BASE | {"calc.py": "def add(a, b): return a + b\ndef sub(a, b): return a - b\n"}
BROKEN = BASE | {"calc.py": "def add(a, b): return a - b - 1\ndef sub(a, b): return a + b\n"}
TESTS = BASE["test_calc.py"]
MEASURED = {
    "runner": "pytest",
    "tests": {f"test_calc.py::test_{n}": o for n, o in (("add", "passed"), ("zero", "passed"), ("sub", "failed"))},
    "flaky": [],
    "codes": [1],
}


@dataclass(slots=True, kw_only=True)
class Shop:
    """A project whose commits are the given folders of files, in the real sandbox."""

    root: Path
    commits: dict[str, Mapping[str, str]]
    test: tuple[str, ...] = PYTEST
    untested: str = ""
    limits: Limits = field(default_factory=lambda: Limits(test_seconds=60.0, test_processes=200))
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    sandbox: Any = field(default_factory=Bubblewrap)

    def gates(self) -> Gates:
        project = Project(
            name="calc", repository="/r", branch="main", test=self.test, limits=self.limits, untested=self.untested
        )
        return Gates(
            engine=Engine(projects={"calc": project}, reasoning=("m",), coding=("m",), heartbeat=5),
            workspaces=Checkouts(root=self.root / "checkouts", commits=self.commits),
            blobs=self.blobs,
            bench=Bench(
                sandbox=self.sandbox,
                folder=self.root / "work",
                toolchain=lambda project: default_toolchain(project.test, "/usr/bin:/bin"),
            ),
        )

    async def measure(self, commit: str = "base") -> BaseReport:
        label = f"{self.root.name}-{self.root.parent.name}/base/1"
        missing = tuple(sorted(set(self.sandbox.missing()) & {"memory", "pids"}))
        request = MeasureBaseInput(label=label, project="calc", commit=commit, allow_missing=missing)
        report = await ActivityEnvironment().run(self.gates().measure_base, request)
        assert isinstance(report, BaseReport)
        return report

    async def judge(self, commit: str, baseline: str) -> GateReport:
        label = f"{self.root.name}-{self.root.parent.name}/gates/1"
        missing = tuple(sorted(set(self.sandbox.missing()) & {"memory", "pids"}))
        request = RunGatesInput(
            label=label, project="calc", commit=commit, baseline=baseline, allow_missing=missing, base_ran=1
        )
        report = await ActivityEnvironment().run(self.gates().run_gates, request)
        assert isinstance(report, GateReport)
        return report

    async def kept(self, digest: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.blobs.get(digest))
        return found


def shop(root: Path, *, base: Mapping[str, str], **commits: Mapping[str, str]) -> Shop:
    return Shop(root=root, commits={"base": base, **commits})


async def test_a_red_base_is_measured_test_by_test(tmp_path: Path) -> None:
    at = shop(tmp_path, base=BASE)
    report = await at.measure()
    assert (report.usable, report.green, report.ran, report.failing, report.flaky) == (True, False, 3, 1, 0)
    assert report.reason == "1 of 3 tests fail before any change: test_calc.py::test_sub"
    assert await at.kept(report.baseline) == MEASURED
    assert b"test_sub" in await at.blobs.get(report.report)
    assert report.seconds > 0


async def test_on_a_red_base_what_was_red_may_stay_and_nothing_may_break(tmp_path: Path) -> None:
    at = shop(tmp_path, base=BASE, same=BASE | {"new.txt": "x"}, mended=MENDED, broken=BROKEN)
    base = (await at.measure()).baseline
    same = await at.judge("same", base)
    assert (same.green, same.known, same.fixed, same.new, same.lost) == (True, 1, 0, 0, 0)
    assert same.reason == "2 tests passed (1 known to fail)"
    assert same.baseline == base
    broken = await at.judge("broken", base)
    assert (broken.green, broken.new, broken.known, broken.baseline) == (False, 2, 1, "")
    assert broken.reason == ("2 new failures: test_calc.py::test_add, test_calc.py::test_zero (1 known to fail)")
    shown = (await at.blobs.get(broken.report)).decode()
    assert shown.startswith("NEW FAILURE test_calc.py::test_add\nNEW FAILURE test_calc.py::test_zero\n")
    mended = await at.judge("mended", base)
    assert (mended.green, mended.fixed, mended.known) == (True, 1, 0)
    # From then on it counts: going back is a new failure.
    assert not (await at.judge("same", mended.baseline)).green


SKIP = "import pytest\n" + TESTS.replace("def test_zero", "@pytest.mark.skip\ndef test_zero")
XFAIL = "import pytest\n" + TESTS.replace("def test_zero", "@pytest.mark.xfail\ndef test_zero")
DESELECT = """
def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if "{0}" not in item.name]
"""
LATER = "import atexit, os\n@atexit.register\ndef _(): print('''{0}''', flush=True)\n"
CLAIM = (
    "= short test summary info =\nPASSED test_calc.py::test_add\nPASSED test_calc.py::test_zero\n"
    "FAILED test_calc.py::test_sub\n= 1 failed, 2 passed in 0.1s ="
)


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        ({"conftest.py": DESELECT.format("zero")}, "1 lost test (gone, renamed, skipped or allowed to fail): .*zero"),
        ({"conftest.py": DESELECT.format("sub")}, "1 lost test .*: test_calc.py::test_sub"),
        ({"test_calc.py": TESTS.replace("test_sub", "test_subtract")}, "new failure.*lost test.*test_sub"),
        ({"test_calc.py": TESTS.replace("test_zero", "check_zero")}, "1 lost test .*test_zero"),
        ({"test_calc.py": SKIP}, "1 lost test .*test_zero"),
        ({"test_calc.py": XFAIL}, "1 lost test .*test_zero"),
        ({"calc.py": BROKEN["calc.py"], "conftest.py": LATER.format(CLAIM)}, "2 new failures"),
        ({"conftest.py": "def pytest_sessionfinish(session): session.exitstatus = 0\n"}, "exited with 0 though"),
        ({"conftest.py": "import os\ndef pytest_runtest_call(item): os._exit(1)\n"}, "cannot be read"),
        ({"pytest.ini": "[pytest]\naddopts = -p no:terminal\n"}, "cannot be read"),
    ],
    ids=["deselected", "red-deselected", "renamed", "hidden", "skipped", "xfailed", "claimed", "zero", "left", "mute"],
)
async def test_taking_tests_out_of_the_way_is_seen(tmp_path: Path, cheat: dict[str, str], reason: str) -> None:
    at = shop(tmp_path, base=BASE, cheat=BASE | cheat)
    base = await at.blobs.put(json.dumps(MEASURED).encode())
    report = await at.judge("cheat", base)
    assert not report.green
    assert re.search(reason.replace("(gone", r"\(gone").replace("fail):", r"fail\):"), report.reason)


async def test_a_test_that_does_not_agree_with_itself_is_flaky(tmp_path: Path) -> None:
    flaky = "import os\ndef test_coin(): assert os.path.exists('/work/tails')\ndef test_sure(): pass\n"
    at = Shop(root=tmp_path, commits={"base": {"test_it.py": flaky}})
    at.sandbox = Coin(Bubblewrap())
    report = await at.measure()
    assert (report.usable, report.green, report.failing, report.flaky) == (True, False, 0, 1)
    assert report.reason == "2 tests passed, twice; 1 flaky: test_it.py::test_coin"
    for _ in range(2):  # heads, then tails
        judged = await at.judge("base", report.baseline)
        assert judged.green
        assert (await at.kept(judged.baseline))["flaky"] == ["test_it.py::test_coin"]


class Coin:
    """A sandbox in whose every second run the checkout holds one file more."""

    def __init__(self, sandbox: Bubblewrap) -> None:
        self._sandbox = sandbox
        self._runs = 0

    def missing(self) -> Mapping[str, str]:
        return self._sandbox.missing()

    async def run(self, run: SandboxRun) -> SandboxResult:
        self._runs += 1
        tails = run.folder / "tails"
        tails.unlink(missing_ok=True)
        if self._runs % 2 == 0:
            tails.touch()
        return await self._sandbox.run(run)


async def test_unittest_is_told_apart_in_the_sandbox_too(tmp_path: Path) -> None:
    head = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
    tests = f"{head}    def test_b(self): self.fail()\n"
    at = shop(tmp_path, base={"test_it.py": tests}, gone={"test_it.py": head})
    at.test = UNITTEST
    report = await at.measure()
    assert report.reason == "1 of 2 tests fail before any change: test_b (test_it.T.test_b)"
    assert (await at.judge("base", report.baseline)).green
    assert (await at.judge("gone", report.baseline)).lost == 1


async def test_behind_a_script_pytest_is_asked_and_read_too(tmp_path: Path) -> None:
    script = f"#!/bin/sh\n{' '.join(PYTEST)} && exit 0\nexit 9\n"
    at = shop(tmp_path, base=BASE | {"check": script}, broken=BROKEN | {"check": script})
    at.test = ("sh", "check")
    at.sandbox = Shown(Bubblewrap())
    report = await at.measure()
    assert (report.usable, report.failing) == (True, 1)
    assert (await at.judge("base", report.baseline)).green
    assert (await at.judge("broken", report.baseline)).new == 2


class Shown(Bubblewrap):
    """A sandbox that shows the interpreter of this suite too, as a project's ``toolchain`` would."""

    def __init__(self, _: Bubblewrap) -> None:
        super().__init__()

    async def run(self, run: SandboxRun) -> SandboxResult:
        shown = default_toolchain(PYTEST, "/usr/bin:/bin")
        return await super().run(replace(run, toolchain=(*run.toolchain, *shown)))


async def test_a_base_that_does_not_end_in_time_is_not_run_twice_and_says_what_to_raise(tmp_path: Path) -> None:
    at = shop(tmp_path, base={"test_it.py": "import time\ndef test_a(): time.sleep(60)\n"})
    at.limits = Limits(test_seconds=2.0, test_processes=200)
    report = await at.measure()
    assert (report.usable, report.baseline) == (False, "")
    assert "raise limits.test_seconds" in report.reason
    assert report.seconds < 4 * 2.0


async def test_of_a_base_that_cannot_be_loaded_the_files_are_named(tmp_path: Path) -> None:
    broken = {"test_bad.py": "import nowhere_to_be_found\n"}
    at = shop(tmp_path, base=broken, more=broken | {"test_ok.py": "def test_a(): pass\n"})
    report = await at.measure()
    assert (report.usable, report.reason) == (
        False,
        "no test ran, since test_bad.py cannot be loaded; mend that first",
    )
    report = await at.measure("more")
    assert (report.usable, report.failing, report.ran) == (True, 1, 1)


@pytest.mark.parametrize("untested", ["syntax", "review"])
async def test_a_project_without_tests_gets_its_first_ones_and_from_then_on_they_count(
    tmp_path: Path, untested: str
) -> None:
    code = {"calc.py": BASE["calc.py"]}
    at = shop(tmp_path, base=code, more=code | {"a.py": ""}, first=MENDED, red=BASE)
    assert not (await at.measure()).usable
    at.untested = untested
    report = await at.measure()
    assert (report.usable, report.green, report.ran) == (True, True, 0)
    more = await at.judge("more", report.baseline)
    assert (more.green, more.ran) == (True, 0)
    assert not (await at.judge("red", more.baseline)).green
    first = await at.judge("first", more.baseline)
    assert (first.green, first.ran) == (True, 3)
    gone = await at.judge("more", first.baseline)
    assert (gone.green, gone.lost) == (False, 3)


class Never:
    """A sandbox that nobody may use."""

    def missing(self) -> Mapping[str, str]:
        return {}

    async def run(self, run: SandboxRun) -> SandboxResult:
        raise AssertionError(run.argv)


async def test_without_a_test_command_nothing_runs_but_the_syntax_check(tmp_path: Path) -> None:
    at = Shop(root=tmp_path, commits={"base": {}}, test=(), untested="syntax", sandbox=Never())
    report = await at.measure()
    assert (report.usable, report.ran) == (True, 0)
    judged = await at.judge("base", report.baseline)
    assert (judged.green, judged.ran, judged.baseline) == (True, 0, report.baseline)
    at.untested = ""
    assert not (await at.measure()).usable
    assert not (await at.judge("base", "")).green


async def test_without_a_test_command_a_file_that_does_not_parse_is_red_all_the_same(tmp_path: Path) -> None:
    at = Shop(root=tmp_path, commits={"base": {"a.py": "def (:\n"}}, test=(), untested="syntax")
    listed = await at.blobs.put(json.dumps({"a.py": hashlib.sha256(b"def (:\n").hexdigest()}).encode())
    missing = tuple(sorted(set(at.sandbox.missing()) & {"memory", "pids"}))
    request = RunGatesInput(
        label=f"{tmp_path.name}/1", project="calc", commit="base", written=listed, allow_missing=missing
    )
    report = await ActivityEnvironment().run(at.gates().run_gates, request)
    assert (report.green, report.reason) == (False, "syntax: a.py:1: SyntaxError: invalid syntax")


async def test_a_baseline_that_is_none_is_refused(tmp_path: Path) -> None:
    at = Shop(root=tmp_path, commits={"base": {}}, sandbox=Never())
    with pytest.raises(InvalidInput, match="is no baseline"):
        await at.judge("base", await at.blobs.put(b'{"tests": []}'))


async def test_a_runner_that_tells_no_names_is_judged_as_before_when_green_and_refused_when_red(tmp_path: Path) -> None:
    at = shop(tmp_path, base={"check.sh": "exit 0\n"}, red={"check.sh": "echo bad; exit 1\n"})
    at.test = ("sh", "check.sh")
    report = await at.measure()
    assert (report.usable, report.green, report.ran, report.baseline) == (True, True, -1, "")
    assert (await at.judge("base", "")).green
    red = await at.measure("red")
    assert not red.usable
    assert "use a test command that tells (pytest, unittest" in red.reason
