"""What a probe and a scrape get from a worker: over real sockets, also from clients that do not behave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator

import pytest

from adapters.telemetry.endpoint import Pages, serving
from adapters.telemetry.health import Check, examine
from domain.errors import StoreUnavailable


async def fine() -> None:
    """A subsystem that is there."""


async def away() -> None:
    raise StoreUnavailable("the store does not answer")


async def careless() -> None:
    raise RuntimeError("postgresql://mendwork:hunter2@db/mendwork refused")


async def hangs() -> None:
    await asyncio.sleep(3_600)


async def ask(url: str, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to raw bytes; status 0 where the connection just ends."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(request)
            await writer.drain()
            raw = await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return (int(first.split()[1]) if first else 0), headers, body


async def get(url: str, path: str) -> tuple[int, dict[str, str], bytes]:
    return await ask(url, f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())


@pytest.fixture
def checks() -> dict[str, Check]:
    return {"temporal": fine, "store": fine}


@pytest.fixture
async def url(checks: dict[str, Check]) -> AsyncIterator[str]:
    async with serving(Pages(checks=checks, exposition=lambda: b"up 1\n"), host="127.0.0.1", port=0) as url:
        yield url


async def test_a_worker_that_has_all_is_ready_with_an_entry_for_each(url: str) -> None:
    status, headers, body = await get(url, "/readyz")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body) == {"ready": True, "subsystems": {"temporal": {"ready": True}, "store": {"ready": True}}}


async def test_one_subsystem_that_is_away_makes_it_not_ready_and_says_which(url: str, checks: dict[str, Check]) -> None:
    checks["store"] = away
    status, _, body = await get(url, "/readyz")
    assert status == 503
    subsystems = json.loads(body)["subsystems"]
    assert subsystems["temporal"] == {"ready": True}
    assert subsystems["store"] == {"ready": False, "why": "the store does not answer"}
    assert (await get(url, "/livez"))[0] == 200, "it lives all the same: a restart would not help"
    checks["store"] = fine
    assert (await get(url, "/readyz"))[0] == 200


async def test_what_hangs_is_not_waited_for() -> None:
    wrong = await examine({"store": hangs, "temporal": fine}, patience=0.05)
    assert wrong == {"store": "no answer within 0.05 s", "temporal": ""}


async def test_the_text_of_somebody_elses_error_is_not_shown() -> None:
    assert await examine({"store": careless}) == {"store": "RuntimeError"}


async def test_a_scrape_gets_the_exposition_in_prometheus_own_type(url: str) -> None:
    status, headers, body = await get(url, "/metrics?x=1")
    assert (status, body) == (200, b"up 1\n")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [("GET / HTTP/1.1", 404), ("GET /metrics/../etc HTTP/1.1", 404), ("POST /livez HTTP/1.1", 405)],
)
async def test_what_is_no_page_is_refused(url: str, request_line: str, status: int) -> None:
    assert (await ask(url, f"{request_line}\r\n\r\n".encode()))[0] == status


async def test_head_has_no_body(url: str) -> None:
    status, headers, body = await ask(url, b"HEAD /livez HTTP/1.1\r\n\r\n")
    assert (status, headers["content-length"], body) == (200, "6", b"")


@pytest.mark.parametrize(
    "junk", [b"\r\n", b"\x16\x03\x01\x02\n", b"GET\n", b"x" * 40_000 + b"\n", b"GET / H\n" + b"a" * 40_000]
)
async def test_junk_ends_its_connection_and_nothing_else(url: str, junk: bytes) -> None:
    with contextlib.suppress(ConnectionResetError):  # where the rest of the junk was not read
        assert (await ask(url, junk))[0] == 0
    assert (await get(url, "/livez"))[0] == 200


async def test_a_client_that_says_nothing_keeps_nobody_waiting(url: str) -> None:
    host, _, port = url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port))):
        assert (await get(url, "/livez"))[0] == 200


async def test_a_port_that_is_taken_is_said_and_a_free_one_taken(caplog: pytest.LogCaptureFixture, url: str) -> None:
    taken = int(url.rpartition(":")[2])
    async with serving(Pages(checks={}, exposition=bytes), host="127.0.0.1", port=taken) as other:
        assert other != url
        assert (await get(other, "/livez"))[0] == 200
    assert f"port {taken}" in caplog.text


async def test_a_host_that_is_not_ours_is_an_error() -> None:
    with pytest.raises(OSError, match=r"192\.0\.2\.1"):
        async with serving(Pages(checks={}, exposition=bytes), host="192.0.2.1", port=0):
            pass
