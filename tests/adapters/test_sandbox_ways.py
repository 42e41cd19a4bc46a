"""What is bubblewrap's own about the ways out of a run: what it needs of the machine, its relay, its bounds."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.compliance.delivery.sandbox_ways import free_port, serving
from adapters.compliance.sandbox import Bench, until
from adapters.sandbox.arguments import PROGRAMS
from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.trial import open_network
from adapters.sandbox.ways.relay import Relay, relayed
from domain.errors import IsolationMissing, ResourceShort
from domain.ports.sandbox import Collect, Outlet, SandboxRun

ROOT = Path(__file__).parents[2]
# Drops to an ordinary user when it is root, then asks a port of the host from a run, and takes a folder out of it.
AS_USER = """
import asyncio, encodings.idna, os, signal, subprocess, sys, concurrent.futures.thread
from pathlib import Path
from adapters.sandbox.bubblewrap import Bubblewrap
from domain.ports.sandbox import Collect, Outlet, SandboxRun
folder, label, port = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
ask = f"import http.client; c = http.client.HTTPConnection('127.0.0.1', {port}); c.request('GET', '/hello')"
argv = ("sh", "-c", f'python3 -c "{ask}; print(c.getresponse().read())"; mkdir out; echo x > out/a')
run = SandboxRun(label=label, argv=argv, folder=folder / "in", log=folder / "log",
                 outlet=Outlet(port=port, socket=folder / "s"),
                 collect=Collect(folder="out", into=folder / "tar", most_bytes=100_000),
                 allow_missing=frozenset({"memory", "pids"}))
result = asyncio.run(Bubblewrap().run(run))
print(result.reached, result.collected, (folder / "log").read_text())
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "checkout").mkdir()
    sandbox = Bubblewrap()
    template = SandboxRun(
        label=f"test-{uuid4().hex}",
        argv=("true",),
        folder=tmp_path / "checkout",
        log=tmp_path / "run.log",
        seconds=20,
        scratch_bytes=20_000_000,
        allow_missing=frozenset(sandbox.missing()) - {"engine", "network"},
    )
    return Bench(sandbox=sandbox, template=template)


def programs(folder: Path, *, without: str = "", **own: str) -> str:
    """A PATH with links to the real programs, and scripts of the test's own instead of some."""
    for name in {*PROGRAMS, "sh", "haproxy"} - {without}:
        script = own.get(name)
        if script:
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
        else:
            real = subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True, text=True, check=True)
            (folder / name).symlink_to(real.stdout.strip())
    folder.chmod(0o755)
    return str(folder)


@pytest.fixture
def open_bench(bench: Bench) -> Iterator[Bench]:
    """A bubblewrap that shares the host's network whatever it is told."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        shares = '#!/bin/sh\nfirst=$1; shift; exec -a bwrap /usr/bin/bwrap "$first" --share-net "$@"\n'
        path = programs(Path(name), bwrap=shares.replace("/bin/sh", "/bin/bash"))
        yield replace(bench, sandbox=Bubblewrap(path=path))


def test_a_closed_network_is_proven_by_trying() -> None:
    assert "network" not in Bubblewrap().missing()


async def test_a_bubblewrap_that_leaves_the_network_open_is_refused(open_bench: Bench) -> None:
    assert open_bench.sandbox.missing()["network"].startswith("bubblewrap does not close the network here")
    for _ in range(2):  # also when it has been found out
        with pytest.raises(IsolationMissing, match="shares this machine's network"):
            await open_bench.run("true")


async def test_an_open_network_can_be_accepted_where_the_caller_may(open_bench: Bench) -> None:
    allowed = open_bench.template.allow_missing | {"network"}
    assert (await open_bench.run("echo", "ran", allow_missing=allowed)).log == "ran\n"


@pytest.mark.parametrize(
    ("seen", "hole"),
    [
        ("net:[2]\n head |\n    lo: 0 0\n", ""),
        ("net:[1]\n head |\n    lo: 0 0\n", "shares"),
        ("net:[2]\n    lo: 0 0\n  eth0: 0 0\n", "eth0"),
        ("net:[2]\n", "nobody can list"),
        ("", "shares"),
        ("readlink: refused\n", "shares"),
    ],
)
def test_only_a_namespace_of_its_own_with_loopback_alone_is_closed(seen: str, hole: str) -> None:
    found = open_network(seen, ours="net:[1]")
    assert hole in found
    assert bool(hole) == bool(found)


async def test_without_haproxy_a_way_out_is_refused_with_the_command_that_installs_it(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    lacking = replace(bench, sandbox=Bubblewrap(path=programs(tmp_path / "bin", without="haproxy")))
    with pytest.raises(IsolationMissing, match="install it: apt-get install -y haproxy"):
        await lacking.run("true", outlet=Outlet(port=8_000, socket=tmp_path / "s"))
    assert (await lacking.run("echo", "ran")).log == "ran\n"


def test_an_ordinary_user_has_the_same_ways(bench: Bench) -> None:
    with tempfile.TemporaryDirectory() as name, serving() as server:
        Path(name).chmod(0o777)
        (Path(name) / "in").mkdir()
        argv = [sys.executable, "-c", AS_USER, name, bench.template.label, str(server.server_port)]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.stdout == "1 True b'/hello'\n\n", done.stderr
        with tarfile.open(Path(name) / "tar") as tar:
            assert tar.getnames() == [".", "./a"]


async def test_nothing_is_left_of_a_run_with_both_ways(bench: Bench, tmp_path: Path) -> None:
    with serving() as server:
        before = len(os.listdir("/proc/self/fd"))
        for script in ("mkdir out; echo x > out/a", "exit 1", "sleep 60"):
            outlet = Outlet(port=server.server_port, socket=tmp_path / "s")
            collect = Collect(folder="out", into=tmp_path / "tar", most_bytes=100_000)
            await bench.run("sh", "-c", script, outlet=outlet, collect=collect, seconds=0.7 if "60" in script else 20)
            assert not (tmp_path / "s").exists()
        assert len(os.listdir("/proc/self/fd")) <= before
        assert not (tmp_path / "tar").exists()


async def test_a_disk_that_is_full_is_a_shortage(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    collect = Collect(folder=".", into=tmp_path / "full", most_bytes=100_000)
    with pytest.raises(ResourceShort, match="No space left"):
        await bench.run("true", collect=collect)


# The relay alone.

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[int]:
    """A service of the host, in this loop."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def _counts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with how much came, once that is over."""
    writer.write(str(len(await reader.read())).encode())
    writer.close()


