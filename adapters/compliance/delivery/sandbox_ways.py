"""The two ways out of a sandbox that a caller can open: to one port, and for one folder. Subclass as the others."""

from __future__ import annotations

import asyncio
import functools
import socket
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from adapters.compliance.hostile import ATTEMPTS, NETWORK, Listening
from adapters.compliance.sandbox import MEGABYTE, PYTHON, Bench, Benched, Outcome, until
from domain.errors import InvalidInput, TooLarge
from domain.ports.sandbox import Collect, Outlet

# Asks the port in its first argument; "large" sends and gets 8 MB, "many" asks fifty at once.
_CLIENT = """
import concurrent.futures, hashlib, http.client, os, sys
port = int(os.environ["PORT"])

def ask(path, body=None):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    client.request("POST" if body is not None else "GET", path, body)
    answer = client.getresponse()
    return answer.status, answer.read()

def large():
    body = os.urandom(1_000_000) * 8
    status, echoed = ask("/", body)
    return status, echoed == body

def many():
    with concurrent.futures.ThreadPoolExecutor(50) as threads:
        return len({ask(f"/{n}")[1] for n in threads.map(int, range(50))})
"""


# Leaves a process behind that tells when it sees the one that reads what was left.
_WATCHER = """
import glob, time
if os.fork() == 0:
    os.setsid()
    print("watching", flush=True)
    while True:
        for name in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                if open(name, "rb").read().startswith(b"tar\\0"):
                    print("seen", flush=True)
            except OSError:
                pass
time.sleep(0.2)
"""


