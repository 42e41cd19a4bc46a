"""Every kind of conflict is told as paths and a bounded text with both sides marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.git_scenes import GONE, LINES, Scene, edited


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


CONFLICTS: dict[str, tuple[dict[str, object], dict[str, object], dict[str, object], str, str]] = {
    "deleted here, edited there": ({"x": LINES, "k": b""}, {"x": GONE}, {"x": edited(1, "mine")}, "x", "+mine"),
    "edited here, deleted there": ({"x": LINES, "k": b""}, {"x": edited(1, "newer")}, {"x": GONE}, "x", "+newer"),
    "binary": ({"x": b"\0a"}, {"x": b"\0bb"}, {"x": b"\0ccc"}, "x", "[file, 4 bytes, no text]"),
    "added twice": ({"k": b""}, {"x": b"same\n1\n"}, {"x": b"same\n2\n"}, "x", "<<<<<<< the newer state\n1\n"),
    "links": ({"x": "a"}, {"x": "b"}, {"x": "c"}, "x", "=======\n[symlink to c]\n>>>>>>> this change"),
    "a file and a link": ({"k": b""}, {"x": b"text\n"}, {"x": "k"}, "x", "=======\n[symlink to k]\n"),
    "a folder and a file": ({"k": b""}, {"x/y": b"text\n"}, {"x": b"file\n"}, "x", "in the way of x"),
    "renamed twice": ({"x": LINES}, {"x": GONE, "y": LINES}, {"x": GONE, "z": LINES}, "y", "to y in the newer state"),
    "a file for a folder that moved": (
        {"d/a": LINES, "d/b": LINES * 2}, {"d/a": GONE, "d/b": GONE, "e/a": LINES, "e/b": LINES * 2}, {"d/new": b"n"},
        "e/new", "directory that was renamed in the newer state",
    ),
    "line ends of the whole file": (
        {"x": LINES}, {"x": LINES.replace(b"\n", b"\r\n")}, {"x": edited(4, "mine")}, "x", "line 4\\r\n",
    ),
    "whatever attributes ask for": (
        {"x": LINES, ".gitattributes": b"x merge=union\n"}, {"x": edited(4, "n")}, {"x": edited(4, "m")}, "x",
        "=======\nm\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFLICTS)
async def test_a_conflict_names_its_path_and_shows_both_sides(scene: Scene, name: str) -> None:
    base, ours, theirs, path, shown = CONFLICTS[name]
    found = await scene.merge(base, ours, theirs)
    assert found.commit == ""
    assert path in found.conflicts
    assert shown in found.report
    for mark in ("<<<<<<< the newer state\n", "\n=======\n", "\n>>>>>>> this change\n"):
        assert mark in found.report
    assert not any(len(word) == 40 for word in found.report.split()), "a name of ours that helps nobody"
    assert found == await scene.rebase()


async def test_submodules_conflict_by_their_commits(scene: Scene) -> None:
    def moved(name: str, start: str, digit: str) -> None:
        if start:
            scene.user.git("checkout", "--quiet", "--detach", start)
        scene.user.git("update-index", "--add", "--cacheinfo", f"160000,{digit * 40},dep")
        scene.user.git("commit", "--quiet", "--message=dep")
        scene.user.git("branch", name)

    moved("base", "", "a")
    moved("ours", "base", "b")
    moved("theirs", "base", "c")
    await scene.known()
    found = await scene.rebase()
    assert found.conflicts == ("dep",)
    assert f"=======\n[submodule at {'c' * 40}]" in found.report
    assert "manually handle" not in found.report


async def test_a_report_is_bounded_whatever_conflicts(scene: Scene) -> None:
    wide = {f"{'w' * 200}/{number:03}": LINES for number in range(60)}
    huge = {"huge": LINES * 20_000, "long": b"x" * 100_000 + b"\n", "0": b"small\n"}
    sides = [{path: content + text for path, content in (wide | huge).items()} for text in (b"newer\n", b"mine\n")]
    found = await scene.merge(dict(wide | huge), dict(sides[0]), dict(sides[1]))
    assert len(found.conflicts) == 63
    assert len(found.report) <= 20_000
    assert found.report.startswith("63 files conflict")
    assert "and 23 more files" in found.report
    assert "<<<<<<< the newer state\nnewer\n" in found.report


async def test_a_large_conflict_leaves_room_for_the_small_ones(scene: Scene) -> None:
    many = "".join(f"{number}\n" for number in range(4000)).encode()
    found = await scene.merge(
        {"a": b"", "z": LINES}, {"a": many, "z": edited(1, "newer")}, {"a": many[::-1], "z": edited(1, "mine")}
    )
    assert "[cut here" in found.report
    assert "=======\nmine\n>>>>>>> this change" in found.report
    assert len(found.report) <= 20_000


async def test_a_report_cannot_steer_a_terminal_or_hide_text(scene: Scene) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe \u200b".encode()
    name = "a\nb\x1b[31m"
    found = await scene.merge({name: LINES}, {name: edited(3, "x")}, {name: LINES.replace(b"line 3", evil)})
    assert found.conflicts == (name,)
    assert all(c.isprintable() or c in "\n\t" for c in found.report)
    assert "\\x1b[2J" in found.report
    assert "\na\\nb\\x1b[31m\n" in found.report
