"""bubblewrap's way to hosts: what it shows and keeps, its proxy, the names and addresses that pass."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.compliance.sandbox import PYTHON
from adapters.compliance.setups.sandbox import EgressCompliance, ShownCompliance
from adapters.sandbox import open_sandbox
from adapters.sandbox.toolchain import default_toolchain
from adapters.sandbox.ways.hosts import Hosts, is_closed, parsed
from adapters.sandbox.ways.proxy import Proxy, proxied
from adapters.sandbox.ways.upstream import Upstream, upstream_of
from domain.errors import InvalidInput
from domain.ports.sandbox import Egress, Sandbox


@pytest.fixture
def sandbox() -> Sandbox:
    return open_sandbox("bubblewrap", {})


class _Here:
    @pytest.fixture
    def toolchain(self) -> tuple[Path, ...]:
        return default_toolchain((PYTHON,), "")


class TestBubblewrapShows(_Here, ShownCompliance):
    pass


class TestBubblewrapWithHosts(_Here, EgressCompliance):
    pass


# Names and addresses.


@pytest.mark.parametrize(
    ("authority", "host"),
    [("pypi.org:443", ("pypi.org", 443)), ("PyPI.org.:443", ("pypi.org", 443)), ("a_b.c-d:1", ("a_b.c-d", 1))],
)
def test_a_name_with_its_port_is_taken(authority: str, host: tuple[str, int]) -> None:
    assert parsed(authority) == host


@pytest.mark.parametrize(
    "authority",
    [
        *("127.0.0.1:443", "127.1:443", "2130706433:443", "0x7f000001:443", "0x7f.1:443", "[::1]:443", "::1"),
        *("pypi.org", "pypi.org:", "pypi.org:0", "pypi.org:65536", "pypi.org:٤٤٣", "pypi.org:-1", ":443", "a b:1"),
        *("user@pypi.org:443", "pypi.org/x:443", "evil.org#pypi.org:443", "pypi..org:443", "-a.org:443", "a\0b:1"),
        "pypi.org:443:443",
    ],
)
def test_what_is_no_name_of_a_host_is_refused(authority: str) -> None:
    with pytest.raises(ValueError, match="no "):
        parsed(authority)


@given(st.text(max_size=40), st.integers(0, 70_000))
def test_what_is_taken_is_a_name_and_a_port(name: str, port: int) -> None:
    try:
        found, number = parsed(f"{name}:{port}")
    except ValueError:
        return
    assert found.isascii()
    assert not set(found) - set("abcdefghijklmnopqrstuvwxyz0123456789-_.")
    assert 1 <= number <= 65_535


@pytest.mark.parametrize(
    ("name", "port", "plain", "passes"),
    [
        ("pypi.org", 443, False, True),
        ("pypi.org", 443, True, False),
        ("pypi.org", 80, True, False),
        ("pypi.org", 8443, False, False),
        ("sub.pypi.org", 443, False, False),
        ("own.org", 80, True, True),
        ("own.org", 443, False, False),
    ],
)
def test_only_what_is_listed_passes(name: str, port: int, plain: bool, passes: bool) -> None:
    assert Hosts(("pypi.org", "own.org:80")).allows(name, port, plain=plain) is passes


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.9.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("0.1.2.3", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1%eth0", "fd00::1", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::"),
    ],
)
def test_an_address_of_this_machine_or_a_private_network_is_closed(address: str) -> None:
    assert is_closed(address)
    assert not Hosts(("pypi.org",)).opens("pypi.org", 443, address)
    assert Hosts(("own.lan:443",)).opens("own.lan", 443, address)


@pytest.mark.parametrize("address", ["151.101.0.223", "2a04:4e42::223", "::ffff:151.101.0.223", "172.32.0.1"])
def test_an_address_of_the_world_is_open(address: str) -> None:
    assert not is_closed(address)


# The proxy alone.

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[int]:
    """A service of this machine, in this loop."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends back what comes."""
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


