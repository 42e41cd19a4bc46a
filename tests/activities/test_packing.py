"""The same content gives the same tar, and what comes out of a sandbox is checked member by member."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.delivery.packing import Packed, pack_folder, pack_tar
from domain.errors import ArtifactFailed, TooLarge

MOST = 1_000_000


def fill(folder: Path) -> Path:
    """A tree with everything that an artefact may hold."""
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o4775)
    (folder / "sub" / "data").write_bytes(bytes(range(256)) * 5)
    (folder / "sub" / "data").chmod(0o600)
    (folder / "sub" / ("long-" * 40)).write_text("long name")
    (folder / "sub" / "name with ü").write_text("")
    (folder / "sub" / "up").symlink_to("../run.sh")
    (folder / "gone").symlink_to("not/there")
    return folder


def gnu(folder: Path) -> Path:
    """The tar that a sandbox would give."""
    file = folder.parent / f"{folder.name}.tar"
    command = ["tar", "-C", str(folder), "--format=gnu", "--hard-dereference", "-cf", str(file), "."]
    subprocess.run(command, check=True)
    return file


def members(packed: Packed) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(packed.content)) as tar:
        return tar.getmembers()


def test_two_folders_with_the_same_content_have_the_same_tar(tmp_path: Path) -> None:
    one, two = fill(tmp_path / "one"), fill(tmp_path / "two")
    os.utime(two / "run.sh", (1, 1))
    packed = pack_folder(one, most_bytes=MOST)
    assert packed == pack_folder(two, most_bytes=MOST)
    assert packed == pack_tar(gnu(two), most_bytes=MOST)
    assert packed.files == 6


def test_everything_about_a_member_is_fixed(tmp_path: Path) -> None:
    found = members(pack_tar(gnu(fill(tmp_path / "one")), most_bytes=MOST))
    assert [each.name for each in found] == sorted(each.name for each in found)
    assert {(each.mtime, each.uid, each.gid, each.uname, each.gname) for each in found} == {(0, 0, 0, "", "")}
    assert {each.name: each.mode for each in found if each.name in ("run.sh", "sub", "sub/data")} == {
        "run.sh": 0o755,
        "sub": 0o755,
        "sub/data": 0o644,
    }


def test_what_is_packed_can_be_unpacked_by_others(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "packed.tar").write_bytes(pack_folder(fill(tmp_path / "one"), most_bytes=MOST).content)
    subprocess.run(["tar", "-C", str(tmp_path / "out"), "-xf", str(tmp_path / "packed.tar")], check=True)
    subprocess.run(["diff", "-r", "--no-dereference", str(tmp_path / "one"), str(tmp_path / "out")], check=True)


def test_a_name_that_is_no_utf_8_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    Path(os.fsdecode(bytes(tmp_path / "one") + b"/\xff\xfe")).write_text("x")
    packed = pack_folder(tmp_path / "one", most_bytes=MOST)
    assert packed == pack_tar(gnu(tmp_path / "one"), most_bytes=MOST)
    assert os.fsencode(members(packed)[0].name) == b"\xff\xfe"


def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(fill(tmp_path / "one") / "pipe")
    for pack in (pack_folder, lambda folder, most_bytes: pack_tar(gnu(folder), most_bytes=most_bytes)):
        with pytest.raises(ArtifactFailed, match=r"'(\./)?pipe'"):
            pack(tmp_path / "one", most_bytes=MOST)


def test_a_link_out_of_the_folder_is_refused_and_not_read(tmp_path: Path) -> None:
    (fill(tmp_path / "one") / "sub" / "out").symlink_to("/etc/passwd")
    for pack in (pack_folder, lambda folder, most_bytes: pack_tar(gnu(folder), most_bytes=most_bytes)):
        with pytest.raises(ArtifactFailed, match="the link 'sub/out' to '/etc/passwd'"):
            pack(tmp_path / "one", most_bytes=MOST)


def test_more_than_may_be_is_refused(tmp_path: Path) -> None:
    (fill(tmp_path / "one") / "big").write_bytes(bytes(MOST))
    for pack in (pack_folder, lambda folder, most_bytes: pack_tar(gnu(folder), most_bytes=most_bytes)):
        with pytest.raises(TooLarge):
            pack(tmp_path / "one", most_bytes=MOST)


def made(tmp_path: Path, *infos: tarfile.TarInfo, format: int = tarfile.GNU_FORMAT) -> Path:
    """A tar of just these members, as a program of the run could have forged it."""
    with tarfile.open(tmp_path / "made.tar", "w", format=format) as tar:
        for info in infos:
            tar.addfile(info, io.BytesIO(bytes(info.size)) if info.isreg() else None)
    return tmp_path / "made.tar"


def info(
    name: str, kind: bytes = tarfile.REGTYPE, *, size: int = 0, target: str = "", mode: int = 0o644
) -> tarfile.TarInfo:
    """One member."""
    made = tarfile.TarInfo(name)
    made.type, made.size, made.linkname, made.mode = kind, size, target, mode
    return made


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        (info("../evil"), "no path inside"),
        (info("/etc/evil"), "no path inside"),
        (info("a/../../evil"), "no path inside"),
        (info("hard", tarfile.LNKTYPE, target="/etc/shadow"), "neither a file"),
        (info("disk", tarfile.BLKTYPE), "neither a file"),
        (info("memory", tarfile.CHRTYPE), "neither a file"),
        (info("pipe", tarfile.FIFOTYPE), "neither a file"),
        (info("hollow", tarfile.GNUTYPE_SPARSE), "neither a file"),
        (info("link", tarfile.SYMTYPE, target="../../x"), "the link"),
        (info("same"), "twice"),
    ],
)
def test_a_forged_member_is_refused(tmp_path: Path, member: tarfile.TarInfo, sentence: str) -> None:
    tar = made(tmp_path, info("same", size=3), member)
    with pytest.raises(ArtifactFailed, match=sentence):
        pack_tar(tar, most_bytes=MOST)


def test_a_setuid_bit_does_not_get_in(tmp_path: Path) -> None:
    packed = pack_tar(made(tmp_path, info("a", mode=0o6777), info("b", mode=0o2666)), most_bytes=MOST)
    assert [member.mode for member in members(packed)] == [0o755, 0o644]


def test_a_file_through_a_link_is_refused(tmp_path: Path) -> None:
    tar = made(tmp_path, info("here", tarfile.SYMTYPE, target="."), info("here/evil", size=1))
    with pytest.raises(ArtifactFailed, match="no folder of it"):
        pack_tar(tar, most_bytes=MOST)


def test_an_extended_header_does_not_reach_the_parser(tmp_path: Path) -> None:
    extended = info("a")
    extended.pax_headers = {"path": "../evil", "size": "-1000"}
    with pytest.raises(ArtifactFailed, match="neither a file"):
        pack_tar(made(tmp_path, extended, format=tarfile.PAX_FORMAT), most_bytes=MOST)


def test_a_negative_size_is_refused(tmp_path: Path) -> None:
    raw = bytearray(made(tmp_path, info("a")).read_bytes())
    raw[124:136] = (-512).to_bytes(12, "big", signed=True)
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])
    (tmp_path / "made.tar").write_bytes(raw)
    with pytest.raises(ArtifactFailed):
        pack_tar(tmp_path / "made.tar", most_bytes=MOST)


def test_a_size_that_is_not_there_is_refused(tmp_path: Path) -> None:
    tar = made(tmp_path, info("a", size=2_000))
    tar.write_bytes(tar.read_bytes()[:1_024])
    with pytest.raises((ArtifactFailed, OSError)):
        pack_tar(tar, most_bytes=MOST)


@given(st.binary(max_size=2_000), st.integers(0, 2_047))
def test_no_damage_brings_anything_but_a_refusal_or_a_clean_artefact(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    whole = made(folder, info("a", size=600), info("d", tarfile.DIRTYPE), info("d/l", tarfile.SYMTYPE, target="../a"))
    raw = whole.read_bytes()
    whole.write_bytes(raw[:at] + noise + raw[at + len(noise) :])
    try:
        packed = pack_tar(whole, most_bytes=MOST)
    except (ArtifactFailed, TooLarge, OSError):
        return
    for member in members(packed):
        assert not member.name.startswith(("/", ".."))
        assert member.isreg() or member.isdir() or member.issym()
