"""An S3 store that is away, dies, is slow, is full of other work or does not know us: what each is told as."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from adapters.blobs.bucket import Bucket
from adapters.blobs.connection import Connection
from adapters.blobs.refusals import AWAY_SECONDS
from adapters.blobs.s3 import S3Blobs
from domain.errors import (
    BlobMissing,
    CredentialsRefused,
    InvalidInput,
    MendworkError,
    Permanent,
    ResourceShort,
    StoreUnavailable,
    TooLarge,
)
from tests.adapters.s3_faults import Proxy, proxied, refusal
from tests.s3 import ACCESS, S3, SECRET, serving_s3

LARGE = b"0123456789abcdef" * 1_000_000
"""16 MB: more than all buffers between us and the server."""
NOWHERE = "0" * 64


@pytest.fixture
async def proxy(s3: S3) -> AsyncIterator[Proxy]:
    async with proxied(s3.port) as proxy:
        yield proxy


@pytest.fixture
def opened() -> Iterator[list[Connection]]:
    """Closed at the end."""
    connections: list[Connection] = []
    yield connections
    for connection in connections:
        connection.close()


def through(opened: list[Connection], bucket: Bucket, *, silence: float = 20.0) -> S3Blobs:
    opened.append(Connection(bucket, silence=silence))
    return S3Blobs(bucket, opened[-1])


async def failing(blobs: S3Blobs) -> list[MendworkError]:
    """What each of the four operations raises."""
    told = []
    for operation in (blobs.put(b"x"), blobs.get(NOWHERE), blobs.list(), blobs.remove(NOWHERE, before=1)):
        with pytest.raises(MendworkError) as raised:
            await operation
        told.append(raised.value)
    return told


class TestAnswers:
    @pytest.mark.parametrize(
        ("status", "code", "kind", "words"),
        [
            (503, "SlowDown", StoreUnavailable, "cannot serve now (SlowDown)"),
            (500, "InternalError", StoreUnavailable, "cannot serve now"),
            (502, "", StoreUnavailable, "cannot serve now"),
            (429, "TooManyRequests", StoreUnavailable, "cannot serve now"),
            (400, "RequestTimeout", StoreUnavailable, "cannot serve now"),
            (400, "BadDigest", StoreUnavailable, "cannot serve now"),
            (507, "XMinioStorageFull", ResourceShort, "has no room"),
            (403, "AccessDenied", CredentialsRefused, "refuses the key of MENDWORK_BLOBS__ACCESS_KEY (AccessDenied)"),
            (403, "RequestTimeTooSkewed", CredentialsRefused, "RequestTimeTooSkewed"),
            (401, "Unauthorized", CredentialsRefused, "refuses the key"),
            (404, "NoSuchBucket", InvalidInput, "no such bucket, see blobs.url"),
            (301, "PermanentRedirect", InvalidInput, "not in this region, see blobs.region"),
            (400, "AuthorizationHeaderMalformed", InvalidInput, "see blobs.region"),
            (400, "EntityTooLarge", TooLarge, "takes none that is so large"),
            (501, "NotImplemented", InvalidInput, "conditional writes"),
            (405, "MethodNotAllowed", InvalidInput, "see blobs.url and blobs.endpoint"),
        ],
    )
    async def test_a_refusal_is_classified_by_who_can_act_and_asked_once(
        self, s3: S3, proxy: Proxy, opened: list[Connection], status: int, code: str, kind: type, words: str
    ) -> None:
        proxy.answer = refusal(status, code)
        with pytest.raises(MendworkError) as told:
            await through(opened, s3.bucket(endpoint=proxy.endpoint)).put(b"x")
        assert type(told.value) is kind
        assert words in str(told.value)
        assert "canary" not in str(told.value)
        assert proxy.requests == 1, "Temporal tries again, the library does not"

    async def test_a_wait_that_the_store_asks_for_is_kept(self, s3: S3, proxy: Proxy, opened: list[Connection]) -> None:
        proxy.answer = refusal(503, "SlowDown", headers="Retry-After: 7\r\n")
        with pytest.raises(StoreUnavailable) as told:
            await through(opened, s3.bucket(endpoint=proxy.endpoint)).put(b"x")
        assert told.value.retry_after == 7.0

    async def test_a_web_server_that_is_no_store_is_not_taken_for_an_empty_one(
        self, s3: S3, proxy: Proxy, opened: list[Connection]
    ) -> None:
        proxy.answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\nConnection: close\r\n\r\nnot found"
        with pytest.raises(InvalidInput, match=r"blobs\.endpoint"):
            await through(opened, s3.bucket(endpoint=proxy.endpoint)).get(NOWHERE)

    async def test_garbage_is_a_store_that_is_away(self, s3: S3, proxy: Proxy, opened: list[Connection]) -> None:
        proxy.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n<not-xml>"
        with pytest.raises(StoreUnavailable):
            await through(opened, s3.bucket(endpoint=proxy.endpoint)).list()


class TestTheRealServer:
    async def test_a_bucket_that_is_not_there(self, s3: S3, opened: list[Connection]) -> None:
        blobs = through(opened, s3.bucket(name="elsewhere"))
        for operation in (blobs.put(b"x"), blobs.get(NOWHERE), blobs.list()):
            with pytest.raises(InvalidInput, match=r"s3://elsewhere at .* no such bucket, see blobs\.url"):
                await operation

    @pytest.mark.parametrize("wrong", [{"secret_key": "canary-wrong-1b"}, {"access_key": "canary-nobody-2c"}])
    async def test_a_wrong_key_is_one_sentence_that_names_its_variable(
        self, s3: S3, opened: list[Connection], wrong: dict[str, str]
    ) -> None:
        for told in await failing(through(opened, s3.bucket(**wrong))):
            assert isinstance(told, CredentialsRefused)
            assert isinstance(told, Permanent), "nobody tries again"
            assert "refuses the key of MENDWORK_BLOBS__ACCESS_KEY" in str(told)
            assert "canary" not in str(told)

    async def test_another_region(self, s3: S3, opened: list[Connection]) -> None:
        with pytest.raises(InvalidInput, match=r"see blobs\.region"):
            await through(opened, s3.bucket(region="eu-central-1")).put(b"x")


class TestConnections:
    async def test_nobody_there_is_a_store_that_is_away(self, s3: S3, opened: list[Connection]) -> None:
        for told in await failing(through(opened, s3.bucket(endpoint="http://127.0.0.1:9"))):
            assert isinstance(told, StoreUnavailable)
            assert "cannot be reached" in str(told)
            assert told.retry_after == AWAY_SECONDS

    async def test_a_store_that_is_silent_is_given_up(self, s3: S3, proxy: Proxy, opened: list[Connection]) -> None:
        proxy.silent = True
        blobs = through(opened, s3.bucket(endpoint=proxy.endpoint), silence=0.3)
        with pytest.raises(StoreUnavailable, match="went silent"):
            await blobs.get(NOWHERE)
        assert proxy.requests == 1

    async def test_a_connection_that_was_idle_too_long_is_no_outage(
        self, s3: S3, proxy: Proxy, opened: list[Connection]
    ) -> None:
        """The store closes it in the same instant as we use it again."""
        digest = await through(opened, s3.bucket("idle")).put(b"idle")
        proxy.once = True
        blobs = through(opened, s3.bucket("idle", endpoint=proxy.endpoint))
        for _ in range(3):
            assert await blobs.get(digest) == b"idle"

    async def test_an_upload_may_take_longer_than_silence(self, s3: S3, proxy: Proxy, opened: list[Connection]) -> None:
        proxy.answer, proxy.body = refusal(507, "InsufficientStorage"), len(LARGE)
        blobs = through(opened, s3.bucket(endpoint=proxy.endpoint), silence=1.0)
        began = asyncio.get_running_loop().time()
        with pytest.raises(MendworkError) as told:
            await blobs.put(LARGE)
        assert asyncio.get_running_loop().time() - began > 1.5
        assert "InsufficientStorage" in str(told.value)

    @pytest.mark.parametrize("down", [10, 1_000_000])
    async def test_an_answer_that_breaks_off_is_never_taken_for_a_blob(
        self, s3: S3, proxy: Proxy, opened: list[Connection], down: int
    ) -> None:
        digest = await through(opened, s3.bucket("breaking")).put(LARGE)
        proxy.down = down
        blobs = through(opened, s3.bucket("breaking", endpoint=proxy.endpoint))
        with pytest.raises(StoreUnavailable, match="broke off"):
            await blobs.get(digest)
        proxy.down = None
        assert await blobs.get(digest) == LARGE

    async def test_an_upload_that_breaks_off_leaves_nothing(
        self, s3: S3, proxy: Proxy, opened: list[Connection]
    ) -> None:
        proxy.up = 4_000_000
        blobs = through(opened, s3.bucket("cut", endpoint=proxy.endpoint))
        with pytest.raises(StoreUnavailable):
            await blobs.put(LARGE)
        assert s3.blobs("cut") == set()
        proxy.up = None
        digest = await blobs.put(LARGE)
        assert s3.blobs("cut") == {digest}


class TestDeaths:
    async def test_a_server_killed_in_the_middle_of_an_upload_comes_back_without_it(
        self, opened: list[Connection]
    ) -> None:
        with serving_s3() as s3:
            async with proxied(s3.port) as proxy:
                proxy.up, proxy.stall = 4_000_000, True
                blobs = through(opened, s3.bucket(endpoint=proxy.endpoint))
                kept = await through(opened, s3.bucket()).put(b"kept")
                upload = asyncio.create_task(blobs.put(LARGE))
                await proxy.stalled.wait()
                s3.kill()
                with pytest.raises(StoreUnavailable):
                    await upload
                with pytest.raises(StoreUnavailable):
                    await blobs.get(kept)
                await asyncio.to_thread(s3.start)
                assert s3.blobs() == {kept}
                proxy.up = None
                assert await blobs.get(kept) == b"kept"
                assert await blobs.get(await blobs.put(LARGE)) == LARGE

    async def test_a_writer_killed_in_the_middle_leaves_whole_blobs_only(
        self, s3: S3, proxy: Proxy, opened: list[Connection]
    ) -> None:
        proxy.up, proxy.stall = 4_000_000, True
        argv = (sys.executable, "-c", WRITER, proxy.endpoint, ACCESS, SECRET)
        writer = await asyncio.create_subprocess_exec(*argv)
        try:
            async with asyncio.timeout(60):
                await proxy.stalled.wait()
        finally:
            writer.kill()
            await writer.wait()
        blobs = through(opened, s3.bucket("killed"))
        [small] = await blobs.list()
        assert s3.blobs("killed") == {small.digest}
        assert await blobs.get(small.digest) == b"small"


WRITER = """
import asyncio, sys
from adapters.blobs import open_blobs
from adapters.blobs.bucket import Bucket

