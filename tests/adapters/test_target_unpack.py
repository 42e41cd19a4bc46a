"""Artefacts: what may be in them, and that nothing of them lands outside (adapters.target.local.unpack)."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.target.local.unpack import remove_tree, unpack
from domain.errors import InvalidInput

Member = tuple[str, bytes, str]  # name, type, link


def archive_of(*members: Member, mode: int = 0o644) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode, member.uid = kind, link, mode, 4711
            member.size = 4 if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(b"text") if member.size else None)
    return buffer.getvalue()


FILE, FOLDER, LINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


@pytest.mark.parametrize(
    "members",
    [
        [("/etc/x", FILE, "")],
        [("../x", FILE, "")],
        [("a/../../x", FILE, "")],
        [("l", LINK, "/etc/passwd")],
        [("l", LINK, "../x")],
        [("a/l", LINK, "../../x")],
        [("a/l", LINK, "b/../../../x")],
        [("l", LINK, "."), ("l/x", FILE, "")],
        [("a/l", LINK, ".."), ("a/l/m", LINK, "../..")],
        [("h", HARD, "/etc/passwd")],
        [("h", HARD, "../x")],
        [("l", LINK, "l"), ("h", HARD, "l")],
        [("d", tarfile.CHRTYPE, "")],
        [("p", tarfile.FIFOTYPE, "")],
        [("a", FILE, ""), ("a/b", FILE, "")],
    ],
)
def test_what_leads_outside_is_refused(members: list[Member], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        unpack(archive_of(*members), tmp_path / "release")
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


@pytest.mark.parametrize("content", [b"", b"no archive", archive_of(("a", FILE, ""))[:400]])
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        unpack(content, tmp_path / "release")


def test_files_folders_and_links_inside_arrive_readable_for_all_and_ours(tmp_path: Path) -> None:
    members = [("a/b/tool", FILE, ""), ("a/l", LINK, "b/tool"), ("a/b/up", LINK, "../.."), ("h", HARD, "a/b/tool")]
    folder = tmp_path / "release"
    before = os.umask(0o077)
    try:
        unpack(archive_of(*members, mode=0o6711), folder)
    finally:
        os.umask(before)
    assert (folder / "a" / "l").read_text() == (folder / "h").read_text() == "text"
    assert (folder / "a" / "b" / "tool").stat().st_mode & 0o7777 == 0o755, "setuid is gone"
    assert (folder / "a" / "b" / "tool").stat().st_uid == os.geteuid()
    assert {path.stat().st_mode & 0o777 for path in (folder, folder / "a", folder / "a" / "b")} == {0o755}


def leads_inside(path: Path, folder: Path) -> bool:
    """Of a link the whole way that it leads counts; one that leads to itself leads nowhere."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return True
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


parts = st.lists(st.sampled_from(["a", "b", "..", ".", ""]), min_size=1, max_size=4).map("/".join)
kinds = st.sampled_from([FILE, FOLDER, LINK, HARD])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(parts, kinds, parts), max_size=6))
def test_no_archive_writes_or_links_outside_its_folder(members: list[Member]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "inner", "release")
        folder.parent.mkdir()
        with contextlib.suppress(InvalidInput):
            unpack(archive_of(*members), folder)
        assert [path.name for path in Path(name).iterdir()] == ["inner"]
        assert [path.name for path in folder.parent.iterdir()] == ["release"]
        for path, folders, files in os.walk(folder):
            for each in (*folders, *files):
                assert leads_inside(Path(path, each), folder), members
        assert remove_tree(folder)
