"""Secrets come from files, each class of worker reads its own alone, and none is ever told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import make_url

from adapters.cli.config.listing import show_all
from adapters.cli.serving.secrets import class_environment
from adapters.settings import load_settings
from adapters.settings.secrets import MOST_BYTES, for_people, with_password, with_secrets
from adapters.temporal.environment import DEPLOY, WORKERS
from domain.errors import InvalidInput
from tests.e2e.workshop import MENDWORK

CANARY = "canary-9d2e"
CLASSES = (*WORKERS, DEPLOY)
FILE = """
store = "postgresql://mendwork@db:5432/mendwork"

[models.fast]
model = "openai/gpt-x"
api_key_env = "FAST_KEY"

[projects.shop]
repository = "shop"
test = "true"

[projects.shop.delivery]
target = "local"
run = "python3 app.py"
health = "/ok"
secrets = ["SHOP_TOKEN"]
"""
HELD = {
    "FAST_KEY": {"model"},
    "SHOP_TOKEN": {"deploy"},
    "MENDWORK_STORE_PASSWORD": {"saga", "model"},
    "MENDWORK_BLOBS__ACCESS_KEY": set(CLASSES),
    "MENDWORK_BLOBS__SECRET_KEY": set(CLASSES),
    "OPENAI_API_KEY": {"model"},
    "TEMPORAL_API_KEY": set(CLASSES),
    "SSH_PRIVATE_KEY": set(),
}


def secrets_in(folder: Path, **contents: str) -> dict[str, str]:
    """The environment that names a folder with such files."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(content)
    return {"MENDWORK_SECRETS": str(folder)}


def everything(environment: dict[str, str]) -> dict[str, str]:
    return with_secrets(environment, wanted=lambda names: names)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "mendwork.toml").write_text(FILE)
    return tmp_path


class TestClasses:
    @pytest.mark.parametrize("worker", CLASSES)
    def test_a_worker_gets_the_secrets_of_its_class_and_no_other(self, root: Path, worker: str) -> None:
        given = secrets_in(root / "secrets", **{name: f"{CANARY}-{name}\n" for name in HELD})
        got = class_environment(worker, load_settings(start=root, environment={}), given)
        assert {name for name in HELD if name in got} == {name for name, classes in HELD.items() if worker in classes}
        assert all(got[name] == f"{CANARY}-{name}" for name in HELD if name in got), "without the line's end"

    @pytest.mark.parametrize("worker", CLASSES)
    def test_the_files_of_other_classes_are_not_even_opened(self, root: Path, worker: str) -> None:
        """What cannot be read would be told if anybody tried."""
        given = secrets_in(root / "secrets")
        for name, classes in HELD.items():
            content = CANARY.encode() if worker in classes else b"\xff\xfe"
            (root / "secrets" / name).write_bytes(content)
        got = class_environment(worker, load_settings(start=root, environment={}), given)
        assert sum(value == CANARY for value in got.values()) == sum(worker in classes for classes in HELD.values())

    def test_people_read_the_store_and_no_key_of_a_provider(self, root: Path) -> None:
        got = for_people(secrets_in(root / "secrets", **dict.fromkeys([*HELD, "MENDWORK_LLM_API_KEY"], CANARY)))
        own = {"MENDWORK_STORE_PASSWORD", "MENDWORK_BLOBS__ACCESS_KEY", "MENDWORK_BLOBS__SECRET_KEY"}
        assert {name for name, value in got.items() if value == CANARY} == {*own, "TEMPORAL_API_KEY"}

    def test_a_worker_process_connects_with_the_password_of_the_file_and_tells_it_nobody(self, root: Path) -> None:
        """The saga worker reads its store's URL and fails at one that is not there, naming it masked."""
        (root / "mendwork.toml").write_text(FILE.replace("@db:5432", "@127.0.0.1:9"))
        given = secrets_in(root / "secrets", MENDWORK_STORE_PASSWORD=CANARY)
        done = subprocess.run(
            [*MENDWORK[:2], "-m", "worker", "saga"],
            cwd=root,
            env={"PATH": os.environ["PATH"], "HOME": str(root), **given},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert "mendwork:***@127.0.0.1:9" in done.stderr, done.stderr
        assert CANARY not in done.stdout + done.stderr


class TestFiles:
    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (b"", "is empty"),
            (b"\r\n", "is empty"),
            (b"\xff" + CANARY.encode(), "is no UTF-8 text"),
            (CANARY.encode() * MOST_BYTES, "too large"),
            (CANARY.encode() + b"\0", "no secret"),
        ],
    )
    def test_what_is_no_secret_is_a_sentence_without_its_content(
        self, tmp_path: Path, content: bytes, why: str
    ) -> None:
        given = secrets_in(tmp_path / "secrets")
        (tmp_path / "secrets" / "FAST_KEY").write_bytes(content)
        with pytest.raises(InvalidInput, match=why) as caught:
            everything(given)
        assert CANARY not in str(caught.value)
        assert str(tmp_path / "secrets" / "FAST_KEY") in str(caught.value)

    def test_a_secret_that_is_given_twice_is_refused(self, tmp_path: Path) -> None:
        given = secrets_in(tmp_path / "secrets", FAST_KEY=CANARY)
        with pytest.raises(InvalidInput, match="FAST_KEY is given twice") as caught:
            everything({**given, "FAST_KEY": "another"})
        assert CANARY not in str(caught.value)

    def test_a_folder_that_is_not_there_is_a_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match=r"MENDWORK_SECRETS names .*/none, which cannot be read: No such file"):
            everything({"MENDWORK_SECRETS": str(tmp_path / "none")})

    def test_what_kubernetes_lays_beside_the_files_is_passed_over(self, tmp_path: Path) -> None:
        given = secrets_in(tmp_path / "secrets", FAST_KEY=CANARY)
        (tmp_path / "secrets" / "..data").mkdir()
        (tmp_path / "secrets" / "notes.txt").write_text("x")
        assert everything(given) == {**given, "FAST_KEY": CANARY}

    def test_without_a_folder_nothing_changes(self) -> None:
        assert everything({"A": "b"}) == {"A": "b"}


