"""``mendwork codec``: keys and tokens as files, and when the server does not start."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.payloads.keys import new_key
from adapters.settings import Settings
from tests.forks import Ran, run_command

Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run("codec", …, text="…")``: the command line in a folder with that mendwork.toml."""

    def run(*words: str, text: str = "") -> Ran:
        (tmp_path / "mendwork.toml").write_text(text)
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        return run_command(["codec", *words], folder=tmp_path, environment=environment)

    return run


def test_a_key_is_written_once_and_its_id_is_data(run: Run, tmp_path: Path) -> None:
    done = run("key", "2026a.key")
    assert (done.code, done.out, done.err) == (0, "2026a\n", "")
    content = (tmp_path / "2026a.key").read_text()
    again = run("key", "2026a.key")
    assert (again.code, again.out) == (2, "")
    assert again.err == "mendwork: 2026a.key is there already: a key is never written over\n"
    assert (tmp_path / "2026a.key").read_text() == content


def test_a_token_is_written_for_its_owner_and_never_printed(run: Run, tmp_path: Path) -> None:
    done = run("token", "codec.token")
    assert done.code == 0
    assert stat.S_IMODE((tmp_path / "codec.token").stat().st_mode) == 0o600
    assert (tmp_path / "codec.token").read_text().strip() not in done.out + done.err


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("", (), "[encryption].keys names no key: nothing is encrypted, so there is nothing to decode"),
        ('[encryption]\nkeys = ["none.key"]', (), "[encryption].keys: none.key cannot be read: No such file or d"),
        ('[encryption]\nkeys = ["c2VjcmV0Cg=="]', (), "encryption.keys.0: a key has no place here: name its file"),
        ('[codec]\ntoken = "hunter2"', (), "codec: unknown key 'token'; known: host, origins, port, token_file"),
        ('[codec]\norigins = ["*"]', (), "codec.origins.0: has to be the origin of a web UI"),
        ('[codec]\norigins = ["http://a/b"]', (), "codec.origins.0: has to be the origin of a web UI"),
        ('[encryption]\nkeys = ["a.key"]', ("--host", "10.0.0.1"), "10.0.0.1 can be reached from other machines"),
        ('[encryption]\nkeys = ["a.key"]\n[codec]\ntoken_file = "hunter2"', (), "[codec].token_file: the file cannot"),
    ],
)
def test_a_server_that_cannot_be_says_why(
    run: Run, tmp_path: Path, text: str, words: tuple[str, ...], sentence: str
) -> None:
    new_key(tmp_path / "a.key")
    done = run("serve", *words, text=text)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1
    assert not [secret for secret in ("hunter2", "c2VjcmV0") if secret in done.err]


def test_the_documents_configuration_is_the_products(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "encryption.md").read_text()
    blocks = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)]
    told = Settings.model_validate(
        {"root": tmp_path, **{name: value for block in blocks for name, value in block.items()}}
    )
    plain = Settings(root=tmp_path)
    assert (told.codec.host, told.codec.port) == (plain.codec.host, plain.codec.port)
    assert told.key_files == (tmp_path / "keys" / "2026a.key",)
    assert (plain.key_files, plain.codec.token_file, plain.codec.origins) == ((), "", ())
    assert set(blocks[1]["codec"]) == set(type(plain.codec).model_fields)
