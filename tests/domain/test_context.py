"""What a coding model is shown of a repository."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.build.context import MAX_LISTED, MAX_NAMED, ContextFile, fit, listing, named_paths, numbered, wanted_paths
from domain.ports.workspace import TreeFile


def tree(*paths: str) -> tuple[TreeFile, ...]:
    return tuple(TreeFile(path=path, size=10, kind="file") for path in paths)


def test_planned_files_come_with_the_tests_that_bear_their_names() -> None:
    files = tree(
        "app/api.py", "app/store.py", "tests/test_api.py", "tests/test_store.py", "web/api.test.js", "api_test.go"
    )
    assert wanted_paths(["app/api.py"], [], files) == (
        "app/api.py",
        "tests/test_api.py",
        "web/api.test.js",
        "api_test.go",
    )


def test_planned_files_that_do_not_exist_yet_are_left_out_and_none_comes_twice() -> None:
    files = tree("a.py", "test_a.py")
    assert wanted_paths(["a.py", "new.py", "a.py"], ["test_a.py"], files) == ("a.py", "test_a.py")


def test_symlinks_are_never_shown() -> None:
    link = TreeFile(path="link.py", size=10, kind="symlink")
    assert wanted_paths(["link.py"], [], (link,)) == ()


def test_a_file_that_does_not_fit_says_so_instead_of_being_cut() -> None:
    shown = fit("big.py", b"x" * 11, left=10)
    assert (shown.text, shown.left_out) == ("", "11 bytes do not fit")


def test_bytes_that_are_no_text_are_not_shown() -> None:
    assert fit("a.png", b"\x89PNG\xff", left=100).left_out == "it is not text"


@given(st.binary(max_size=50), st.integers(min_value=0, max_value=60))
def test_what_is_shown_never_exceeds_what_is_left(content: bytes, left: int) -> None:
    assert len(fit("f", content, left=left).text.encode()) <= left


def test_a_long_tree_ends_with_how_many_files_more_there_are() -> None:
    lines = listing(tree(*(f"f{i}" for i in range(MAX_LISTED + 5))))
    assert len(lines) == MAX_LISTED + 1
    assert lines[-1] == "and 5 more files"


def test_the_files_that_a_report_names_are_found_whatever_stands_around_them() -> None:
    files = tree("app/api.py", "app/store.py", "README.md", "api.py", "a")
    report = 'CONFLICT in README.md.\n- app/store.py, line 3: x\n  File "/work/app/api.py", line 7\n(api.py:9) banana'
    assert named_paths(report, files) == ("README.md", "app/store.py", "api.py")


def test_a_report_that_names_everything_brings_only_the_first_twenty() -> None:
    paths = [f"f{number}.py" for number in range(MAX_NAMED + 5)]
    assert named_paths(" ".join(paths * 2), tree(*paths)) == tuple(paths[:MAX_NAMED])


@given(st.text(), st.lists(st.text(min_size=1), max_size=5))
def test_only_files_that_exist_are_named(report: str, paths: list[str]) -> None:
    assert set(named_paths(report, tree(*paths))) <= set(paths)


def test_a_link_that_a_report_names_is_not_shown() -> None:
    assert named_paths("see link.py", (TreeFile(path="link.py", size=10, kind="symlink"),)) == ()


@given(st.text())
def test_numbered_lines_are_those_of_the_file(text: str) -> None:
    shown = numbered(ContextFile(path="f", text=text)).text
    lines = [line.split(" | ", 1) for line in shown.removesuffix("\n").split("\n")] if shown else []
    assert "\n".join(line for _, line in lines) == text.removesuffix("\n")
    assert [int(number) for number, _ in lines] == list(range(1, len(lines) + 1))


def test_a_file_that_is_left_out_has_no_lines() -> None:
    file = ContextFile(path="f", text="", left_out="it is not text")
    assert numbered(file) == file
