"""What a coding model is shown of a repository."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.build.context import MAX_LISTED, fit, listing, wanted_paths
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