class _Echo(BaseHTTPRequestHandler):
    """Answers with the path, or with the body that it was sent."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(self.path.encode())

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler] = _Echo) -> Iterator[_Server]:
    """A real HTTP server on a free port of this machine's loopback."""
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.02))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A bench whose runs may reach one port."""

    bench: Bench
    outlet: Outlet

    async def python(self, source: str, **environment: str) -> Outcome:
        """Run a program that knows the port as ``PORT``."""
        environment["PORT"] = str(self.outlet.port)
        return await self.bench.python(source, outlet=self.outlet, environment=environment)


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class OutletCompliance(Benched, Listening):
    """One port, and nothing else."""

    @pytest.fixture
    def server(self) -> Iterator[_Server]:
        with serving() as server:
            yield server

    @pytest.fixture
    def way(self, bench: Bench, server: _Server, tmp_path: Path) -> Way:
        deep = tmp_path / ("a-folder-with-a-long-name" * 6)  # longer than a socket's path may be
        deep.mkdir()
        return Way(bench=bench, outlet=Outlet(port=server.server_port, socket=deep / "s"))

    async def test_the_port_answers_at_its_own_number(self, way: Way) -> None:
        outcome = await way.python(_CLIENT + "print(ask('/hello'))")
        assert outcome.log == "(200, b'/hello')\n"
        assert (outcome.result.reached, outcome.result.refused) == (1, 0)

    async def test_a_large_body_goes_both_ways_unchanged(self, way: Way) -> None:
        assert (await way.python(_CLIENT + "print(large())")).log == "(200, True)\n"

    async def test_fifty_at_once_are_all_answered(self, way: Way) -> None:
        outcome = await way.python(_CLIENT + "print(many())")
        assert outcome.log == "50\n"
        assert (outcome.result.reached, outcome.result.refused) == (50, 0)

    async def test_a_port_where_nobody_listens_is_counted(self, way: Way) -> None:
        gone = Way(bench=way.bench, outlet=Outlet(port=free_port(), socket=way.outlet.socket))
        outcome = await gone.python(_CLIENT + "ask('/')")
        assert outcome.result.exit_code != 0
        assert (outcome.result.reached, outcome.result.refused) == (0, 1)

    async def test_nothing_else_can_be_reached(self, way: Way, listening: dict[str, str]) -> None:
        outcome = await way.python(ATTEMPTS + NETWORK, **listening)
        *attempts, interfaces = outcome.log.splitlines()
        assert len(attempts) == 7, outcome.log
        assert [line for line in attempts if " shut " not in line] == []
        assert interfaces == "[(1, 'lo')]"
        assert outcome.result.reached == 0

    async def test_a_run_without_the_outlet_does_not_reach_the_port(self, way: Way) -> None:
        outcome = await way.bench.python(_CLIENT + "ask('/')", environment={"PORT": str(way.outlet.port)})
        assert "ConnectionRefusedError" in outcome.log

    async def test_the_socket_goes_with_the_run(self, way: Way) -> None:
        await way.python("")
        assert list(way.outlet.socket.parent.iterdir()) == []

    async def test_what_a_killed_run_left_at_the_sockets_place_is_no_hindrance(self, way: Way) -> None:
        way.outlet.socket.write_text("left")
        assert (await way.python(_CLIENT + "print(ask('/')[0])")).log == "200\n"

    async def test_cancelling_breaks_connections_off_and_removes_the_socket(self, way: Way) -> None:
        hold = "import os, socket, time\nsocket.create_connection(('127.0.0.1', int(os.environ['PORT'])))\n"
        task = asyncio.create_task(way.python(hold + "print('up', flush=True); time.sleep(60)"))
        await until(way.bench.has_printed)
        assert way.outlet.socket.exists()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert way.bench.alive() == []
        assert list(way.outlet.socket.parent.iterdir()) == []

    @pytest.mark.parametrize("port", [0, 80, 65_536])
    async def test_a_port_that_cannot_be_is_refused(self, way: Way, port: int) -> None:
        with pytest.raises(InvalidInput, match="from 1024 to 65535"):
            await way.bench.run("true", outlet=Outlet(port=port, socket=way.outlet.socket))


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """A bench whose runs leave something in a folder."""

    bench: Bench
    into: Path

    async def run(self, script: str, *, folder: str = "out", most_bytes: int = MEGABYTE) -> Outcome:
        """Run a shell script."""
        collect = Collect(folder=folder, into=self.into, most_bytes=most_bytes)
        return await self.bench.run("sh", "-c", script, self.bench.mark, collect=collect)

    def taken(self) -> dict[str, str]:
        """What the tar holds: name to content, to "→ target", to "/" for folders."""
        with tarfile.open(self.into) as tar:
            return {member.name: _shown(tar, member) for member in tar if member.name != "."}


def _shown(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    if member.issym():
        return f"→ {member.linkname}"
    content = tar.extractfile(member) if member.isreg() else None
    return content.read().decode() if content else "/"


class CollectCompliance(Benched):
    """One folder is taken out whole, or nothing is."""

    @pytest.fixture
    def taking(self, bench: Bench, tmp_path: Path) -> Taking:
        return Taking(bench=bench, into=tmp_path / "taken.tar")

    async def test_a_folder_is_taken_out_as_it_was_left(self, taking: Taking) -> None:
        outcome = await taking.run("mkdir -p out/sub; echo one > out/a; echo two > out/sub/b; ln -s a out/l; echo done")
        assert (outcome.result.collected, outcome.result.exit_code, outcome.log) == (True, 0, "done\n"), outcome.log
        assert taking.taken() == {"./a": "one\n", "./sub": "/", "./sub/b": "two\n", "./l": "→ a"}

    async def test_all_of_the_working_directory_can_be_taken(self, taking: Taking) -> None:
        assert (await taking.run("echo new > made.txt", folder=".")).result.collected
        assert taking.taken() == {"./kept.txt": "as it was", "./made.txt": "new\n"}

    async def test_hard_links_are_files_of_their_own(self, taking: Taking) -> None:
        await taking.run("mkdir out; echo one > out/a; ln out/a out/b")
        assert taking.taken() == {"./a": "one\n", "./b": "one\n"}

    @pytest.mark.parametrize(
        "script",
        [
            "mkdir out; echo x > out/a; exit 3",
            "mkdir out; echo x > out/a; kill -9 $$",
            "true",
            "echo x > out",
            "mkdir real; echo x > real/a; ln -s real out",
            "ln -s /usr/share out",
            "mkdir out; echo x > out/a; chmod 000 out/a",
        ],
        ids=["failed", "killed", "absent", "a file", "a link", "a link outside", "unreadable"],
    )
    async def test_nothing_is_taken_of(self, taking: Taking, script: str) -> None:
        outcome = await taking.run(script)
        assert not outcome.result.collected
        assert not taking.into.exists()

    async def test_a_link_on_the_way_to_the_folder_leads_nowhere(self, taking: Taking) -> None:
        outcome = await taking.run("ln -s /usr a", folder="a/share")
        assert not outcome.result.collected

    async def test_what_is_left_running_is_dead_before_anything_is_read(self, taking: Taking) -> None:
        make = "import os; os.mkdir('out'); open('out/big', 'wb').write(os.urandom(15_000_000))"
        source = f"{make}\n{_WATCHER}"
        collect = Collect(folder="out", into=taking.into, most_bytes=16 * MEGABYTE)
        outcome = await taking.bench.python(source, collect=collect)
        assert (outcome.result.collected, outcome.log) == (True, "watching\n")

    async def test_more_than_may_be_is_refused_and_leaves_nothing(self, taking: Taking) -> None:
        with pytest.raises(TooLarge, match="larger than the 1000000 bytes"):
            await taking.run("mkdir out; head -c 3000000 /dev/zero > out/big")
        assert not taking.into.exists()
        assert taking.bench.alive() == []

    async def test_a_huge_hollow_file_costs_no_more_than_what_may_be(self, taking: Taking) -> None:
        with pytest.raises(TooLarge):
            await taking.run("mkdir out; truncate -s 100G out/big")
        assert not taking.into.exists()

    async def test_a_run_that_is_out_of_time_leaves_nothing(self, taking: Taking) -> None:
        collect = Collect(folder="out", into=taking.into, most_bytes=MEGABYTE)
        script = "mkdir out; echo x > out/a; sleep 60"
        outcome = await taking.bench.run("sh", "-c", script, collect=collect, seconds=0.7)
        assert (outcome.result.ended, outcome.result.collected) == ("timeout", False)
        assert not taking.into.exists()

    async def test_cancelling_leaves_nothing(self, taking: Taking) -> None:
        task = asyncio.create_task(taking.run("mkdir out; echo x > out/a; echo up; sleep 60"))
        await until(taking.bench.has_printed)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not taking.into.exists()
        assert taking.bench.alive() == []

    async def test_the_command_cannot_write_to_where_the_tar_goes(self, taking: Taking) -> None:
        source = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int), os.readlink('/proc/self/fd/0'))"
        collect = Collect(folder="out", into=taking.into, most_bytes=MEGABYTE)
        outcome = await taking.bench.run(PYTHON, "-c", source, collect=collect)
        assert outcome.log == "['0', '1', '2', '3'] /dev/null\n"  # the last is the listing itself

    @pytest.mark.parametrize("folder", ["", "/etc", "..", "a/../..", "a/../b", "./a", "a//b", "a\0b"])
    async def test_a_folder_that_is_no_plain_path_inside_is_refused(self, taking: Taking, folder: str) -> None:
        with pytest.raises(InvalidInput, match="to take out"):
            await taking.run("true", folder=folder)
