"""Files of keys: what is written, what is refused, and that no error tells a secret."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

import pytest

from adapters.payloads.keys import KEY_BYTES, load_keys, new_key, new_token, read_token
from domain.errors import InvalidInput

SECRET = base64.b64encode(b"s" * KEY_BYTES).decode()


def key_file(folder: Path, name: str = "2026a.key", content: str = SECRET, mode: int = 0o600) -> Path:
    file = folder / name
    file.write_text(content)
    file.chmod(mode)
    return file


class TestReading:
    def test_a_new_key_is_for_its_owner_alone_and_reads_back(self, tmp_path: Path) -> None:
        file = tmp_path / "2026a.key"
        assert new_key(file) == "2026a"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        (key,) = load_keys([file])
        assert (key.id, len(key.secret)) == ("2026a", KEY_BYTES)
        assert os.listdir(tmp_path) == ["2026a.key"]

    def test_two_new_keys_differ(self, tmp_path: Path) -> None:
        files = [tmp_path / "a.key", tmp_path / "b.key"]
        for file in files:
            new_key(file)
        first, second = load_keys(files)
        assert first.secret != second.secret

    @pytest.mark.parametrize(
        "content", [SECRET + "\n", f"  {SECRET}\n\n", base64.urlsafe_b64encode(b"\xff" * 32).decode()]
    )
    def test_what_other_tools_write_is_read(self, tmp_path: Path, content: str) -> None:
        assert len(load_keys([key_file(tmp_path, content=content)])[0].secret) == KEY_BYTES

    def test_a_mounted_secret_behind_a_link_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "2026a.key").symlink_to(key_file(tmp_path, name="data", mode=0o400))
        assert load_keys([tmp_path / "2026a.key"])[0].id == "2026a"


class TestRefusing:
    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o610])
    def test_a_key_that_others_may_use(self, tmp_path: Path, mode: int) -> None:
        with pytest.raises(InvalidInput, match=rf"2026a\.key may be used by others \(mode {mode:04o}\): chmod 600 it"):
            load_keys([key_file(tmp_path, mode=mode)])

    @pytest.mark.parametrize("content", ["", "x", SECRET[:-8], SECRET * 2, "!" * 44, "é" * 30])
    def test_what_is_no_key_of_32_bytes(self, tmp_path: Path, content: str) -> None:
        with pytest.raises(InvalidInput, match=r"2026a\.key has to hold 32 random bytes in base64") as caught:
            load_keys([key_file(tmp_path, content=content)])
        assert len(content) < 8 or content[:8] not in str(caught.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match=r"2026a\.key cannot be read: No such file or directory"):
            load_keys([tmp_path / "2026a.key"])

    def test_a_folder_and_a_pipe_without_waiting_for_anybody(self, tmp_path: Path) -> None:
        (tmp_path / "folder.key").mkdir()
        os.mkfifo(tmp_path / "pipe.key", 0o600)
        for name in ("folder.key", "pipe.key"):
            with pytest.raises(InvalidInput, match=rf"{name} is no file"):
                load_keys([tmp_path / name])

    def test_a_key_in_the_place_of_a_file_name_is_not_told(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match=r"named ID\.key") as caught:
            load_keys([tmp_path / SECRET])
        assert SECRET[:8] not in str(caught.value)

    @pytest.mark.parametrize("place", ["/usr/lib/mendwork", "/usr/share/../share", "/lib"])
    def test_a_key_where_sandboxes_see_it(self, place: str) -> None:
        with pytest.raises(InvalidInput, match=r"a\.key lies where sandboxes see it"):
            load_keys([Path(place) / "a.key"])

    def test_a_key_behind_a_link_to_such_a_place(self, tmp_path: Path) -> None:
        (tmp_path / "a.key").symlink_to("/usr/lib/a.key")
        with pytest.raises(InvalidInput, match="lies where sandboxes see it"):
            load_keys([tmp_path / "a.key"])

    def test_two_files_of_one_id(self, tmp_path: Path) -> None:
        (tmp_path / "old").mkdir()
        with pytest.raises(InvalidInput, match=r"two files have the name 2026a\.key"):
            load_keys([key_file(tmp_path), key_file(tmp_path / "old")])

    def test_a_key_is_never_written_over(self, tmp_path: Path) -> None:
        file = key_file(tmp_path)
        with pytest.raises(InvalidInput, match="is there already"):
            new_key(file)
        assert file.read_text() == SECRET
        assert os.listdir(tmp_path) == ["2026a.key"]

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="cannot be written: No such file"):
            new_key(tmp_path / "none" / "a.key")


class TestToken:
    def test_a_new_one_reads_back(self, tmp_path: Path) -> None:
        new_token(tmp_path / "token")
        assert len(read_token(tmp_path / "token")) >= 40

    @pytest.mark.parametrize("content", ["", "short", "two words of some length", "ümlauts-of-some-length"])
    def test_a_weak_one_is_refused_and_not_told(self, tmp_path: Path, content: str) -> None:
        with pytest.raises(InvalidInput, match="one word of at least 16 plain characters") as caught:
            read_token(key_file(tmp_path, name="token", content=content))
        assert not content or content not in str(caught.value)

    def test_the_token_itself_in_the_place_of_its_file_is_not_told(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="cannot be read") as caught:
            read_token(tmp_path / "the-token-itself-0123")
        assert "0123" not in str(caught.value)

    def test_one_that_others_may_read_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="chmod 600"):
            read_token(key_file(tmp_path, name="token", content="x" * 40, mode=0o644))