async def main():
    endpoint, access, secret = sys.argv[1:]
    blobs = open_blobs(Bucket(name="blobs", prefix="killed", endpoint=endpoint, access_key=access, secret_key=secret))
    await blobs.put(b"small")
    await blobs.put(b"large, " * 4_000_000)

asyncio.run(main())
"""

ALONE = """
import asyncio, sys
asked = set()
sys.addaudithook(lambda event, args: asked.add(str(args[1])) if event == "socket.connect" else None)
sys.addaudithook(lambda event, args: asked.add(str(args[0])) if event == "socket.getaddrinfo" else None)
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
from adapters.blobs import open_blobs
from adapters.blobs.bucket import Bucket

endpoint, access, secret = sys.argv[1:]
blobs = open_blobs(Bucket(name="blobs", prefix="alone", endpoint=endpoint, access_key=access, secret_key=secret))
asyncio.run(blobs.put(b"alone"))
print(sorted(asked))
print([name for name in opened if "/.aws" in name or "aws-config" in name])
"""


def test_what_a_person_told_other_programs_about_amazon_is_not_looked_at(s3: S3, tmp_path: Path) -> None:
    """Keys, profiles, endpoints and proxies of the environment and of the home folder; no metadata service is asked."""
    (tmp_path / ".aws").mkdir()
    for name in ("config", "credentials"):
        (tmp_path / ".aws" / name).write_text("[default]\naws_access_key_id = other\naws_secret_access_key = other\n")
    (tmp_path / "aws-config").write_text("[default]\nendpoint_url = http://127.0.0.1:9\n")
    misleading = {
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": "other",
        "AWS_SECRET_ACCESS_KEY": "other",
        "AWS_PROFILE": "nobody",
        "AWS_CONFIG_FILE": str(tmp_path / "aws-config"),
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_DEFAULT_REGION": "eu-west-3",
        "AWS_USE_FIPS_ENDPOINT": "true",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }
    ran = subprocess.run(
        [sys.executable, "-c", ALONE, s3.endpoint, ACCESS, SECRET],
        env={"PATH": os.environ["PATH"], **misleading},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    asked, read = ran.stdout.splitlines()
    assert asked == str(sorted({"127.0.0.1", str(("127.0.0.1", s3.port))}))
    assert read == "[]"


async def test_amazons_own_address_is_that_of_the_region(
    opened: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    opened.append(Connection(Bucket(name="b", region="eu-central-1", access_key="a", secret_key="b")))
    assert await opened[-1].run(lambda client: client.meta.endpoint_url) == "https://s3.eu-central-1.amazonaws.com"


async def test_a_missing_blob_costs_no_more_than_one_request(s3: S3, proxy: Proxy, opened: list[Connection]) -> None:
    with suppress(BlobMissing):
        await through(opened, s3.bucket(endpoint=proxy.endpoint)).get(NOWHERE)
    assert proxy.most_open == 1