async def say(path: Path, sent: bytes, *, end: bool = True) -> bytes:
    """All that the proxy answers."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(sent)
        if end:
            writer.write_eof()
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()


async def test_a_tunnel_carries_both_ways_to_their_ends(tmp_path: Path) -> None:
    async with listening(echo) as port:
        egress = Egress(hosts=(f"localhost:{port}",), socket=tmp_path / "s")
        async with proxied(egress, None) as proxy:
            sent = f"CONNECT LOCALHOST:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            answer = await say(tmp_path / "s", sent + b"x" * 300_000)
        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n" + b"x" * 300_000
        assert proxy.refused == set()
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("request_line", "status", "refused"),
    [
        (b"CONNECT example.org:443 HTTP/1.1", b"403", {"example.org:443"}),
        (b"CONNECT 169.254.169.254:80 HTTP/1.1", b"403", {"169.254.169.254:80"}),
        (b"CONNECT \xff\x1b[2J:443 HTTP/1.1", b"403", {"??[2j:443"}),
        (b"POST http://localhost:1/ HTTP/1.1", b"405", set()),
        (b"GET http://user@localhost:1/ HTTP/1.1", b"405", set()),
        (b"GET /relative HTTP/1.1", b"405", set()),
        (b"GET http://example.org/ HTTP/1.1", b"403", {"example.org:80"}),
        (b"GET http://[bad/ HTTP/1.1", b"405", set()),
        (b"\x16\x03\x01 nonsense", b"400", set()),
        (b"CONNECT localhost:1 HTTP/1.1", b"502", set()),
    ],
)
async def test_what_may_not_pass_is_answered_with_why(
    tmp_path: Path, request_line: bytes, status: bytes, refused: set[str]
) -> None:
    async with proxied(Egress(hosts=("localhost:1",), socket=tmp_path / "s"), None) as proxy:
        answer = await say(tmp_path / "s", request_line + b"\r\n\r\n")
    assert answer.split()[1] == status
    assert {each.lower() for each in proxy.refused} == refused


async def test_a_name_that_leads_to_this_machine_is_refused_after_it_was_looked_up(tmp_path: Path) -> None:
    async with proxied(Egress(hosts=("localhost",), socket=tmp_path / "s"), None) as proxy:
        answer = await say(tmp_path / "s", b"CONNECT localhost:443 HTTP/1.1\r\n\r\n")
    assert b"is in a private network: name it with its port" in answer
    assert proxy.refused == {"localhost:443"}


async def test_a_request_without_an_end_and_a_flood_of_names_are_bounded(tmp_path: Path) -> None:
    async with proxied(Egress(hosts=(), socket=tmp_path / "s"), None) as proxy:
        with contextlib.suppress(ConnectionError):
            assert await say(tmp_path / "s", b"CONNECT " + b"x" * 200_000, end=False) == b""
        for number in range(60):
            await say(tmp_path / "s", f"CONNECT h{number}.org:443 HTTP/1.1\r\n\r\n".encode())
    assert len(proxy.refused) == 50


async def test_only_the_first_request_of_a_plain_connection_passes(tmp_path: Path) -> None:
    heard = bytearray()

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    async with listening(server) as port, proxied(Egress(hosts=(f"localhost:{port}",), socket=tmp_path / "s"), None):
        first = (
            f"GET http://localhost:{port}/a HTTP/1.1\r\nHost: evil.org\r\nProxy-Authorization: x\r\nAccept: y\r\n\r\n"
        )
        answer = await say(tmp_path / "s", first.encode() + b"GET http://evil.org/ HTTP/1.1\r\n\r\n")
        assert answer.endswith(b"ok")
        assert heard.decode().split("\r\n")[:-2] == [
            "GET /a HTTP/1.1", f"Host: localhost:{port}", "Connection: close", "Accept: y"]  # fmt: skip


async def test_a_run_cannot_move_more_bytes_than_it_may(tmp_path: Path) -> None:

    ours, theirs = socket.socketpair()
    async with listening(echo) as port:
        proxy = Proxy((f"localhost:{port}",), most_bytes=1_000_000)
        proxy.accept(*await asyncio.open_connection(sock=theirs))
        reader, writer = await asyncio.open_connection(sock=ours)
        writer.write(f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(bytes(3_000_000))
        with pytest.raises(ConnectionError):
            await reader.read()
        writer.transport.abort()
        await proxy.end()


# The proxy of the machine itself.


async def test_connections_go_through_the_machines_own_proxy_which_resolves_the_name(tmp_path: Path) -> None:
    heard = bytearray()

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello from afar")
        writer.close()

    async with listening(upstream) as port:
        through = upstream_of({"https_proxy": f"http://me:p%40ss@127.0.0.1:{port}"})
        async with proxied(Egress(hosts=("no-such-name.invalid",), socket=tmp_path / "s"), through) as proxy:
            answer = await say(tmp_path / "s", b"CONNECT no-such-name.invalid:443 HTTP/1.1\r\n\r\n")
            refused = await say(tmp_path / "s", b"CONNECT other.invalid:443 HTTP/1.1\r\n\r\n")
    assert answer.endswith(b"hello from afar")
    assert refused.startswith(b"HTTP/1.1 403")
    assert proxy.refused == {"other.invalid:443"}
    assert heard.startswith(b"CONNECT no-such-name.invalid:443 HTTP/1.1\r\n")
    assert base64.b64encode(b"me:p@ss") in heard


def test_no_proxy_spares_names_and_what_is_below_them() -> None:
    through = upstream_of({"HTTPS_PROXY": "proxy.corp:3128", "NO_PROXY": "a.corp, .b.corp,*.c.corp"})
    assert through is not None
    assert (through.host, through.port) == ("proxy.corp", 3128)
    spared = ("a.corp", "x.a.corp", "x.b.corp", "y.c.corp", "localhost")
    assert [name for name in (*spared, "pypi.org", "nota.corp") if through.carries(name, 443)] == [
        "pypi.org",
        "nota.corp",
    ]
    assert upstream_of({}) is None
    assert not Upstream(host="p", port=1, spared="*").carries("pypi.org", 443)


@pytest.mark.parametrize("url", ["https://u:secret@p:1", "socks5://u:secret@p:1", "http://u:secret@p:notaport"])
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        upstream_of({"HTTPS_PROXY": url})
    assert "secret" not in str(refused.value)
