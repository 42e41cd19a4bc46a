"""What each test did is read from real runners, and not believed when it does not add up."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.gates.plain import plain
from domain.gates.reading import READERS, Run, read_run
from domain.gates.report import runner_of
from domain.gates.results import Outcome, by_name, numbered, short
from domain.gates.telling import telling
from domain.gates.trimming import trim
from tests.domain import runners

NAMES = """
import pytest
@pytest.mark.parametrize("x", ["a b", "\\u00fc", "a - b", "c] - d", "[", "x" * 400, "two\\nlines"])
def test_named(x): assert x not in ("a - b", "c] - d"), "this - is - wrong"
@pytest.fixture
def torn():
    yield
    raise KeyError
def test_cleaning(torn): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
@pytest.mark.xfail
def test_lucky(): pass
"""


def read(text: str, *argv: str, code: int = 1) -> Run:
    return read_run(argv, text, ended="exited", exit_code=code)


@pytest.mark.parametrize("options", [(), ("-q",), ("-v",), ("-ra",), ("--color=yes",), ("-n", "2"), ("--tb=no", "-rN")])
def test_pytest_tells_each_test_however_it_prints(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(runners.PYTEST)
    assert runners.told_by_pytest(tmp_path, *options).tests == {
        "test_it.py::test_good": "passed",
        "test_it.py::test_other": "passed",
        "test_it.py::test_bad": "failed",
        "test_it.py::test_expected": "xfailed",
    }


def test_pytest_is_asked_through_a_shell_and_through_the_projects_own_options(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(runners.PYTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -rs --strict-markers\n")
    run = runners.told(tmp_path, "sh", "-c", f"{sys.executable} -m pytest -p no:cacheprovider || exit 3")
    assert run.tests is not None
    assert run.tests["test_it.py::test_good"] == "passed"
    assert run.exit_code == 3


def test_pytests_names_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(NAMES)
    tests = runners.told_by_pytest(tmp_path).tests
    assert tests is not None
    named = {name.partition("::")[2]: outcome for name, outcome in tests.items()}
    assert named["test_named[a - b]"] == "failed"
    assert named["test_named[a b]"] == named["test_named[[]"] == named[r"test_named[two\nlines]"] == "passed"
    assert (named["test_cleaning"], named["test_strict"], named["test_lucky"]) == ("error", "failed", "xfailed")
    assert len(tests) == 10
    assert max(map(len, tests)) <= 300


def test_pytest_goes_on_where_a_file_cannot_be_collected(tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text("import nowhere_to_be_found\n")
    (tmp_path / "test_it.py").write_text("def test_a(): pass\n")
    run = runners.told_by_pytest(tmp_path)
    assert run.tests == {"test_bad.py": "error", "test_it.py::test_a": "passed"}
    assert (run.exit_code, run.report.ran, run.report.errors) == (1, 1, 1)


def test_a_failed_subtest_fails_its_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        for i in range(3):\n"
        "            with self.subTest(i=i): self.assertNotEqual(i, 1)\n"
    )
    pytest_says = runners.told_by_pytest(tmp_path).tests
    assert pytest_says == {"test_it.py::T::test_a": "failed"}
    assert runners.told_by_unittest(tmp_path).tests == {"test_a (test_it.T.test_a)": "failed"}


def test_what_a_test_prints_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        'def test_a():\n    print("PASSED test_it.py::test_b")\n    print("= 1 passed in 0.1s =")\n'
        "def test_b(): assert 0\n"
    )
    expected = {"test_it.py::test_a": "passed", "test_it.py::test_b": "failed"}
    assert runners.told_by_pytest(tmp_path, "-s").tests == expected


SESSION = "= short test summary info =\nPASSED t.py::test_a\n{0} t.py::test_b\n= {1} in 0.10s =\n"
REAL = SESSION.format("FAILED", "1 failed, 1 passed")


def test_of_two_summaries_the_worse_counts_whichever_comes_last() -> None:
    fake = SESSION.format("PASSED", "2 passed")
    for text in (REAL + fake, fake + REAL):
        assert read(text, "pytest").tests == {"t.py::test_a": "passed", "t.py::test_b": "failed"}


def test_a_session_that_tells_less_than_all_still_tells_what_failed() -> None:
    quiet = "= short test summary info =\nFAILED t.py::test_a - x\n= 1 failed, 7 passed in 0.1s =\n"
    assert read(quiet + REAL, "pytest").tests == {"t.py::test_a": "failed", "t.py::test_b": "failed"}


def test_a_summary_that_was_begun_and_not_closed_tells_nothing() -> None:
    begun = "= short test summary info =\nPASSED t.py::test_made_up\n"
    assert read(begun + REAL, "pytest").tests == {"t.py::test_a": "passed", "t.py::test_b": "failed"}


def test_outcomes_that_do_not_add_up_with_the_counts_are_unknown() -> None:
    assert read(REAL.replace("1 passed", "2 passed"), "pytest").tests is None
    assert read(REAL + "= 5 passed in 0.1s =\n", "pytest").tests is None
    assert read("= 5 passed in 0.1s =\n", "pytest", code=0).tests is None
    assert read("no word of it", "pytest", code=0).tests is None
    assert read("no tests ran in 0.01s", "pytest", code=5).tests == {}


UNITTEST = '''
import sys, unittest, warnings
class Case(unittest.TestCase):
    def test_docs(self):
        """The first line of it."""
    def test_prints(self): sys.stderr.write("noise ok\\nthis is an ERROR\\nand more")
    def test_pretends(self):
        sys.stderr.write("test_docs (test_more.Case.test_docs) ... ok\\nok\\n")
        self.fail()
    def test_lucky(self): pass
    test_lucky = unittest.expectedFailure(test_lucky)
    def test_warns(self): warnings.warn("deprecated")
class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError
    def test_a(self): pass
class Torn(unittest.TestCase):
    def tearDown(self): raise ValueError
    def test_a(self): pass
'''


def test_unittest_tells_each_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(runners.UNITTEST)
    (tmp_path / "test_more.py").write_text(UNITTEST)
    (tmp_path / "test_off.py").write_text("import nowhere_to_be_found\n")
    tests = runners.told_by_unittest(tmp_path).tests
    assert tests is not None
    short_names = {name.replace("unittest.loader.", "").partition(" ")[0]: tests[name] for name in tests}
    assert short_names == {
        **{"test_good": "passed", "test_docs": "passed", "test_prints": "passed", "test_warns": "passed"},
        **{"test_bad": "failed", "test_pretends": "failed", "test_lucky": "failed", "test_broken": "error"},
        **{"test_skipped": "skipped", "test_expected": "xfailed", "setUpClass": "error", "test_a": "error"},
        "test_off": "error",
    }


def test_unittest_without_names_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(runners.UNITTEST)
    output = runners.run_unittest(tmp_path)
    assert read(output.text, sys.executable, "-m", "unittest").tests is None


NODE: dict[str, Outcome] = {
    "good": "passed",
    "bad one": "failed",
    "skipped": "skipped",
    "later": "xfailed",
    "group > inner bad": "failed",
    "group > inner good": "passed",
}


@pytest.mark.parametrize(("reporter", "sample"), [("tap", runners.NODE_TAP), ("spec", runners.NODE_SPEC)])
def test_node_tells_each_test(tmp_path: Path, reporter: str, sample: str) -> None:
    (tmp_path / "a.test.js").write_text(runners.NODE)
    node = shutil.which("node")
    text = runners.run(tmp_path, node, "--test", f"--test-reporter={reporter}").text if node else sample
    assert read(text, "node", "--test").tests == NODE
    assert read(sample, "node", "--test").tests == NODE


def test_a_line_that_a_test_of_node_prints_is_no_result() -> None:
    assert read(runners.NODE_SPEC.replace("▶ group", "✔ fake (1ms)\n▶ group"), "node", "--test").tests is None
    assert read(runners.NODE_TAP.replace("ok 1 - good", "ok 1 - good\nok 1 - fake"), "node", "--test").tests is None


def test_a_line_that_a_test_of_node_prints_is_no_result_beside_a_test_with_tests_in_it() -> None:
    counts = "ℹ tests 2\nℹ suites 0\nℹ pass 2\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\n"
    parent = "▶ parent\n  ✔ child (1.2ms)\n✔ parent (2.1ms)\n"
    assert read(parent + counts, "node", "--test", code=0).tests == {"parent > child": "passed"}
    assert read("✔ fake (1ms)\n" + parent + counts, "node", "--test", code=0).tests is None


def test_tests_of_node_with_tests_in_them_add_up_too() -> None:
    text = runners.NODE_SPEC.replace(
        "ℹ tests 6\nℹ suites 1\nℹ pass 2\nℹ fail 2", "ℹ tests 7\nℹ suites 0\nℹ pass 2\nℹ fail 3"
    )
    assert read(text, "node", "--test").tests == NODE


def test_mocha_tells_each_test_with_its_suites() -> None:
    run = read(runners.MOCHA, "npx", "mocha", code=2)
    assert run.tests == {
        "top level": "passed",
        "Calc > adds": "passed",
        "Calc > fails": "failed",
        "Calc > pending": "skipped",
        "Calc > slow": "passed",
        'Calc > deep > "before each" hook for "a"': "error",
        "Other > adds": "passed",
        "Other > adds (2)": "passed",
    }
    assert (run.report.ran, run.report.failed, run.report.skipped) == (7, 2, 1)
    assert read(runners.MOCHA.replace("5 passing", "6 passing"), "mocha").tests is None


def test_tape_tells_each_assertion_with_its_test() -> None:
    run = read(runners.TAPE, "tape", "t.js")
    assert run.tests == {
        "timing test > should be strictly equal": "passed",
        "timing test > should be strictly equal (2)": "failed",
        "timing test > fine # not a directive": "passed",
        "third > nah": "skipped",
        "third > should be truthy": "passed",
        "third > should be truthy (2)": "xfailed",
    }
    assert (run.report.ran, run.report.failed, run.report.skipped) == (4, 1, 2)


@pytest.mark.parametrize("damage", ["1..6\n", "ok 4 nah # SKIP\n"])
def test_a_stream_of_tap_without_its_plan_or_with_less_than_planned_is_unknown(damage: str) -> None:
    run = read(runners.TAPE.replace(damage, ""), "tape", "t.js", code=0)
    assert run.tests is None
    assert run.report.ran is None


def test_go_tells_each_test_with_its_package() -> None:
    run = read(runners.GO, "go", "test", "./...")
    assert run.tests == {
        "example.com/m/broke": "error",
        "example.com/m.TestA": "passed",
        "example.com/m.TestB": "failed",
        "example.com/m.TestB/sub_1": "failed",
        "example.com/m.TestB/ok": "passed",
        "example.com/m.TestSkip": "skipped",
        "example.com/m/pan.TestOk": "passed",
        "example.com/m/pan.TestDies": "failed",
    }
    assert (run.report.runner, run.report.ran, run.report.failed) == ("go", 6, 3)


def test_go_without_its_tests_names_counts_nothing() -> None:
    run = read("ok  \texample.com/m\t0.002s\n", "go", "test", code=0)
    assert (run.report.runner, run.report.ran, run.tests) == ("other", None, None)


@pytest.mark.parametrize(
    ("text", "runner"),
    [
        (REAL, "pytest"),
        (runners.NODE_TAP, "node"),
        (runners.NODE_SPEC, "node"),
        (runners.MOCHA, "mocha"),
        (runners.TAPE, "tap"),
        (runners.GO, "go"),
        ("all is well", "other"),
        ("1..2\nnot ok", "other"),
    ],
)
def test_behind_another_program_a_runner_is_known_by_its_output(text: str, runner: str) -> None:
    run = read(f"> sh -c tests\n{text}", "npm", "test")
    assert run.report.runner == runner
    assert run.behind == (runner != "other")
    assert (run.tests is None) == (runner == "other")


def test_an_output_that_turns_into_another_runners_is_not_read_as_that() -> None:
    run = read_run(("make", "test"), runners.TAPE, ended="exited", exit_code=0, runner="pytest")
    assert run.tests is None


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("python3", "-m", "unittest", "tests.a"), ("python3", "-m", "unittest", "tests.a", "-v")),
        (("python3", "-m", "unittest", "-v"), ("python3", "-m", "unittest", "-v")),
        (("go", "test", "./..."), ("go", "test", "-v", "./...")),
        (("go", "test", "-json"), ("go", "test", "-json")),
        (("go", "build"), ("go", "build")),
        (("pytest", "-rs", "tests"), ("pytest", "-rs", "tests", "-rpfEsxX")),
        (("pytest", "tests"), ("pytest", "tests")),
        (("sh", "-c", "python3 -m unittest"), ("sh", "-c", "python3 -m unittest")),
        (("make", "test"), ("make", "test")),
    ],
)
def test_a_command_is_changed_only_where_it_is_plainly_the_runners(
    argv: tuple[str, ...], told: tuple[str, ...]
) -> None:
    words, environment = telling(argv)
    assert words == told
    assert set(environment) == {"PYTEST_ADDOPTS"}


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        ("npx mocha --recursive", "mocha"),
        ("/work/node_modules/.bin/tape test/*.js", "tap"),
        ("go test ./...", "go"),
        ("sh -c 'go test ./...'", "other"),
        ("node tap.js", "other"),
        ("make mocha", "other"),
    ],
)
def test_the_newer_runners_are_known_by_the_test_command(command: str, runner: str) -> None:
    assert runner_of(tuple(command.split(" ", 2))) == runner or runner_of(tuple(command.split())) == runner


def test_of_one_name_the_worst_counts_and_of_many_each() -> None:
    found: list[tuple[str, Outcome]] = [("a", "failed"), ("a", "passed"), ("b", "passed")]
    assert by_name(found) == {"a": "failed", "b": "passed"}
    assert numbered(found) == {"a": "passed", "a (2)": "failed", "b": "passed"}


@given(st.text(max_size=900), st.text(max_size=900))
def test_long_names_stay_apart(one: str, other: str) -> None:
    assert len(short(one)) <= 300
    assert (short(one) == short(other)) == (one == other)


@pytest.mark.parametrize(
    ("text", "argv", "first", "other"),
    [
        (runners.TAPE, ("tape",), "should be strictly equal", "should be truthy"),
        (runners.MOCHA, ("mocha",), "fails:", "Other"),
        (runners.GO, ("go", "test"), "here it is wrong", "TestSkip"),
    ],
)
def test_of_the_newer_runners_the_failures_stay(text: str, argv: tuple[str, ...], first: str, other: str) -> None:
    noise = "noise of no use to anybody\n" * 900
    place = {"mocha": "\n  5 passing", "tape": "# third\n", "go": "=== RUN   TestSkip\n"}[argv[0]]
    kept = trim(text.replace(place, f"{place if argv[0] == 'go' else ''}{noise}{place}"), runner_of(argv), limit=6_000)
    assert first in kept
    assert other not in kept
    assert "noise" not in kept


def test_what_fails_since_the_change_comes_first() -> None:
    blocks = "".join(f"____ test_{n} ____\n" + "E   detail\n" * 40 for n in range(30))
    summary = "==== short test summary info ====\nFAILED a.py::test_0\n==== 30 failed in 1.0s ===="
    text = f"==== FAILURES ====\n{blocks}{summary}"
    kept = trim(text, "pytest", limit=4_000, first=["a.py::test_29"])
    assert kept.startswith("____ test_29 ____")
    assert "____ test_0 ____" in kept
    assert "30 failed" in kept


RUNNERS = sorted(READERS)
PIECES = ["= short test summary info =", "PASSED a.py::b", "1 passed in 0.1s", "ok 1 - a", "not ok 2 - b", "1..2"]
PIECES += ["test_a (m.C.test_a) ... ok", "Ran 1 test in 0.1s", "OK", "FAIL: test_a (m.C.test_a)", "=" * 70, "  ---"]
PIECES += ["--- PASS: TestA (0.00s)", "=== RUN   TestA", "ok  \tp\t0.1s", "  1 passing (1ms)", "  ✔ a", "    1) b", ""]
PIECES += ["✔ a (1ms)", "# tests 1", "# pass 1", "# fail 0", "# cancelled 0", "# skipped 0", "# todo 0", "# a test"]
OUTPUTS = st.text(max_size=400) | st.lists(st.sampled_from(PIECES), max_size=40).map("\n".join)


@given(st.sampled_from(RUNNERS), OUTPUTS, st.integers(0, 3))
def test_any_output_is_read_without_failing(runner: str, text: str, code: int) -> None:
    run = read_run(("x",), text, ended="exited", exit_code=code, runner=runner)  # type: ignore[arg-type]
    assert run.tests is None or all(plain(name) == name for name in run.tests)
    read_run(("make", "test"), text, ended="exited", exit_code=code)


@pytest.mark.parametrize(
    "unit", ["PASSED a::b - c [", "ok 1 - a\n", " ok\n", "=== RUN   A\n", "  1) a\n", "a (b) ... ", "1..1\n"]
)
def test_reading_takes_time_in_proportion_to_the_output(unit: str) -> None:
    text = unit * (600_000 // len(unit))
    started = time.process_time()
    read_run(("make", "test"), text, ended="exited", exit_code=1)
    for runner in RUNNERS:
        read_run(("x",), text, ended="exited", exit_code=1, runner=runner)  # type: ignore[arg-type]
    assert time.process_time() - started < 20  # a quadratic reading takes hours


def test_thousands_of_tests_are_told_apart() -> None:
    lines = "".join(f"PASSED t.py::test_{n}\n" for n in range(20_000))
    run = read(f"= short test summary info =\n{lines}= 20000 passed in 9.00s =\n", "pytest", code=0)
    assert len(run.tests or {}) == 20_000
