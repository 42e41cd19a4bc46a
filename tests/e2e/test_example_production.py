"""The demo's users, and what it looks at from outside: what they count can fail."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from rich.console import Console

from examples.stage.narrator import Narrator
from examples.stage.processes import alive, family, listeners, sockets
from examples.stage.traffic import NOBODY, Answer, Traffic, around, count, faults, fetch, served


class Site(ThreadingHTTPServer):
    """A service that a test changes while it is used: ``release`` 0 is an answer of nobody's."""

    request_queue_size = 128
    release = 1
    status = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Site)
        self.send_response(self.server.status or (404 if self.path == "/notes/gone" else 200))
        if self.server.release:
            self.send_header("X-Mendwork-Release", str(self.server.release))
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def eventually(condition: Callable[[], object], *, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


class TestTraffic:
    def test_each_answer_counts_for_the_release_that_gave_it(self, site: Site) -> None:
        traffic = Traffic(site.url, rate=200)
        eventually(lambda: len(traffic.answers) >= 20)
        site.release = 2
        eventually(lambda: traffic.answers[-1].release == 2)
        eventually(lambda: count(traffic.answers, lambda each: each.release == 2).asked >= 20)
        traffic.stop()
        answers = traffic.answers
        assert count(answers).failed == 0, faults(answers)
        assert {each.release for each in answers} == {1, 2}
        assert "release 2 answers" in traffic.line()
        over = len(traffic.answers)
        assert len(traffic.answers) == over

    def test_a_wrong_status_is_the_releases_own_fault_and_an_answer_of_nobodys_is_the_switchs(self, site: Site) -> None:
        traffic = Traffic(site.url, rate=200)
        site.status, site.release = 503, 3
        eventually(lambda: count(traffic.answers, lambda each: each.release == 3).failed >= 5)
        site.release = NOBODY
        eventually(lambda: count(traffic.answers, lambda each: each.release == NOBODY).failed >= 5)
        site.status = 0
        eventually(lambda: traffic.answers[-1].fault == "200")
        traffic.stop()
        elsewhere = count(traffic.answers, lambda each: each.release != 3)
        assert elsewhere.failed >= 6
        assert "503 by 3" in faults(traffic.answers)
        assert "by 3" not in faults(traffic.answers, without=3)

    def test_a_site_that_is_closed_is_a_failure(self) -> None:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{held.getsockname()[1]}"
            with pytest.raises(ConnectionRefusedError):
                fetch(url, "/")
            traffic = Traffic(url, rate=100)
            eventually(lambda: traffic.answers)
            traffic.stop()
        assert {(each.release, each.fault) for each in traffic.answers} == {(NOBODY, "ConnectionRefusedError")}

    def test_a_moment_has_the_answers_near_it(self) -> None:
        answers = [Answer(at=float(at), release=1 + at // 5, fault="" if at != 7 else "503") for at in range(10)]
        assert served(answers, 2) == (5.0, 9.0)
        assert served(answers, 3) is None
        assert str(count(answers, around(5.0))) == "1 of 5 requests failed"
        assert count(answers, around(2.0)).failed == 0


class TestReach:
    def test_a_socket_on_every_address_is_told_from_one_on_loopback(self) -> None:
        for address, local in (("127.0.0.1", True), ("0.0.0.0", False)):  # noqa: S104 - it is what has to be seen
            with socket.create_server((address, 0)) as server:
                port = server.getsockname()[1]
                found = [(at, is_local) for inode, at, is_local in listeners() if inode in sockets({os.getpid()})]
                assert (port, local) in found

    def test_a_family_holds_grandchildren_and_nobody_else(self) -> None:
        code = "import subprocess, sys; subprocess.run(['sleep', '60'])"
        with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as child:
            try:
                eventually(lambda: len(family({child.pid})) == 2)
                (grandchild,) = family({child.pid}) - {child.pid}
                assert {child.pid, grandchild} <= family({os.getpid()})
                assert os.getpid() not in family({child.pid})
            finally:
                os.killpg(child.pid, 9)
        eventually(lambda: not alive(grandchild))
        assert alive(os.getpid())


class TestNarrator:
    ROWS = (("header", "dim"), ("traffic", "bold"), ("1 good", "green"), ("2 bad", "red"))

    def told(self, monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> tuple[Narrator, io.StringIO]:
        narrator, stream = Narrator(), io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=40, soft_wrap=True, highlight=False)
        monkeypatch.setattr(narrator, "_console", console)
        return narrator, stream

    def test_without_a_terminal_a_picture_grows_by_what_is_new_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        narrator, stream = self.told(monkeypatch, terminal=False)
        for rows in (self.ROWS[:3], self.ROWS[:3], self.ROWS):
            narrator.picture(rows)
            narrator.status("users: 3")
        narrator.tell("promoted")
        narrator.picture(self.ROWS[:3])
        lines = [line.strip() for line in stream.getvalue().splitlines()]
        assert lines == ["header", "traffic", "1 good", "2 bad", "promoted", "header", "traffic", "1 good"]

    def test_on_a_terminal_it_is_drawn_in_its_place_until_something_else_is_told(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        narrator, stream = self.told(monkeypatch, terminal=True)
        narrator.picture(self.ROWS[:3])
        narrator.status("users: " + "many " * 20)
        narrator.picture([*self.ROWS[:3], ("2 " + "x" * 100, "red")])
        assert "\033[3A" in stream.getvalue()
        assert "\r\033[K" in stream.getvalue()
        assert "x" * 40 not in stream.getvalue(), "a line that wraps would be two"
        narrator.tell("promoted")
        before = len(stream.getvalue())
        narrator.picture(self.ROWS)
        assert "A\r" not in stream.getvalue()[before:]
