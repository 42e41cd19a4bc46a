"""The way out of a sandbox to one port, which a caller can open. Subclass as the others."""

from __future__ import annotations

import asyncio
import functools
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from adapters.compliance.hostile import ATTEMPTS, NETWORK, Listening
from adapters.compliance.sandbox import Bench, Benched, Outcome, until
from domain.errors import InvalidInput
from domain.ports.sandbox import Outlet

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
