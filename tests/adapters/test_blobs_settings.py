"""``[blobs]``: what people write there, where the key comes from, and where it never shows."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from adapters.blobs.files import FileBlobs
from adapters.blobs.s3 import S3Blobs
from adapters.cli.doctor.bucket import blobs
from adapters.cli.doctor.finding import Patient
from adapters.cli.replay.record import Part
from adapters.cli.replay.world import World
from adapters.cli.serving.stored import blobs_check, blobs_of
from adapters.settings import Settings, load_settings
from domain.errors import CredentialsRefused, InvalidInput, StoreUnavailable
from tests.forks import Ran, run_command
from tests.s3 import S3

KEY = {"MENDWORK_BLOBS__ACCESS_KEY": "canary-id-11", "MENDWORK_BLOBS__SECRET_KEY": "canary-secret-22"}
BUCKET = '[blobs]\nurl = "s3://mendwork-blobs/a/b"\n'


def load(folder: Path, text: str, **environment: str) -> Settings:
    (folder / "mendwork.toml").write_text(text)
    return load_settings(start=folder, environment=environment)


def test_without_the_section_blobs_are_files(tmp_path: Path) -> None:
    assert isinstance(blobs_of(load(tmp_path, "")), FileBlobs)


def test_a_bucket_is_opened_with_the_key_of_the_environment(tmp_path: Path) -> None:
    settings = load(tmp_path, BUCKET, **KEY)
    assert isinstance(blobs_of(settings), S3Blobs)
    assert settings.blobs.bucket == ("mendwork-blobs", "a/b")


def test_the_key_may_be_files_of_the_folder_of_secrets(tmp_path: Path) -> None:
    from adapters.settings.secrets import for_people

    for name, value in KEY.items():
        (tmp_path / name).write_text(value + "\n")
    environment = for_people({"MENDWORK_SECRETS": str(tmp_path)})
    assert load(tmp_path, BUCKET, **environment).blobs.secret_key.get_secret_value() == "canary-secret-22"


@pytest.mark.parametrize(
    ("url", "bucket"),
    [("s3://abc", ("abc", "")), ("s3://abc/", ("abc", "")), ("s3://a.b-c/x/y.z/", ("a.b-c", "x/y.z"))],
)
def test_the_prefix_has_no_slash_at_its_ends(tmp_path: Path, url: str, bucket: tuple[str, str]) -> None:
    assert load(tmp_path, f'[blobs]\nurl = "{url}"\n').blobs.bucket == bucket


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://abc",
            "s3://",
            "s3://ab",
            "s3://Upper",
            "s3://abc//x",
            "s3://abc/../x",
            "s3://abc/./x",
            "s3://abc?x",
        ),
        *("s3://id:canary@abc", "s3://abc/a b", "s3:/abc", "s3://abc/\\u0000"),
    ],
)
def test_what_is_no_bucket_is_refused_and_not_told(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput, match=r"blobs\.url: has to be a bucket") as told:
        load(tmp_path, f'[blobs]\nurl = "{url}"\n')
    assert "canary" not in str(told.value)


@pytest.mark.parametrize("endpoint", ["s3.example.org", "ftp://x", "http://id:canary@x", "http://x/path", "http://x?y"])
def test_what_is_no_server_is_refused_and_not_told(tmp_path: Path, endpoint: str) -> None:
    with pytest.raises(InvalidInput, match=r"blobs\.endpoint: has to be the address of a server") as told:
        load(tmp_path, f'{BUCKET}endpoint = "{endpoint}"\n')
    assert "canary" not in str(told.value)


def test_a_server_without_a_bucket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="blobs: url is missing"):
        load(tmp_path, '[blobs]\nendpoint = "http://127.0.0.1:9000"\n')


@pytest.mark.parametrize("key", ["access_key", "secret_key"])
def test_a_key_in_the_file_is_refused_and_not_told(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidInput, match=rf"blobs\.{key}: .*set MENDWORK_BLOBS__{key.upper()}") as told:
        load(tmp_path, f'{BUCKET}{key} = "canary-written"\n')
    assert "canary" not in str(told.value)


@pytest.mark.parametrize("given", KEY)
def test_half_a_key_is_refused_and_not_told(tmp_path: Path, given: str) -> None:
    with pytest.raises(InvalidInput, match="belong together, and one is missing") as told:
        load(tmp_path, BUCKET, **{given: "canary-half"})
    assert "canary" not in str(told.value)


def test_a_bucket_without_a_key_is_told_when_it_is_opened(tmp_path: Path) -> None:
    settings = load(tmp_path, BUCKET)
    with pytest.raises(CredentialsRefused, match=f"needs a key: set {' and '.join(KEY)}"):
        blobs_of(settings)


def test_a_bucket_without_a_key_ends_dev_before_anything_starts(tmp_path: Path) -> None:
    load(tmp_path, BUCKET)
    ran = mendwork(tmp_path, "dev", **dict.fromkeys(KEY, ""))
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("mendwork: s3://mendwork-blobs/a/b needs a key: set MENDWORK_BLOBS__ACCESS_KEY and ")


def test_the_key_is_in_no_text_of_the_settings(tmp_path: Path) -> None:
    settings = load(tmp_path, BUCKET, **KEY)
    shown = f"{settings} {settings!r} {settings.model_dump()} {settings.model_dump_json()} {blobs_of(settings)!r}"
    assert "canary" not in shown


def test_config_list_masks_the_key(tmp_path: Path) -> None:
    load(tmp_path, BUCKET)
    listed = mendwork(tmp_path, "config", "list", "--json", "--show-origin")
    assert listed.code == 0, listed.err
    assert "canary" not in listed.out + listed.err
    values = {each["key"]: each["value"] for each in json.loads(listed.out)}
    assert (values["blobs.url"], values["blobs.secret_key"]) == ("s3://mendwork-blobs/a/b", "***")


def test_a_replay_reads_the_bucket_and_writes_beside_itself(tmp_path: Path) -> None:
    text = f"{BUCKET}\n[projects.shop]\nrepository = '.'\ntest = 'true'\n"
    world = World(root=tmp_path / "world", original=load(tmp_path, text, **KEY))
    world.root.mkdir()
    part = cast(Part, SimpleNamespace(project="shop", build="build-shop-1"))
    assert isinstance(blobs_of(world.original), S3Blobs)
    assert isinstance(blobs_of(world.settings(part, address="127.0.0.1:1", live=False)), FileBlobs)
    assert "canary" not in (world.root / "mendwork.toml").read_text()


def mendwork(folder: Path, *arguments: str, **changes: str) -> Ran:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **KEY, **changes}
    return run_command(arguments, folder=folder, environment=environment)


class TestBeingSeen:
    async def test_blobs_that_can_be_read_are_ready(self, s3: S3, tmp_path: Path) -> None:
        for settings in (load(tmp_path, ""), load(tmp_path, s3.settings("seen"), **s3.environment)):
            await blobs_check(settings)["blobs"]()

    async def test_a_store_that_is_away_is_not_ready(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await blobs_check(load(tmp_path, BUCKET + 'endpoint = "http://127.0.0.1:9"\n', **KEY))["blobs"]()

    async def test_the_doctor_says_nothing_of_files(self, tmp_path: Path) -> None:
        assert await blobs(Patient(start=tmp_path, environment={}, settings=load(tmp_path, ""))) == []

    async def test_the_doctor_reads_the_bucket(self, s3: S3, tmp_path: Path) -> None:
        settings = load(tmp_path, s3.settings("seen"), **s3.environment)
        [found] = await blobs(Patient(start=tmp_path, environment={}, settings=settings))
        assert (found.state, found.cure) == ("ok", "")

    @pytest.mark.parametrize(
        ("key", "words"), [({}, "needs a key"), (KEY, "refuses the key of MENDWORK_BLOBS__ACCESS_KEY")]
    )
    async def test_the_doctor_says_why_it_cannot_be_read(
        self, s3: S3, tmp_path: Path, key: dict[str, str], words: str
    ) -> None:
        settings = load(tmp_path, s3.settings("seen"), **key)
        [found] = await blobs(Patient(start=tmp_path, environment={}, settings=settings))
        assert found.state == "broken"
        assert words in found.detail
        assert found.cure == "mendwork config get blobs --show-origin"

    async def test_the_doctor_waits_for_no_silent_store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("adapters.cli.doctor.bucket.PATIENCE", 0.2)
        silent: list[asyncio.StreamWriter] = []
        server = await asyncio.start_server(lambda reader, writer: silent.append(writer), "127.0.0.1", 0)
        try:
            endpoint = f'endpoint = "http://127.0.0.1:{server.sockets[0].getsockname()[1]}"\n'
            [found] = await blobs(
                Patient(start=tmp_path, environment={}, settings=load(tmp_path, BUCKET + endpoint, **KEY))
            )
        finally:
            server.close()
            for writer in silent:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
        assert (found.state, "no answer within 0.2 s" in found.detail) == ("broken", True)
