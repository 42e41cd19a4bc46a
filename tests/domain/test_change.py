"""Paths and edits of a model, judged without a file system."""

from __future__ import annotations

import contextlib
import posixpath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.build.change import MOST_NEEDS, Change, Edit, FileOperation, edited, needed, path_problem
from domain.errors import InvalidChange

segments = st.text(st.characters(codec="utf-8", categories=("L", "N", "Pd", "Pc")), min_size=1, max_size=20)
paths = st.lists(segments, min_size=1, max_size=6).map("/".join)
GIT = (".git", "git~1")
texts = st.text("ab\n", max_size=60)


@given(paths)
def test_plain_paths_are_allowed(path: str) -> None:
    assert path_problem(path) is None


@given(st.text(max_size=300))
def test_an_allowed_path_stays_inside_and_can_be_written_down(path: str) -> None:
    assume(path_problem(path) is None)
    assert posixpath.normpath(posixpath.join("/root/of", path)) == f"/root/of/{path}"
    assert path.encode()
    assert "\0" not in path
    assert "\n" not in path


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b.py", ".git", ".GIT ", "C:", "\\", "~"]), max_size=6))
def test_no_joining_of_dangerous_parts_is_allowed(parts: list[str]) -> None:
    path = "/".join(parts)
    harmless = bool(parts) and set(parts) <= {"a", "b.py", "C:", "~"} and parts[0] != "C:"
    assert (path_problem(path) is None) == harmless


@given(st.lists(segments, max_size=3), st.lists(segments, max_size=3), st.data())
def test_the_git_folder_is_refused_in_any_spelling(before: list[str], after: list[str], data: st.DataObject) -> None:
    cased = "".join(data.draw(st.sampled_from((c.lower(), c.upper()))) for c in data.draw(st.sampled_from(GIT)))
    tail = data.draw(st.sampled_from(["", ".", " ", " . .", "::$INDEX_ALLOCATION", ":stream", " ::x"]))
    assert path_problem("/".join([*before, cased + tail, *after])) is not None


@pytest.mark.parametrize(
    "path",
    [".gitignore", ".gitattributes", ".github/workflows/ci.yml", "git", "a.git", ".gité", "git~10", "x/.gitkeep"],
)
def test_neighbours_of_the_git_folder_are_allowed(path: str) -> None:
    assert path_problem(path) is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("a\x7f", "characters"),
        ("a\x9b31m", "characters"),
        ("a\u202egpj.exe", "characters"),
        (".g\u200cit/config", "characters"),
        ("\ufeff.git", "characters"),
        ("half\ud800", "characters"),
        ("a\u2028b", "characters"),
        ("a\\..\\b", "characters"),
        ("c:/windows", "absolute"),
        ("//host/share", "absolute"),
        ("a//b", "parts"),
        ("a/", "parts"),
        ("ä" * 128, "too long"),
        ("/".join(["ab"] * 342), "too long"),
    ],
)
def test_the_reason_says_what_is_wrong(path: str, reason: str) -> None:
    assert reason in str(path_problem(path))


@given(texts, texts, texts, texts)
def test_an_edit_replaces_the_one_place_and_nothing_else(head: str, search: str, tail: str, replacement: str) -> None:
    text = head + search + tail
    places = [at for at in range(len(text)) if search and text.startswith(search, at)]
    edit = (Edit(search=search, replace=replacement),)
    if len(places) == 1:
        assert edited("f", text, edit) == head + replacement + tail
    else:
        with pytest.raises(InvalidChange, match=r"^f: "):
            edited("f", text, edit)


@given(texts, texts, texts, texts)
def test_a_file_of_crlf_lines_is_edited_as_if_it_had_plain_ones(head: str, search: str, tail: str, new: str) -> None:
    text, edit = f"first\n{head}<{search}>{tail}\n", (Edit(search=f"<{search}>", replace=new),)
    assert edited("f", text.replace("\n", "\r\n"), edit) == edited("f", text, edit).replace("\n", "\r\n")


def test_mixed_line_ends_are_left_as_they_are() -> None:
    mixed = "a\r\nb\nc\r\n"
    assert edited("f", mixed, (Edit(search="b\n", replace="x\ny\n"),)) == "a\r\nx\ny\nc\r\n"
    assert edited("f", "a\r\nb\r\n", (Edit(search="a\r\n", replace="x\r\ny\r\n"),)) == "x\r\ny\r\nb\r\n"


def test_a_later_edit_sees_the_earlier_one() -> None:
    edits = (Edit(search="a", replace="b"), Edit(search="b", replace="c"))
    assert edited("f", "a", edits) == "c"
    with pytest.raises(InvalidChange, match="edit 2 occurs more than once"):
        edited("f", "ab", edits)


def test_places_that_overlap_are_more_than_one() -> None:
    with pytest.raises(InvalidChange, match="more than once"):
        edited("f", "aaa", (Edit(search="aa", replace="b"),))


def test_no_edits_leave_the_text() -> None:
    assert edited("f", "text", ()) == "text"


PRESENT = ("app/api.py", "app/store.py", "tests/test_api.py", "README.md")


def asking(*needs: str, operations: tuple[FileOperation, ...] = ()) -> Change:
    return Change(summary="", operations=operations, needs=needs)


def test_needs_are_the_files_that_there_are_each_once_and_in_order() -> None:
    change = asking("tests/test_api.py", " ./app/api.py ", "gone.py", "app/api.py")
    assert needed(change, PRESENT) == ("tests/test_api.py", "app/api.py")


def test_a_change_that_changes_something_needs_nothing() -> None:
    operation = FileOperation(action="delete", path="README.md", content="", edits=())
    assert needed(asking("app/api.py", operations=(operation,)), PRESENT) == ()
    assert needed(asking("no such file", operations=(operation,)), PRESENT) == ()
    assert needed(asking(), PRESENT) == ()


@pytest.mark.parametrize(
    ("asked", "near"),
    [("lib/store.py", "app/store.py"), ("app/apy.py", "app/api.py"), ("test/test_api.py", "tests/test_api.py")],
)
def test_needs_that_name_nothing_are_told_what_is_near(asked: str, near: str) -> None:
    with pytest.raises(InvalidChange, match=rf"'{asked}' \(there is {near}"):
        needed(asking(asked), PRESENT)


def test_needs_that_name_nothing_and_nothing_near_are_told_so() -> None:
    with pytest.raises(InvalidChange, match=r"files that do not exist: '../etc/passwd'; 'xyz'$"):
        needed(asking("../etc/passwd", "xyz"), PRESENT)


def test_more_needs_than_one_prompt_could_show_are_refused() -> None:
    assert len(needed(asking(*(f"{n}.py" for n in range(MOST_NEEDS))), [f"{n}.py" for n in range(99)])) == MOST_NEEDS
    with pytest.raises(InvalidChange, match="needs 21 files; at most 20"):
        needed(asking(*(f"{n}.py" for n in range(MOST_NEEDS + 1))), PRESENT)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_what_is_needed_is_always_a_file_of_the_tree(needs: list[str]) -> None:
    found: tuple[str, ...] = ()
    with contextlib.suppress(InvalidChange):
        found = needed(asking(*needs), PRESENT)
    assert set(found) <= set(PRESENT)
