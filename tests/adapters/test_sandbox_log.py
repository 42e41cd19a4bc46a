"""A log keeps its head and its tail within its limit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.sandbox.logfile import CutLog


def written(path: Path, chunks: list[bytes], limit: int) -> tuple[bytes, bool]:
    log = CutLog(path, limit=limit)
    for chunk in chunks:
        log.write(chunk)
    log.close()
    return path.read_bytes(), log.cut


def test_what_fits_is_kept_as_it_is(tmp_path: Path) -> None:
    assert written(tmp_path / "log", [b"one\n", b"two\n"], 1000) == (b"one\ntwo\n", False)


def test_of_more_the_head_and_the_tail_are_kept_and_the_gap_is_counted(tmp_path: Path) -> None:
    content, cut = written(tmp_path / "log", [b"first\n", *[b"noise\n"] * 1000, b"last\n"], 1000)
    assert cut
    assert content.startswith(b"first\nnoise\n")
    assert content.endswith(b"noise\nlast\n")
    kept = content.count(b"n") - content.count(b"bytes of")
    assert b" bytes left out here ...]" in content
    assert kept < 1000


def test_the_head_is_on_disk_before_the_run_is_over(tmp_path: Path) -> None:
    log = CutLog(tmp_path / "log", limit=1000)
    log.write(b"progress\n")
    assert (tmp_path / "log").read_bytes() == b"progress\n"
    log.close()


def test_a_full_disk_is_an_error_not_a_shorter_log() -> None:
    log = CutLog(Path("/dev/full"), limit=1000)
    with pytest.raises(OSError, match="No space left"):
        log.write(b"hello")
    log.close()


CHUNKS = st.lists(
    st.builds(lambda chunk, times: chunk * times, st.binary(max_size=20), st.integers(1, 60)), max_size=20
)


@given(CHUNKS, st.integers(0, 1000))
def test_the_limit_holds_and_nothing_is_lost_unsaid(chunks: list[bytes], limit: int) -> None:
    whole = b"".join(chunks)
    with TemporaryDirectory() as folder:
        content, cut = written(Path(folder) / "log", chunks, limit)
    assert len(content) <= max(limit, 64)
    assert cut == (content != whole)
    head, _, rest = content.partition(b"\n[... ")
    assert whole.startswith(head)
    if cut:
        left_out, _, tail = rest.partition(b" bytes left out here ...]\n")
        assert whole.endswith(tail)
        assert len(head) + int(left_out) + len(tail) == len(whole)
