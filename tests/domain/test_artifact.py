"""What an artefact may hold: the same in any order, within its limits, and nothing in it leads out."""

from __future__ import annotations

import posixpath
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.delivery import artifact
from domain.delivery.artifact import (
    FILE,
    FOLDER,
    LINK,
    Member,
    arranged,
    build_failure,
    output_folder,
    said_last,
)
from domain.errors import ArtifactFailed, TooLarge

MOST = 100_000


def file(path: str, size: int = 10) -> Member:
    return Member(path=path, kind=FILE, size=size)


def folder(path: str) -> Member:
    return Member(path=path, kind=FOLDER)


def link(path: str, target: str) -> Member:
    return Member(path=path, kind=LINK, target=target)


names = st.sampled_from(["a", "b", "c", "a-b", "ü"])
targets = st.lists(st.sampled_from(["..", ".", "a", "b", "c", ""]), min_size=1, max_size=6).map("/".join)


@st.composite
def trees(draw: st.DrawFn) -> list[Member]:
    """Folders, files and links whose folders are there."""
    members = {"f": file("f")}
    for _ in range(draw(st.integers(0, 12))):
        folders = ["", *(path for path, member in members.items() if member.kind == FOLDER)]
        path = posixpath.join(draw(st.sampled_from(folders)), draw(names))
        kind = draw(st.sampled_from([FILE, FOLDER, LINK]))
        members.setdefault(path, Member(path=path, kind=kind, target=draw(targets) if kind == LINK else ""))
    return list(members.values())


@given(trees(), st.randoms(use_true_random=False))
def test_the_order_is_the_same_whatever_the_order_was(tree: list[Member], random: object) -> None:
    tree = [replace(each, target="f") if each.kind == LINK else each for each in tree]
    shuffled = list(tree)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    ordered = arranged(tree, most_bytes=MOST)
    assert ordered == arranged(shuffled, most_bytes=MOST)
    paths = [member.path for member in ordered]
    assert all(posixpath.dirname(path) in ["", *paths[:number]] for number, path in enumerate(paths))


@given(trees())
def test_no_link_that_is_let_in_leads_out_by_any_way(tree: list[Member]) -> None:
    try:
        members = {member.path: member for member in arranged(tree, most_bytes=MOST)}
    except ArtifactFailed:
        assume(False)
    for path in members:
        _walk(path, members)


def _walk(path: str, members: dict[str, Member]) -> None:
    """Resolve as a kernel does; fails when a step goes above the top."""
    at: list[str] = []
    rest = path.split("/")
    for _ in range(100):
        if not rest:
            return
        part = rest.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            assert at, f"{path} leads out"
            at.pop()
            continue
        found = members.get("/".join([*at, part]))
        if found and found.kind == LINK:
            rest = [*found.target.split("/"), *rest]
        else:
            at.append(part)


@pytest.mark.parametrize(
    ("path", "target"),
    [("l", "f"), ("l", "./f"), ("d/l", "../f"), ("d/e/l", "../../d/./e"), ("l", "gone"), ("l", "."), ("d/l", "..")],
)
def test_links_that_stay_inside_are_let_in(path: str, target: str) -> None:
    members = [file("f"), folder("d"), folder("d/e"), link(path, target)]
    assert link(path, target) in arranged(members, most_bytes=MOST)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("l", "/etc/passwd"),
        ("l", ".."),
        ("d/l", "../../x"),
        ("l", "d/../../x"),
        ("l", "d/.."),
        ("l", ""),
        ("l", "a\0b"),
    ],
)
def test_links_that_could_lead_out_are_refused(path: str, target: str) -> None:
    with pytest.raises(ArtifactFailed, match="the link"):
        arranged([file("f"), folder("d"), link(path, target)], most_bytes=MOST)


@pytest.mark.parametrize("path", ["", "/a", "../a", "a/../b", "./a", "a/", "a//b", "a\0b"])
def test_a_path_that_is_none_inside_is_refused(path: str) -> None:
    with pytest.raises(ArtifactFailed, match="no path inside"):
        arranged([folder("a"), file(path)], most_bytes=MOST)


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([file("a"), file("a")], "'a' twice"),
        ([link("l", "d"), folder("d"), file("l/x")], "no folder of it"),
        ([file("a"), file("a/x")], "no folder of it"),
        ([file("d/x")], "no folder of it"),
        ([Member(path="p", kind="a device")], "a device"),
        ([file("a", size=-1)], "only files"),
        ([file("a" * 1_001)], "1001 characters"),
        ([folder("a"), link("l", "a")], "no file to release"),
        ([], "no file to release"),
    ],
)
def test_what_no_artefact_may_hold_is_named(members: list[Member], sentence: str) -> None:
    with pytest.raises(ArtifactFailed, match=sentence):
        arranged(members, most_bytes=MOST)


def test_a_path_in_a_sentence_has_no_controls() -> None:
    with pytest.raises(ArtifactFailed) as caught:
        arranged([Member(path="\x1b[2Jx\n", kind="a pipe")], most_bytes=MOST)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_size_counts_as_the_tar_has_it() -> None:
    assert arranged([file("a", 513)], most_bytes=512 * 5)
    with pytest.raises(TooLarge, match="2559 bytes"):
        arranged([file("a", 513)], most_bytes=512 * 5 - 1)


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MOST_MEMBERS", 3)
    assert arranged(map(file, "abc"), most_bytes=MOST)
    with pytest.raises(TooLarge, match="more than 3"):
        arranged(map(file, "abcd"), most_bytes=MOST)


@pytest.mark.parametrize(("output", "taken"), [("", "."), (".", "."), ("dist/", "dist"), ("./a//b", "a/b")])
def test_where_a_build_leaves_its_artefact(output: str, taken: str) -> None:
    assert output_folder(output) == taken


def test_a_command_that_exited_with_0_did_not_fail() -> None:
    assert build_failure(ended="exited", exit_code=0, output="x") == ""


def test_a_failure_tells_how_and_the_end_of_what_was_said() -> None:
    output = "first\n" * 500 + "make: *** \x1b[31mno rule\x1b[0m\n\n"
    sentence = build_failure(ended="exited", exit_code=2, output=output)
    assert sentence.startswith("the build command exited with 2, saying at the end: …")
    assert sentence.endswith("make: *** no rule")
    assert len(sentence) < 400
    assert "in time" in build_failure(ended="timeout", exit_code=137, output="")
    assert "a new limit" in build_failure(ended="a new limit", exit_code=137, output="")


@given(st.text())
def test_what_was_said_is_one_short_line(output: str) -> None:
    said = said_last(output)
    assert len(said) < 350
    assert "\n" not in said