async def _ask(path: Path, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(sent)
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


async def test_the_end_of_what_is_sent_goes_on_while_the_answer_is_awaited(tmp_path: Path) -> None:
    async with listening(_counts) as port, relayed(Outlet(port=port, socket=tmp_path / "s")) as relay:
        assert await _ask(tmp_path / "s", bytes(3_000_000)) == b"3000000"
    assert (relay.reached, relay.refused) == (1, 0)


async def test_a_run_cannot_move_more_bytes_than_it_may() -> None:
    ours, theirs = socket.socketpair()
    async with listening(_counts) as port:
        relay = Relay(port, most_bytes=1_000_000)
        relay.accept(*await asyncio.open_connection(sock=theirs))
        _, writer = await asyncio.open_connection(sock=ours)
        with pytest.raises(ConnectionError):
            await _flood(writer, 100_000_000)
        writer.transport.abort()
        await relay.end()


async def _flood(writer: asyncio.StreamWriter, size: int) -> None:
    for _ in range(size // 100_000):
        writer.write(bytes(100_000))
        await writer.drain()


async def test_more_connections_than_may_be_wait_for_their_turn() -> None:
    now = most = 0

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        await _counts(reader, writer)

    async def one(relay: Relay) -> bytes:
        ours, theirs = socket.socketpair()
        relay.accept(*await asyncio.open_connection(sock=theirs))
        reader, writer = await asyncio.open_connection(sock=ours)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer

    async with listening(slow) as port:
        relay = Relay(port, at_once=3)
        assert await asyncio.gather(*(one(relay) for _ in range(12))) == [b"0"] * 12
        await relay.end()
    assert most <= 3
    assert relay.reached == 12


async def test_the_end_of_the_run_breaks_off_what_still_hangs(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def waits(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        ended.set()
        writer.close()

    async with listening(waits) as port:
        async with relayed(Outlet(port=port, socket=tmp_path / "s")) as relay:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            await until(lambda: relay.reached)
        assert await reader.read() == b""
        await asyncio.wait_for(ended.wait(), 30)
        writer.close()


async def test_a_descriptor_that_a_run_sends_does_not_arrive(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with listening(_counts) as port, relayed(Outlet(port=port, socket=tmp_path / "s")):
        with socket.socket(socket.AF_UNIX) as client, tempfile.TemporaryFile() as file:
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, str(tmp_path / "s"))
            socket.send_fds(client, [b"x"], [file.fileno()] * 50)
            client.shutdown(socket.SHUT_WR)
            assert await asyncio.get_running_loop().sock_recv(client, 10) == b"1"
            assert len(os.listdir("/proc/self/fd")) < before + 40


async def test_a_service_that_is_not_there_is_counted_and_the_connection_ends(tmp_path: Path) -> None:
    async with relayed(Outlet(port=free_port(), socket=tmp_path / "s")) as relay:
        reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
        assert await reader.read() == b""
        writer.close()
    assert (relay.reached, relay.refused) == (0, 1)