class TestStorePassword:
    @given(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1))
    def test_any_password_comes_out_of_the_url_as_it_went_in(self, password: str) -> None:
        url = with_password("postgresql+psycopg://mendwork@db:5432/mendwork?sslmode=require", password)
        read = make_url(url)
        assert (read.password, read.username, read.host, read.port) == (password, "mendwork", "db", 5432)
        assert (read.database, dict(read.query)) == ("mendwork", {"sslmode": "require"})

    @pytest.mark.parametrize(
        ("store", "why"),
        [
            ("", "is for a store on PostgreSQL"),
            ("sqlite+aiosqlite:////x.db", "is for a store on PostgreSQL"),
            ("postgresql://db/mendwork", "names no user"),
            (f"postgresql://u:{CANARY}@db/mendwork", "has one already"),
        ],
    )
    def test_a_password_that_has_no_place_is_told_when_the_configuration_is_read(
        self, tmp_path: Path, store: str, why: str
    ) -> None:
        (tmp_path / "mendwork.toml").write_text(f'store = "{store}"\n')
        with pytest.raises(InvalidInput, match=why) as caught:
            load_settings(start=tmp_path, environment={"MENDWORK_STORE_PASSWORD": CANARY})
        assert CANARY not in str(caught.value)

    def test_a_password_in_the_file_is_refused_without_repeating_it(self, root: Path) -> None:
        (root / "mendwork.toml").write_text(f'store_password = "{CANARY}"\n' + FILE)
        with pytest.raises(InvalidInput, match="store_password: has no place here") as caught:
            load_settings(start=root, environment={})
        assert CANARY not in str(caught.value)

    async def test_the_configuration_is_shown_without_it(self, root: Path, capsys: Any) -> None:
        given = for_people(secrets_in(root / "secrets", MENDWORK_STORE_PASSWORD=CANARY))
        assert await show_all(start=root, environment=given, show_origin=True, json=True) == 0
        shown = {each["key"]: each for each in json.loads(capsys.readouterr().out)}
        assert shown["store"]["value"] == "postgresql://mendwork:***@db:5432/mendwork"
        assert (shown["store_password"]["value"], shown["store_password"]["origin"]) == (
            "***",
            "MENDWORK_STORE_PASSWORD",
        )
        assert CANARY not in repr(load_settings(start=root, environment=given))
