"""A red run's output goes back to the model: what matters of it, within the limit, as plain text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.gates.plain import plain
from domain.gates.report import Runner
from domain.gates.trimming import trim
from domain.gates.verdict import read_report
from tests.domain import runners

ALL: list[Runner] = ["pytest", "unittest", "node", "other"]
NOISE = "print('\\n'.join('noise %d' % n for n in range(2000)))\n"


def test_a_short_output_comes_back_whole() -> None:
    assert trim("one\n\x1b[31mtwo\x1b[0m\n", "pytest", limit=100) == "one\ntwo"


def test_of_pytest_the_failures_and_the_summary_stay(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(NOISE + runners.PYTEST)
    text = trim(runners.run_pytest(tmp_path, "-s", "--color=yes").text, "pytest", limit=2_000)
    assert "AssertionError: the sum is wrong" in text
    assert "numbers = [1, 2]" in text
    assert "FAILED test_it.py::test_bad" in text
    assert "1 failed, 2 passed" in text
    assert "noise" not in text
    assert "of output left out]" in text.splitlines()[-1]


def test_of_pytest_a_syntax_error_stays(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(NOISE)
    (tmp_path / "test_it.py").write_text("def broken(:\n    pass\n")
    text = trim(runners.run_pytest(tmp_path, "-s").text, "pytest", limit=1_500)
    assert "SyntaxError" in text
    assert "def broken(:" in text


def test_a_banner_in_captured_output_does_not_hide_the_failures_after_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        'def test_a():\n    print("x" * 3000)\n    print("==== banner ====")\n    assert "first"== 1\n'
        'def test_b():\n    assert "second" == 2\n'
    )
    text = trim(runners.run_pytest(tmp_path).text, "pytest", limit=2_500)
    assert "test_a" in text
    assert "assert 'second' == 2" in text


def test_of_unittest_the_failures_and_the_result_stay(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(NOISE + runners.UNITTEST)
    text = trim(runners.run_unittest(tmp_path).text, "unittest", limit=2_000)
    assert "AssertionError: 1 != 2 : not the same" in text
    assert "KeyError: 'gone'" in text
    assert "FAILED (failures=1, errors=1, skipped=1, expected failures=1)" in text
    assert "noise" not in text


@pytest.mark.parametrize("sample", [runners.NODE_TAP, runners.NODE_SPEC], ids=["tap", "spec"])
def test_of_node_the_failures_stay(sample: str) -> None:
    noise = "".join(f"ok {n} - fine\n" for n in range(1000))
    text = trim(noise + sample, "node", limit=1_500)
    assert "bad one" in text
    assert "1 == 2" in text
    assert "boom" in text
    assert "fine" not in text


def test_of_many_failures_the_first_stay_with_the_summary() -> None:
    blocks = "".join(f"____ test_{n} ____\n" + "E   detail\n" * 50 for n in range(200))
    summary = "==== short test summary info ====\nFAILED a.py::test_0\n==== 200 failed in 1.00s ===="
    text = trim(f"==== FAILURES ====\n{blocks}{summary}\n", "pytest", limit=4_000)
    assert "____ test_0 ____" in text
    assert "____ test_199 ____" not in text
    assert "200 failed" in text


def test_of_an_unknown_output_head_traceback_and_tail_stay() -> None:
    noise = "".join(f"line {n}\n" for n in range(3000))
    trace = "Traceback (most recent call last):\n  File x\nValueError: here it is\n"
    text = trim("first words\n" + noise + trace + "the end", "other", limit=1_000)
    assert text.startswith("first words")
    assert "ValueError: here it is" in text
    assert "the end" in text


def test_nothing_of_a_terminal_is_left() -> None:
    text = plain(
        "a\x1b[1;31mb\x1b]8;;http://x\x07c\x1b]0;title\x1b\\d\x07\x00e\u202ef\u200bg\x1bMh\x9b1mi\ttab\r\nnext"
    )
    assert text == "abcdefgh1mi\ttab\nnext"


def test_a_progress_line_shows_what_was_seen_last() -> None:
    assert plain("10%\r50%\r100%\nnext\r\n") == "100%\nnext\n"


MARKS = ["=" * 70, "-" * 70, "FAIL: x", "Ran 3 tests in 0.1s", "= FAILURES =", "____ a ____", "_ _ _", "not ok 1 - x"]
MARKS += [
    "  ...",
    "✖ failing tests:",
    "Traceback (most recent call last):",
    "= short test summary info =",
    "ü" * 400,
    "",
]
OUTPUTS = st.text(max_size=2000) | st.lists(st.sampled_from(MARKS), max_size=60).map("\n".join)


@given(st.sampled_from(ALL), OUTPUTS, st.integers(0, 3000))
def test_the_limit_holds_and_text_that_fits_is_not_cut(runner: Runner, text: str, limit: int) -> None:
    trimmed = trim(text, runner, limit=limit)
    assert len(trimmed.encode()) <= limit
    assert plain(trimmed) == trimmed
    whole = plain(text).strip("\n")
    assert trimmed == whole or len(whole.encode()) > limit


@pytest.mark.parametrize(
    "unit",
    [
        "\x1b[0000000",
        "\x1b]0;x",
        "\x1b",
        "\r",
        "= ",
        "_ ",
        "\n",
        "1 passed in ",
        "not ok 1",
        "ü",
        "=" * 70 + "\nFAIL: a\n",
    ],
)
def test_time_grows_no_faster_than_the_output(unit: str) -> None:
    text = unit * (2_000_000 // len(unit.encode()))
    started = time.process_time()
    for runner in ALL:
        assert len(trim(text, runner, limit=12_000).encode()) <= 12_000
        assert read_report(runner, text, 1).failing == () or "FAIL" in unit or "not ok" in unit
    assert time.process_time() - started < 10  # a quadratic reading takes hours


def test_ten_megabytes_of_log_are_trimmed_to_the_failure() -> None:
    noise = "\x1b[32mINFO\x1b[0m a line as programs log them, again and again\n" * 150_000
    failure = "____ test_a ____\nE   assert 1 == 2\n==== short test summary info ====\nFAILED a.py::test_a\n"
    text = trim(f"{noise}==== FAILURES ====\n{failure}==== 1 failed in 9.00s ====\n", "pytest", limit=2_000)
    assert text.startswith("____ test_a ____\nE   assert 1 == 2")
    assert "INFO" not in text
